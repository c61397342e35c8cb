"""Errors and hangs affect one trace only, in this process."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.pipeline.line import stored_traces, understanding
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, evaluator
from pandaeval_collector.scoring.metric import Metric, TraceContext, TraceMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store import JobRow
from pandaeval_lab.drill.drill import Drill
from pandaeval_lab.drill.fault import faults
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace
from support.embedder import WordEmbedder
from support.made_traces import Composer, MadeTrace

_COMPOSER = Composer(3)
TRACES = [_COMPOSER.trace(5) for _ in range(12)]
BAD = TRACES[4]


@pytest.fixture
def files() -> Iterator[TraceFiles]:
    with TraceFiles() as read:
        for trace in TRACES:
            read.add(Request(False, trace.request().SerializeToString()))
        yield read


def _by_trace(results: Iterator[Result] | list[Result]) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        if result.unit.level == "trace":
            found.setdefault(result.unit.trace_id, {})[result.metric] = result
    return found


def _raising(error: BaseException, at: Callable[..., Any], is_bad: Callable[..., bool]) -> Callable[..., Any]:
    def work(*arguments: Any, **more: Any) -> Any:
        if is_bad(*arguments):
            raise error
        return at(*arguments, **more)

    return work


def _is_bad(trace: Any) -> bool:
    return bool(trace.trace_id in (BAD.trace_id, BAD.trace_id.hex()))


@pytest.mark.parametrize("error", [RecursionError("too deep"), MemoryError("too much"), ValueError("no")], ids=repr)
@pytest.mark.parametrize("where", ["reading", "embedding", "scoring", "filing"])
def test_an_error_in_one_trace_costs_only_the_results_of_that_trace(
    where: str, error: Exception, files: TraceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = _by_trace(list(replay(files, Evaluator(WordEmbedder()))))
    if where == "reading":
        built = stored_traces.build_trace
        monkeypatch.setattr(
            stored_traces, "build_trace", _raising(error, built, lambda evidence, _: _is_bad(evidence.spans[0]))
        )
    elif where == "embedding":
        monkeypatch.setattr(
            Evaluator, "embed", _raising(error, Evaluator.embed, lambda _, traces: any(map(_is_bad, traces)))
        )
    elif where == "scoring":
        monkeypatch.setattr(understanding, "pack", _raising(error, understanding.pack, _is_bad))
        monkeypatch.setattr(
            Evaluator, "by_itself", _raising(error, Evaluator.by_itself, lambda _, trace, *__: _is_bad(trace))
        )
    else:
        monkeypatch.setattr(Line, "file", _raising(error, Line.file, lambda _, due, __: any(map(_is_bad, due))))
    with TraceFiles() as again:
        for trace in TRACES:
            again.add(Request(False, trace.request().SerializeToString()))
        found = _by_trace(list(replay(again, Evaluator(WordEmbedder()))))
    aside = found.pop(BAD.trace_id.hex())
    assert {(each.outcome, str(each.why)) for each in aside.values()} == {("unscored", "metric_error")}
    assert f"set aside: {type(error).__name__}" in aside["tool_loop"].finding.reason
    assert found.keys() == without.keys() - {BAD.trace_id.hex()}
    # Metrics that compare a trace with earlier traces of its session miss the bad trace.
    assert _alone(found) == {key: each for key, each in _alone(without).items() if key[0] in found}


def _alone(found: dict[str, dict[str, Result]]) -> dict[tuple[str, str], Any]:
    names = ("tool_loop", "response")
    return {(id_, name): of[name].score for id_, of in found.items() for name in names if name in of}


# -- too long ----------------------------------------------------------------------------------------------------------


def _slow(trace: Trace, context: TraceContext) -> Finding:
    while _is_bad(trace):
        pass
    return Score(1.0, "not slow")


SLOW: Metric[Trace, TraceContext] = Metric(
    level="trace", name="slow", kind="code", version="1", threshold=0.5, question="?", needs="nothing", evaluate=_slow
)


def _add_metric(monkeypatch: pytest.MonkeyPatch, metric: Metric[Trace, TraceContext]) -> None:
    known = dict(sorted({**registry(), metric.key: metric}.items()))
    monkeypatch.setattr(evaluator, "registry", lambda _: known)


@pytest.fixture
def scorer(monkeypatch: pytest.MonkeyPatch) -> Evaluator:
    """Return a scorer with one extra metric."""
    _add_metric(monkeypatch, SLOW)
    return Evaluator(WordEmbedder(), EvaluatorSettings(trace_timeout=1.0))


def test_a_timeout_names_the_slow_metric_and_keeps_finished_results(files: TraceFiles, scorer: Evaluator) -> None:
    found = _by_trace(list(replay(files, scorer)))
    ended = [metric.name for metric in scorer.plan.alone][: [m.name for m in scorer.plan.alone].index("slow")]
    assert ended, "something comes before it"
    of_bad = found.pop(BAD.trace_id.hex())
    late = {name: each for name, each in of_bad.items() if str(each.why) == "timeout"}
    assert "slow" in late
    assert not late.keys() & {*ended}
    assert {each.finding.reason for each in late.values()} == {
        "the trace took too long (line.timeout): trace.slow was under way"
    }
    assert all(each["slow"].outcome == "scored" for each in found.values())
    assert len(found) == len(TRACES) - 1


def test_a_trace_that_timed_out_is_not_scored_again_with_its_session(
    files: TraceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BAD.session is not None
    asked: list[str] = []

    def slow(trace: Trace, context: TraceContext) -> Finding:
        asked.append(trace.trace_id)
        return _slow(trace, context)

    grounding = registry()["trace.grounding"]
    assert isinstance(grounding, TraceMetric)
    assert grounding.reads is not None
    reads = replace(grounding.reads, unsettled=lambda trace, finding: True)
    own = replace(grounding, evaluate=slow, reads=reads)
    known = {**registry(), "trace.grounding": own}
    monkeypatch.setattr(evaluator, "registry", lambda _: known)
    found = _by_trace(list(replay(files, Evaluator(WordEmbedder(), EvaluatorSettings(trace_timeout=1.0)))))
    assert str(found[BAD.trace_id.hex()]["grounding"].why) == "timeout"
    assert asked.count(BAD.trace_id.hex()) == 1
    assert len(asked) > len(TRACES), "other traces are scored again"


def _with_jobs() -> set[bytes]:
    """Return the traces that get judge jobs."""
    judge = JudgeSettings("openai/m", detail="all")
    judged = Evaluator(WordEmbedder(), EvaluatorSettings(judge=judge))
    jobs: list[JobRow] = []
    with TraceFiles() as read:
        for trace in TRACES:
            read.add(Request(False, trace.request().SerializeToString()))
        list(replay(read, judged, on_decided=lambda decision: jobs.extend(decision.changes.jobs)))
    return {job.trace_id for job in jobs}


def test_only_a_trace_that_timed_out_gets_no_judge_job(monkeypatch: pytest.MonkeyPatch) -> None:
    usually = _with_jobs()
    assert BAD.trace_id in usually

    def timed_out(trace: Trace, context: TraceContext) -> Finding:
        if _is_bad(trace):
            signal.raise_signal(signal.SIGALRM)  # as the timer of the trace does
        return Score(1.0, "not slow")

    _add_metric(monkeypatch, replace(SLOW, evaluate=timed_out))
    assert _with_jobs() == usually - {BAD.trace_id}


@pytest.mark.parametrize("where", ["reading", "embedding"])
def test_a_trace_whose_reading_or_embedding_times_out_is_set_aside(
    where: str, files: TraceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(at: Callable[..., Any], is_bad: Callable[..., bool]) -> Callable[..., Any]:
        def work(*arguments: Any, **more: Any) -> Any:
            if is_bad(*arguments):
                time.sleep(300)
            return at(*arguments, **more)

        return work

    if where == "reading":
        built = stored_traces.build_trace
        monkeypatch.setattr(stored_traces, "build_trace", slow(built, lambda found, _: _is_bad(found.spans[0])))
    else:
        monkeypatch.setattr(Evaluator, "embed", slow(Evaluator.embed, lambda _, traces: any(map(_is_bad, traces))))
    found = _by_trace(list(replay(files, Evaluator(WordEmbedder(), EvaluatorSettings(trace_timeout=1.0)))))
    aside = found.pop(BAD.trace_id.hex())
    assert {(each.outcome, str(each.why)) for each in aside.values()} == {("unscored", "timeout")}
    assert len(found) == len(TRACES) - 1


def test_a_drill_skips_a_trace_that_was_set_aside(files: TraceFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    built = stored_traces.build_trace
    deep = RecursionError("too deep")
    monkeypatch.setattr(stored_traces, "build_trace", _raising(deep, built, lambda found, _: _is_bad(found.spans[0])))
    tally = Drill(files, lambda some, where: replay(some, Evaluator(WordEmbedder()), where=where), faults()).run()
    assert tally.runs == len(TRACES) - 1


def test_an_unreadable_trace_does_not_stop_the_reading_of_other_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [_with_response(trace, f"resp-{number}") for number, trace in enumerate(TRACES)]
    built = stored_traces.build_trace
    deep = RecursionError("too deep")
    monkeypatch.setattr(stored_traces, "build_trace", _raising(deep, built, lambda found, _: _is_bad(found.spans[0])))
    with TraceFiles() as files:
        for trace in traces:
            files.add(Request(False, trace.request().SerializeToString()))
        assert len([*files.traces()]) == len(TRACES) - 1
        assert "too deep" in json.dumps(files.read.problems)
        assert len(_by_trace(list(replay(files, Evaluator(WordEmbedder()))))) == len(TRACES)


def _with_response(trace: MadeTrace, id_: str) -> MadeTrace:
    for span in trace.spans:
        span.attributes.add(key="gen_ai.response.id").value.string_value = id_
    return trace
