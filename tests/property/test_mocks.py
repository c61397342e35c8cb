"""Recorded calls are replayed in order; other calls are refused."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from pandaeval_lab.cases.mocks import Mocks
from pandaeval_lab.cases.model import Case
from support.examples import examples

VALUES = st.sampled_from([None, False, True, 0, 1, 2, "", "a", "1", [], [True]])
ARGUMENTS = st.dictionaries(st.sampled_from("xy"), VALUES, max_size=2)
CALLS = st.lists(st.tuples(st.sampled_from(["find", "pay"]), ARGUMENTS), max_size=12)


def _key(tool: str, arguments: dict[str, Any]) -> str:
    return repr((tool, sorted(arguments.items())))


@settings(max_examples=examples(400), deadline=None)
@given(CALLS, st.randoms(use_true_random=False))
def test_recorded_calls_get_their_results_in_order_and_other_calls_are_refused(
    calls: list[tuple[str, dict[str, Any]]], dice: Any
) -> None:
    recorded = [{"tool_name": tool, "parameters": given, "result": at} for at, (tool, given) in enumerate(calls)]
    mocks = Mocks(Case.model_validate({"id": "c", "unmocked": "recorded", "recorded": {"calls": recorded}}))
    results: dict[str, list[int]] = {}
    for at, call in enumerate(calls):
        results.setdefault(_key(*call), []).append(at)
    for tool, arguments in dice.sample(calls, len(calls)):
        expected = results[_key(tool, arguments)]
        assert mocks.reply(tool, arguments).result == expected[0]
        if len(expected) > 1:
            del expected[0]
    for tool, arguments in calls:
        assert mocks.reply(tool, arguments).result == results[_key(tool, arguments)][-1], "the last result is repeated"
        assert mocks.reply(tool, {**arguments, "z": 1}).kind == "refused"
