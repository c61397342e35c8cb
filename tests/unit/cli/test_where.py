"""``--where`` selection and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Finding
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.members import new_member
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.evaluator.units import trace_unit
from pandaeval_collector.scoring.metric import Texts
from pandaeval_lab.cli._where import TraceFilter, Where, attribute_keys, names_in, parse_where
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace
from support.embedder import WordEmbedder
from support.judged import trace
from support.made_traces import START_NS, Composer


def _started(at: str) -> Trace:
    made = trace(service="shop")
    start = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) * 10**9
    return replace(made, spans=tuple(replace(span, start_ns=start, end_ns=start) for span in made.spans))


RUN = replace(_started("2026-03-10T12:00:00"), agent="helper", user_id="ann", session_id="s-1", environment="test")


def _run(trace: Trace) -> ScoredTrace:
    return ScoredTrace(trace_unit(trace), new_member(trace, Texts({}, (), "none", None)), [], trace=trace)


def _parsed(*written: str) -> Where:
    found = parse_where(written)
    assert found is not None
    return found


def _fits(trace: Trace, *written: str) -> bool:
    return _parsed(*written).fits(names_in(_run(trace), trace), trace.start_ns)


@pytest.mark.parametrize(
    ("written", "fits"),
    [
        (("agent=helper",), True),
        (("agent=other",), False),
        (("agent=other,agent=helper",), True),
        (("agent=other", "agent=helper"), True),
        (("agent=helper,service=shop",), True),
        (("agent=helper, service=desk",), False),
        (("status=ok",), True),
        (("user=ann",), True),
        (("user=bob",), False),
        (("session=s-1,environment=test",), True),
        (("session=s-2",), False),
        (("environment=production",), False),
        (("status=error",), False),
        (("time=2026-03-10..2026-03-10",), True),
        (("time=2026-03-09..2026-03-09",), False),
        (("time=..2026-03-10",), True),
        (("time=2026-03-11..",), False),
        (("time=2026-03-10T12:00:00Z..2026-03-10T12:00:01Z",), True),
        (("time=2026-03-10T11:00:00Z..2026-03-10T12:00:00Z",), False),
        (("time=2026-03-10T13:00:00+01:00..2026-03-10T13:00:01+01:00",), True),
        (("time=2026-03-01..2026-03-02,time=2026-03-10..",), True),
    ],
)
def test_conditions_select_matching_traces(written: tuple[str, ...], fits: bool) -> None:
    assert _fits(RUN, *written) is fits


def test_values_may_contain_commas_and_equal_signs() -> None:
    assert _fits(replace(RUN, agent="Desk, second floor"), "agent=Desk, second floor")
    assert _fits(replace(RUN, agent="a=b"), "agent=a=b,status=ok")


def test_a_run_that_failed_has_status_error() -> None:
    assert _fits(replace(RUN, error="boom"), "status=error")


def test_a_trace_may_have_several_labels_and_attributes() -> None:
    several = _parsed("label=loop,attribute=service.version=1.4")
    names = names_in(_run(RUN), RUN)
    assert several.fits(names | {"label": ["pass", "loop"], "attribute": ["service.version=1.4", "a=b"]}, 0)
    assert not several.fits(names | {"label": ["pass"], "attribute": ["service.version=1.4"]}, 0)
    assert not several.fits(names | {"label": ["loop"], "attribute": ["service.version=1.3"]}, 0)
    assert attribute_keys(several) == ["service.version"]
    assert attribute_keys(None) == []


def test_without_conditions_there_is_no_filter() -> None:
    assert parse_where(()) is None


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("agnet=helper", "unknown key 'agnet'; known: agent, service,"),
        ("colour=red", "known: agent, service, environment, user, session, status, label, attribute, time"),
        ("helper", "write KEY=VALUE, where KEY is one of agent, service, environment, user, session, status, "),
        ("agent=", "the value is missing"),
        ("", "write KEY=VALUE"),
        ("agent=helper,status=failed", "--where status=failed: write error or ok"),
        ("attribute=service.version", "write attribute=KEY=VALUE, as in attribute=service.version=1.4"),
        ("time=2026-03-10", "write FROM..TO"),
        ("time=yesterday..", "yesterday: is not a time"),
        ("time=..9999-12-31", "is not a time"),
        ("time=2026-03-11..2026-03-10", "FROM must be before TO"),
    ],
)
def test_invalid_conditions_are_rejected_with_a_cure(written: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        parse_where((written,))
    assert says in str(error.value)
    assert str(error.value).startswith("--where ")


def _unknown(selection: TraceFilter) -> str:
    try:
        selection.conclude()
    except UserError as error:
        return str(error)
    return ""


def test_the_notice_lists_known_names_if_nothing_matches() -> None:
    selection = TraceFilter(_parsed("agent=hepler"))
    assert not selection.keep(_run(RUN))
    assert selection.notice == ("--where agent=hepler: no trace in the input matches (agents: helper; services: shop)")
    assert _unknown(selection) == "--where agent=hepler: no trace in the input has this agent"
    late = TraceFilter(_parsed("agent=helper,time=..2001-01-01"))
    assert (late.keep(_run(RUN)), _unknown(late)) == (False, "")
    mixed = TraceFilter(_parsed("agent=helper"))
    assert [mixed.keep(_run(RUN)), mixed.keep(_run(replace(RUN, agent="other")))] == [True, False]
    assert mixed.notice == "--where agent=helper: 1 of 2 runs were excluded"


# -- a run -----------------------------------------------------------------------------------------------------------


def _results(where: Where | None) -> tuple[list[Result], set[str]]:
    return _scored(Evaluator(WordEmbedder(), EvaluatorSettings()), where, [], 60)


def _scored(
    evaluator: Evaluator, where: Where | None, told: list[Conclusion], count: int = 20
) -> tuple[list[Result], set[str]]:
    composer = Composer(11)
    with TraceFiles() as files:
        for _ in range(count):
            files.add(Request(False, composer.trace().request().SerializeToString()))
        results = [*replay(files, evaluator, where=where and TraceFilter(where).keep, on_decided=told.append)]
    return results, {trace_id for decision in told for trace_id in decision.left_out}


def _of_traces(results: Iterable[Result]) -> dict[str, Finding]:
    return {result.id: result.finding for result in results if result.unit.level == "trace"}


def test_only_matching_traces_are_scored_and_their_results_are_unchanged() -> None:
    everything, _ = _results(None)
    services = {result.unit.service for result in everything}
    assert len(services) > 1
    for service in services:
        some, left_out = _results(_parsed(f"service={service}"))
        assert _of_traces(some) == _of_traces(each for each in everything if each.unit.service == service)
        assert left_out == {result.unit.trace_id for result in everything if result.unit.level == "trace"} - {
            result.unit.trace_id for result in some
        }


def test_a_session_is_scored_by_its_matching_traces_only() -> None:
    everything, _ = _results(None)
    of_session = {
        r.unit.id: r.finding.metadata["total_traces_in_session"] for r in everything if r.unit.level == "session"
    }
    parted = 0
    middle = datetime.fromtimestamp(START_NS // 10**9 + 30 * 7, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for span in (f"..{middle}", f"{middle}.."):
        some, _ = _results(_parsed(f"time={span}"))
        in_session: dict[str, set[str]] = {}
        for result in some:
            if result.unit.level == "trace" and result.unit.session_id:
                in_session.setdefault(result.unit.session_id, set()).add(result.unit.trace_id)
        found = {r.unit.id: r.finding.metadata["total_traces_in_session"] for r in some if r.unit.level == "session"}
        assert found == {id_: len(traces) for id_, traces in in_session.items()}
        parted += sum(count < of_session[id_] for id_, count in found.items())
    assert parted, "no session had both matching and excluded traces"


def test_no_judge_job_is_created_for_excluded_traces() -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings("m")))
    told: list[Conclusion] = []
    results, left_out = _scored(evaluator, _parsed("service=shop"), told)
    asked = {job.trace_id.hex() for decision in told for job in decision.changes.jobs}
    assert asked
    assert left_out
    assert not left_out & (asked | {result.unit.trace_id for result in results})


def test_excluded_traces_are_not_counted_as_traces_without_an_agent() -> None:
    told: list[Conclusion] = []
    _, left_out = _scored(Evaluator(WordEmbedder(), EvaluatorSettings()), _parsed("service=shop"), told)
    assert sum(decision.not_genai for decision in told) == 0
    assert sum(len(decision.traces) + len(decision.left_out) for decision in told) == 20
    assert 0 < len(left_out) < 20


def test_traces_are_selected_by_attribute_and_by_label() -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(listed_attributes=("service.name",)))
    everything, _ = _scored(evaluator, None, [], 60)
    service = next(result.unit.service for result in everything)
    some, _ = _scored(evaluator, _parsed(f"attribute=service.name={service}"), [], 60)
    assert {result.unit.service for result in some} == {service}
    label = next(result.label for result in everything if result.success is False and result.unit.level == "trace")
    found, left_out = _scored(evaluator, _parsed(f"label={label}"), [], 60)
    having = {result.unit.trace_id for result in everything if result.label == label and result.unit.level == "trace"}
    assert {result.unit.trace_id for result in found if result.unit.level == "trace"} == having
    assert left_out
