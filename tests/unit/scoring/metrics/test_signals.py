"""Signals of a single session metric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.config import load
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.runs.settings import scoring
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.evaluator.plan import running_metrics
from pandaeval_collector.scoring.metric import SessionMetric
from pandaeval_collector.scoring.metrics.session.agent_reliability import METRIC as RELIABILITY
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store import Store
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trigger
from support.embedder import WordEmbedder
from support.judged import stored, trace
from support.made_traces import Composer

ALONE = EvaluatorSettings({"session.agent_reliability"})


def _results(settings: EvaluatorSettings) -> list[Result]:
    composer = Composer(11)
    with TraceFiles() as run:
        for _ in range(40):
            run.add(Request(False, composer.trace().request().SerializeToString()))
        return list(replay(run, Evaluator(WordEmbedder(), settings)))


def test_reliability_alone_equals_reliability_with_all_metrics_enabled() -> None:
    alone, everything = _results(ALONE), _results(EvaluatorSettings())
    assert {result.metric for result in alone} == {"agent_reliability"}
    among_all = [result for result in everything if result.metric == "agent_reliability"]
    assert len({result.score for result in among_all}) > 1
    facts: Callable[[Result], Any] = lambda result: (result.id, result.score, result.finding.metadata)  # noqa: E731
    assert [*map(facts, alone)] == [*map(facts, among_all)]


def test_only_enabled_metrics_have_results() -> None:
    names = {result.metric for result in _results(EvaluatorSettings({"session.agent_reliability", "trace.tool_loop"}))}
    assert names == {"agent_reliability", "tool_loop"}


def test_collector_does_not_store_export_or_count_hidden_signals(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    line = Line(store.reads, Evaluator(WordEmbedder(), ALONE), Emitter(("logs", "traces")))
    composer, sessions = Composer(11), set()
    for _ in range(20):
        changes = line.decide([stored(store, composer.trace())]).changes
        assert (changes.results, changes.outbox) == ([], [])
        # Tokens of the agent are counted for every run; they are no results.
        assert {each.name for each in changes.series} <= {"pandaeval.agent.tokens", "pandaeval.agent.unpriced"}
        sessions |= changes.touched
        store.commit(changes).result()
    assert sessions
    assert {result.metric for id_ in sessions for result in line.scores.score(id_, Trigger.IDLE)[0]} == {
        "agent_reliability"
    }
    store.close()


def test_judged_metrics_run_only_if_enabled() -> None:
    metrics = registry()
    alone, hushed = running_metrics(metrics, {"session.agent_reliability"})
    assert {"trace.response", "trace.coherence", "trace.tool_loop"} <= hushed
    assert not [metric.key for metric in alone if metric.kind == "llm"]
    asked, silent = running_metrics(metrics, {"session.agent_reliability", "trace.confidence"})
    assert [metric.key for metric in asked if metric.kind == "llm"] == ["trace.confidence"]
    assert "trace.confidence" not in silent
    settings = EvaluatorSettings({"session.agent_reliability"}, judge=JudgeSettings("m"))
    assert Evaluator(WordEmbedder(), settings).judged.questions(trace())[1] == []


def test_only_enabled_metrics_run_without_a_session_metric() -> None:
    metrics = registry()
    assert running_metrics(metrics, {"trace.coherence"})[1] == frozenset()
    assert [metric.key for metric in running_metrics(metrics, {"trace.coherence"})[0]] == ["trace.coherence"]
    assert running_metrics(metrics, None)[1] == frozenset()
    assert len(running_metrics(metrics, None)[0]) == len(metrics)


def test_session_metric_enabled_by_configuration_runs_its_hidden_signals() -> None:
    settings = scoring(load(None, {"PANDAEVAL_METRICS__ENABLED": "[session.agent_reliability]"}))
    assert Evaluator(WordEmbedder(), settings).plan.silent >= {"trace.response", "trace.loop_detection"}


def test_every_signal_of_a_session_metric_is_a_trace_metric() -> None:
    names = {metric.name for metric in registry().values() if metric.level == "trace"}
    sessions = [metric for metric in registry().values() if isinstance(metric, SessionMetric)]
    assert {name for metric in sessions for name in metric.signals} <= names
    assert RELIABILITY.signals
