"""Matching traces to cases."""

from __future__ import annotations

from typing import Any

from pandaeval_lab.cases import Case, Suite
from pandaeval_lab.cases.trial import TrialMatcher
from pandaeval_otel.model import Kind, Span, Trace


def trace(number: int, session: str | None = None, input: str = "go", **stated: Any) -> Trace:
    attributes = {f"pandaeval.{key.replace('_', '.')}": value for key, value in stated.items()}
    id_, at = f"{number:032x}", number * 1000
    spans = (Span(id_, "1" * 16, "", "run", Kind.AGENT, at, at + 9, attributes=attributes),)
    return Trace(id_, spans, "1" * 16, session_id=session, input=input, output="done", digest=f"d{number}")


def trials(*ids: str) -> TrialMatcher:
    return TrialMatcher(Suite(cases=tuple(Case(id=id_, inputs={"task": f"task {id_}"}) for id_ in ids)))


def found(held: TrialMatcher) -> dict[tuple[str, str], list[int]]:
    return {(each.case.id, each.name): [int(t.trace_id, 16) for t in each.traces] for each in held.attempts()}


def test_a_trial_may_be_number_zero_and_hold_several_traces() -> None:
    held = trials("a")
    held.add([trace(1, case_id="a", trial=0), trace(2, case_id="a", trial=0), trace(3, case_id="a", trial="0")])
    assert found(held) == {("a", "0"): [1, 2, 3]}


def test_trace_joins_the_trial_of_the_previous_trace_in_its_session() -> None:
    held = trials("a", "b")
    held.add([trace(1, "s", case_id="a", trial=1), trace(2, "s", case_id="b", trial=7), trace(3, "s", "task a")])
    assert found(held) == {("a", "1"): [1], ("b", "7"): [2, 3]}


def test_trace_is_ambiguous_if_two_cases_have_the_same_task() -> None:
    held = TrialMatcher(Suite(cases=tuple(Case(id=id_, inputs={"task": "same"}) for id_ in "ab")))
    held.add([trace(1, input="same"), trace(2, input="other")])
    assert (held.ambiguous, held.unmatched, held.without_trial) == (1, 2, ["a", "b"])


def test_case_and_trial_names_in_traces_are_bounded_in_length_and_number() -> None:
    held = trials("a", "x" * 100_000)
    for number in range(1000):
        assert held.case_of(trace(number, case_id=f"{number}" * 10_000)) is None
    assert held.case_of(trace(1, case_id="case 0")) is None
    assert len(held.unknown) == 100
    assert max(map(len, held.unknown)) < 1000
    case, name = held.case_of(trace(1, case_id="x" * 100_000, trial="t" * 100_000)) or (None, "")
    assert case is not None
    assert case.id == "x" * 100_000
    assert len(name) < 1000
