"""Custom metrics of docs/guides/custom-metrics.md and others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pandaeval_collector.analysis.embedding import load as load_embedder
from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.score import Finding, Score, Unscored
from pandaeval_collector.cli import app
from pandaeval_collector.config import load
from pandaeval_collector.judge.client import Judge, JudgeClient
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.runs.settings import scoring
from pandaeval_collector.scoring.custom import judged, metric
from pandaeval_collector.scoring.metric import Metric, Texts, TraceContext
from pandaeval_collector.scoring.registry import of_packages, registry
from pandaeval_lab.cli.metrics import description
from pandaeval_otel.base import plugins
from pandaeval_otel.model import ToolCall, Trace, Turn
from support.pages import files_of
from support.scripted_judge import Memory, ScriptedCaller, ScriptedJudge

RUN = Trace("a" * 32, (), "b" * 16, turns=(Turn("Where is my card?", "On its way."),), output="On its way.")
CONTEXT = TraceContext(Texts({}, (), "none", None), 0.5)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return files_of("guides/custom-metrics.md", tmp_path_factory.mktemp("shown"))


async def _awaited(asked: Awaitable[Finding | None]) -> Finding | None:
    return await asked


def asked(of: Metric, trace: Trace = RUN, **fields: Any) -> Any:
    """Return the finding for this answer."""
    return asyncio.run(ScriptedJudge(**{of.rubrics[0].name: fields}).finding(of, trace))


# -- the three examples of the page -----------------------------------------------------------------------------------


def test_yaml_file_defines_a_scaled_and_a_labelled_metric(shown: dict[str, Path]) -> None:
    known = registry((str(shown["house.yaml"]),))
    tone, upsell = known["trace.tone"], known["trace.upsell"]
    found = asked(tone, reason="One casual word.", score=4)
    assert found == Score(0.75, "One casual word.", raw=4.0, scale="1-5")
    assert asked(tone, reason="Nothing was said.", score=None).why == "insufficient_evidence"
    assert asked(tone, reason="Too much.", score=6).why == "invalid_verdict"
    pushy = asked(upsell, reason="Three cards offered.", label="pushy")
    assert (pushy.value, pushy.label, pushy.failed, pushy.metadata) == (0.0, "pushy", True, {"severity": "high"})
    assert asked(upsell, reason="One.", label="fitting") == Score(0.8, "One.", label="fitting")
    assert asked(upsell, reason="Not captured.", label="not determinable").why == "insufficient_evidence"


def test_python_module_defines_a_metric_as_function_and_as_class(shown: dict[str, Path]) -> None:
    known = registry((str(shown["house.py"]),))
    brevity, signature = known["trace.brevity"], known["trace.signature"]
    assert brevity.question == "Is the answer short enough to be read?"
    assert "It does not judge whether the answer is right." in description(brevity)
    assert brevity.evaluate(replace(RUN, output="word " * 300), CONTEXT) == Score(0.5, "300 words")
    assert brevity.evaluate(replace(RUN, output=None), CONTEXT) is None
    unsigned = signature.evaluate(RUN, CONTEXT)
    assert isinstance(unsigned, Score)
    assert (unsigned.label, unsigned.failed, unsigned.metadata) == ("unsigned", True, {"severity": "low"})
    signed = signature.evaluate(replace(RUN, output="Yours,\nYour Harbour Bank"), CONTEXT)
    assert signed == Score(1.0, label="signed")


@pytest.fixture
def packaged(shown: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (plugins._all, of_packages, registry)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "house_thrift", raising=False)
    (tmp_path / "house_thrift.py").write_text(shown["house_thrift.py"].read_text())
    about = tmp_path / "house_metrics-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house-metrics\nVersion: 1.0\n")
    points = shown["pyproject.toml"].read_text().partition('[project.entry-points."pandaeval.metrics"]')[2]
    (about / "entry_points.txt").write_text(f"[pandaeval.metrics]{points.replace(chr(34), '')}")
    for cache in caches:
        cache.cache_clear()
    yield
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("packaged")
def test_package_registers_its_metric_through_an_entry_point() -> None:
    thrift = registry()["trace.thrift"]
    run = replace(RUN, tool_calls=tuple(ToolCall(str(n), "search", {}, "b" * 16) for n in range(3)))
    assert thrift.evaluate(run, CONTEXT) == Score(0.5, "3 calls", raw=3.0, scale="1-5")
    assert (thrift.threshold_for(None), thrift.scale) == (2, "1-5")


# -- thresholds, models, versions, prompts ---------------------------------------------------------------------------


def test_thresholds_are_in_the_scale_of_the_metric(shown: dict[str, Path]) -> None:
    modules = [str(shown["house.yaml"])]
    config = load(None, {}, {"metrics.modules": modules, "metrics.thresholds": {"tone": 4.0, "upsell": 0.9}})
    assert scoring(config).thresholds == {"trace.tone": 4.0, "trace.upsell": 0.9}


def test_threshold_above_the_scale_is_a_configuration_error(
    shown: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    file = tmp_path / "pandaeval.yaml"
    file.write_text(f"metrics: {{modules: ['{shown['house.yaml']}'], thresholds: {{tone: 5.5, upsell: 1.5}}}}")
    checked = CliRunner().invoke(app, ["config", "check", str(file)])
    assert checked.exit_code == 2
    assert "no result can reach 5.5: scores of trace.tone end at 5" in checked.output
    assert "no result can reach 1.5: scores of trace.upsell end at 1" in checked.output


def test_configured_judge_model_overrides_the_model_of_the_metric(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("{name: depth, criteria: It goes into depth., model: openai/other}")
    given = {"metrics.modules": [str(file)], "judge.model": "openai/first"}
    judge = scoring(load(None, {}, given)).judge
    outweighed = scoring(load(None, {}, {**given, "judge.models": {"depth": "openai/third"}})).judge
    assert judge is not None
    assert outweighed is not None
    assert judge.model_of("trace.depth") == "openai/other"
    assert judge.model_of("trace.confidence") == "openai/first"
    assert outweighed.model_of("trace.depth") == "openai/third"


def test_version_changes_with_the_prompt_of_the_judge() -> None:
    first = judged(name="depth", criteria="It goes into depth.")
    assert judged(name="depth", criteria="It goes into depth.", threshold=0.9).version == first.version
    assert judged(name="depth", criteria="It goes into the depth.").version != first.version
    assert judged(name="depth", criteria="It goes into depth.", scale=[1, 5]).version != first.version
    named = judged(name="depth", criteria="It goes into the depth.", version="7")
    assert named.version == "7"
    assert named.rubrics[0].version != first.rubrics[0].version, "cached verdicts depend on the prompt"


def test_prompts_and_metrics_commands_show_custom_metrics(shown: dict[str, Path], tmp_path: Path) -> None:
    config = tmp_path / "pandaeval.yaml"
    config.write_text(f"metrics: {{modules: ['{shown['house.yaml']}', '{shown['house.py']}']}}")
    prompt = CliRunner().invoke(app, ["prompts", "tone", "--config", str(config)]).output
    for words in (
        "Is the tone right for a bank?",
        "free of slang",
        "5: nothing that",
        "from 1 (worst) to 5",
    ):
        assert words in prompt
    about = CliRunner().invoke(app, ["metrics", "upsell", "--config", str(config)]).output
    assert "Scores: none 1, fitting 0.8, pushy 0 (high)." in about
    assert "brevity" in CliRunner().invoke(app, ["metrics", "--config", str(config)]).output


@pytest.mark.parametrize("embedder", ["embedded", "multilingual"])
def test_the_threshold_of_coherence_is_that_of_the_configured_embedder(tmp_path: Path, embedder: str) -> None:
    config = tmp_path / "pandaeval.yaml"
    config.write_text(f"embedding: {{model: {embedder}}}")
    bands = load_embedder(embedder).bands
    assert bands is not None
    output = CliRunner().invoke(app, ["metrics", "trace.coherence", "--config", str(config)]).output
    assert f"threshold {bands.cut:g}, " in output


def test_run_without_turns_and_output_is_no_content() -> None:
    found = judged(name="depth", criteria="x").evaluate(replace(RUN, turns=(), output=None), CONTEXT)
    assert isinstance(found, Unscored)
    assert found.why == "no_content"


@pytest.mark.parametrize(("level", "subject"), [("turn", TurnView(RUN)), ("session", Conversation(RUN, 1))])
def test_prompts_for_turns_and_sessions_contain_goal_and_knowledge(level: str, subject: Any) -> None:
    tone = judged(name="own_tone", level=level, criteria="It is calm.", scale=[1, 5], threshold=4)
    caller = ScriptedCaller({f"{level}_own_tone": {"reason": "Calm enough.", "score": 5}})
    judge = Judge(JudgeClient(caller, Memory()), pack(RUN, b"s" * 32), "m")
    about = replace(subject, goal="a new card", knowledge=("cards cost 5",))
    assert tone.evaluate(about, CONTEXT) is None
    assert tone.ask is not None
    found = asyncio.run(_awaited(tone.ask(about, judge)))
    assert found == Score(1.0, "Calm enough.", raw=5.0, scale="1-5")
    assert (tone.key, tone.threshold_for(None)) == (f"{level}.own_tone", 4)
    question = caller.questions[0]
    assert 'goal: "a new card"' in question
    assert 'knowledge: "- cards cost 5"' in question
    assert ("one turn of a conversation" if level == "turn" else "a whole conversation") in question


# -- what functions return -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "found"),
    [
        (None, None),
        (True, Score(1.0, raw=5.0, scale="1-5")),
        (False, Score(0.0, raw=1.0, scale="1-5")),
        (2, Score(0.25, raw=2.0, scale="1-5")),
        ((3.0, "why"), Score(0.5, "why", raw=3.0, scale="1-5")),
        (Score(0.3), Score(0.3)),
    ],
)
def test_return_value_of_a_function_becomes_a_finding(returned: Any, found: Any) -> None:
    @metric(scale=(1, 5), version="1", question="Is it so?")
    def own(trace: Trace, context: TraceContext) -> Any:
        return returned

    assert own.evaluate(RUN, CONTEXT) == found


@pytest.mark.parametrize(
    ("returned", "error", "said"),
    [
        (6, ValueError, "6 does not lie in the metric's scale 1-5"),
        ("odd", ValueError, "'odd' is none of the metric's labels"),
        ([1], TypeError, "it returned a list, and not a number"),
    ],
)
def test_invalid_return_value_of_a_function_is_an_error(returned: Any, error: type[Exception], said: str) -> None:
    @metric(scale=(1, 5), version="1", question="Is it so?")
    def own(trace: Trace) -> Any:
        return returned

    with pytest.raises(error, match=said):
        own.evaluate(RUN, CONTEXT)


class Warmth(Verdict):
    reason: Reason
    warm: bool


WARMTH = Rubric(name="warmth", version="1", text="Is the answer warm?", verdict=Warmth)


def test_async_function_can_call_the_judge() -> None:
    @metric(version="1", rubrics=(WARMTH,))
    async def warmth(trace: Trace, judge: Any) -> Any:
        """Is the answer warm?"""
        verdict = await judge.ask(WARMTH)
        return verdict.warm, verdict.reason

    assert warmth.kind == "llm"
    assert asked(warmth, reason="It greets.", warm=True) == Score(1.0, "It greets.")


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: a, criteria: x, sclae: [1, 5]}", "metrics[0] (a): sclae: unknown key; did you mean scale?"),
        ("- {criteria: x}", "metrics[0]: name: is missing; write a name in small letters"),
        ("- {name: a}", "metrics[0] (a): criteria: is missing; write the criteria of the judge"),
        ("- {name: A b, criteria: x}", "name 'A b': write small letters, digits and single underscores"),
        ("- {name: a, criteria: x, level: galaxy}", "level 'galaxy' is not scored in this version"),
        ("- {name: a, criteria: x, scale: [5, 1]}", "scale: min (5) has to be less than max (1)"),
        ("- {name: a, criteria: x, scale: {min: 1}}", "scale.max: is missing; write both ends"),
        ("- {name: a, criteria: x, scale: [1, 5], threshold: 7}", "threshold: 7 must be in the scale 1-5"),
        ("- {name: a, criteria: x, scale: 1-5}", "scale: write both ends, as in scale: {min: 1, max: 5}"),
        (
            "- {name: a, criteria: x, labels: {b: 1}}",
            "after validation, not 1; give two or more, such as {polite: 1, rude: 0}",
        ),
        (
            "- {name: a, criteria: x, labels: {b: 1, c: 2}}",
            "labels.c.score: 2: input should be less than or equal to 1",
        ),
        ("- {name: a, criteria: x, labels: {b: 1, c: 0}, scale: [1, 5]}", "labels and scale exclude each other"),
        ("- {name: a, criteria: x, labels: {b: 1, c: {score: 0, severity: bad}}}", "labels.c.severity: 'bad'"),
        ("- {name: a, criteria: [x", "line 1: is not valid YAML"),
        ("- {name: a, criteria: x, criteria: y}", "line 1: is not valid YAML: criteria is given twice"),
        ("- &a {name: a, criteria: x, labels: *a}", "line 1: is not valid YAML: it refers to itself"),
        ("- {name: a, criteria: x, level: trial}", "level: write trace, turn or session"),
        ("- {name: a, criteria: x, labels: {b: 1, not determinable: 0}}", "is reserved for undecided judges"),
        ("[]", "the file has no metric; write a list"),
        ("5", "the file has no metric"),
        ("- 5", "metrics[0]: is not a map"),
        ("- {name: coherence, criteria: x}", "there is a metric trace.coherence already; give it another name"),
    ],
)
def test_error_in_a_metric_file_names_the_file_and_the_fault(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    with pytest.raises(ModuleLoadError) as caught:
        registry((str(file),))
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_yaml_words_are_no_booleans_and_numbers_may_begin_with_a_dot(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("- {name: polite, criteria: 2026-01-09, labels: {yes: 1, no: 0}, threshold: .5}\n")
    (found,) = (each for each in registry((str(file),)).values() if each.name == "polite")
    assert "yes 1, no 0" in found.about
    assert found.threshold == 0.5


def test_all_errors_of_a_metric_file_are_reported_together(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("- {name: a, criteria: x, levl: y}\n- {name: b}\n")
    with pytest.raises(ModuleLoadError, match=r"level\?.*metrics\[1\] \(b\)"):
        registry((str(file),))
    with pytest.raises(ModuleLoadError, match="there is no file"):
        registry((str(tmp_path / "none.yaml"),))


def test_module_without_a_metric_is_an_error_with_a_hint(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("from pandaeval_collector.scoring.metrics.trace.response import METRIC as OTHER\n")
    with pytest.raises(ModuleLoadError, match="nor a function below @metric"):
        registry((str(file),))
