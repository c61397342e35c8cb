"""Rules for every metric."""

from __future__ import annotations

import importlib
import tomllib
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.base.result import Identity
from pandaeval_collector.base.score import Assumed, Score
from pandaeval_collector.judge.rulings import Ruling
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, trace_unit
from pandaeval_collector.scoring.evaluator.prepared import Preparation
from pandaeval_collector.scoring.metric import (
    Metric,
    SessionContext,
    SessionView,
    Texts,
    TraceContext,
    TurnContext,
    ends,
)
from pandaeval_collector.scoring.registry import GRADERS, of_packages, registry
from pandaeval_lab.cases import Case, Trial, TrialContext
from pandaeval_lab.cli.metrics import description
from pandaeval_otel.base import plugins
from pandaeval_otel.model import Trace, Trigger, Turn

METRICS = list(registry((GRADERS,)).values())
BANDS = Bands(off=0.1, cut=0.3, on=0.5)
ASKED, SAID = "Which museums open on Sundays?", "Most museums open at ten on Sundays."


class _Embedder:
    id, bands = "none", None

    def embed(self, texts: Any) -> Any:
        return np.ones((len(texts), 1), dtype=np.float32)


def _empty(metric: Metric) -> Any:
    if metric.level == "session":
        view = SessionView("s", ())
        return metric.evaluate(view, SessionContext(0.5, frozenset({"confidence"}), {}, ("error", "tool_loop")))
    trace = Trace("a" * 32, (), "b" * 16, session_id="s")
    if metric.level == "trial":
        return metric.evaluate(Trial(Case(id="c"), "1", (trace,)), TrialContext(0.5))
    if metric.level == "turn":
        return metric.evaluate(TurnView(replace(trace, turns=(Turn(None, None),))), TurnContext(3.0))
    return metric.evaluate(trace, TraceContext(Texts({}, (), "none", BANDS), 0.5))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
class TestEveryMetric:
    def test_description_has_a_question_a_limitation_and_a_source(self, metric: Metric) -> None:
        text = description(metric)
        assert text.splitlines()[0].endswith("?"), "the first line must be a question"
        assert "It does not " in " ".join(text.split()), "a sentence must begin with 'It does not'"
        assert "Source:" in text or "Ours" in text
        assert metric.question.endswith("?")
        assert metric.needs

    def test_module_is_in_the_folder_of_the_level_and_documents_the_metric(self, metric: Metric) -> None:
        folder = GRADERS if metric.level == "trial" else f"pandaeval_collector.scoring.metrics.{metric.level}"
        module = importlib.import_module(f"{folder}.{metric.name}")
        assert module.METRIC is metric
        assert module.__doc__ is not None
        assert description(metric) == module.__doc__.strip()
        assert metric.kind in ("embedding", "llm", "code", "math")
        assert metric.version

    def test_has_a_threshold_on_its_scale(self, metric: Metric) -> None:
        least, most = ends(metric.scale)
        assert least <= metric.threshold_for(None) <= most
        assert least <= metric.threshold_for(BANDS) <= most

    def test_never_scores_an_empty_subject(self, metric: Metric) -> None:
        assert not isinstance(_empty(metric), Score)


def test_a_metric_that_raises_loses_only_its_own_result() -> None:
    class Embedder:
        id, bands = "none", None

        def embed(self, texts: Any) -> Any:
            return np.zeros((len(texts), 2), dtype=np.float32)

    def fail(*_: Any) -> Any:
        raise RuntimeError("bug")

    evaluator = Evaluator(Embedder())
    broken = Metric("trace", "broken", "code", "1", 0.5, "?", "-", fail)
    evaluator.plan.alone = [broken, *evaluator.plan.alone]
    trace = Trace("a" * 32, (), "b" * 16, turns=(Turn("", ""),), trigger=Trigger.FILE)
    results = evaluator.trace(trace, evaluator.embed([trace]))
    assert [result.why for result in results if result.metric == "broken"] == ["metric_error"]
    assert any(isinstance(result.finding, Assumed) for result in results if result.metric == "coherence")


def test_result_ids_depend_on_metric_version_model_parameters_and_evidence() -> None:
    unit = trace_unit(Trace("a" * 32, (), "b" * 16, digest="d1"))
    other = trace_unit(Trace("a" * 32, (), "b" * 16, digest="d2", revision=7))
    base = Identity("trace.x", "1", None, {"threshold": 0.5}).of(unit)
    assert base == Identity("trace.x", "1", None, {"threshold": 0.5}).of(unit)
    changed = [
        Identity("trace.x", "1", None, {"threshold": 0.5}).of(other),
        Identity("trace.y", "1", None, {"threshold": 0.5}).of(unit),
        Identity("trace.x", "2", None, {"threshold": 0.5}).of(unit),
        Identity("trace.x", "1", "m", {"threshold": 0.5}).of(unit),
        Identity("trace.x", "1", None, {"threshold": 0.6}).of(unit),
    ]
    assert len({base, *changed}) == 6


def test_a_fragment_of_a_trace_gets_the_findings_of_the_whole_trace() -> None:
    class Embedder:
        id, bands = "none", None

        def embed(self, texts: Any) -> Any:
            return np.ones((len(texts), 1), dtype=np.float32)

    whole = Trace("a" * 32, (), "b" * 16, turns=(Turn(ASKED, SAID),), input=ASKED, output=SAID)
    part = replace(whole, fragment=True, complete=False)
    evaluator = Evaluator(Embedder())
    expected, found = (evaluator.trace(trace, evaluator.embed([trace])) for trace in (whole, part))
    assert {"coherence", "response"} <= {result.metric for result in expected}
    assert [(result.metric, result.finding) for result in found] == [(each.metric, each.finding) for each in expected]


class TestUnrelatedComponentsAndIds:
    """Unused components change no ID."""

    @pytest.fixture
    def unrelated(self, tmp_path: Path) -> str:
        module = tmp_path / "unrelated.py"
        module.write_text(
            "from pandaeval_collector import metric\n\n\n@metric(threshold=0.5)\ndef unrelated(trace):\n"
            '    """Is it related?"""\n    return 1.0\n'
        )
        return str(module)

    @staticmethod
    def digests(settings: EvaluatorSettings) -> dict[str, Any]:
        metrics = list(registry((GRADERS, *settings.modules)).values())
        preparation = Preparation(settings, _Embedder(), metrics)
        return {metric.key: preparation.of(metric).origin.identity._shared for metric in metrics}

    @pytest.mark.parametrize("judge", [None, JudgeSettings("a/model")], ids=["without a judge", "with a judge"])
    def test_an_unrelated_metric_changes_no_id_of_other_metrics(
        self, judge: JudgeSettings | None, unrelated: str
    ) -> None:
        alone = self.digests(EvaluatorSettings(judge=judge))
        beside = self.digests(EvaluatorSettings(judge=judge, modules=(unrelated,)))
        assert beside.pop("trace.unrelated")
        assert beside == alone

    def test_only_metrics_that_a_session_metric_reads_change_its_id(self) -> None:
        reliability = registry()["session.agent_reliability"]
        read = [metric for metric in METRICS if metric.level == "trace" and metric.name in reliability.signals]
        some = Preparation(EvaluatorSettings(), _Embedder(), [*read, reliability])
        fewer = Preparation(EvaluatorSettings(), _Embedder(), [*read[1:], reliability])
        everything = Preparation(EvaluatorSettings(), _Embedder(), METRICS)
        digests = [each.of(reliability).origin.identity._shared for each in (some, everything, fewer)]
        assert digests[0] == digests[1] != digests[2]

    def test_a_ruling_changes_only_ids_of_session_metrics_that_read_its_metric(self) -> None:
        def with_ruling(metric: str) -> dict[str, Any]:
            return self.digests(
                EvaluatorSettings(
                    judge=JudgeSettings(
                        "a/model", rulings=lambda: (Ruling.model_validate({"metric": metric, "text": "Be."}),)
                    )
                )
            )

        unread, read = with_ruling("trace.plan_quality"), with_ruling("trace.confidence")
        assert unread == self.digests(EvaluatorSettings(judge=JudgeSettings("a/model")))
        assert {key for key in read if read[key] != unread[key]} == {
            "session.agent_reliability",
            "session.agent_consistency",
        }

    @pytest.mark.parametrize("kind", ["dialect", "exporter"])
    def test_a_dialect_or_an_exporter_changes_no_id(
        self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        alone = self.digests(EvaluatorSettings(judge=JudgeSettings("a/model")))
        folder = Path(__file__).parents[1] / "plugins" / kind
        about = tmp_path / f"unrelated_{kind}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: unrelated-{kind}\nVersion: 1.0\n")
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]
        lines = [
            line
            for group, held in project.items()
            for line in (f"[{group}]", *(f"{n} = {at}" for n, at in held.items()))
        ]
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.syspath_prepend(str(folder))
        for cached in (plugins._all, of_packages, registry):
            cached.cache_clear()
        try:
            [group] = project
            assert f"unrelated-{kind}" in {each.dist.name for each in entry_points(group=group) if each.dist}
            assert self.digests(EvaluatorSettings(judge=JudgeSettings("a/model"))) == alone
        finally:
            monkeypatch.undo()
            for cached in (plugins._all, of_packages, registry):
                cached.cache_clear()
