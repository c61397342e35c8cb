"""Limited calls to a judge that replies in an invalid format."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pandaeval_collector.base.result import Result
from pandaeval_collector.jobs.format_pauses import PAUSE_S, FormatPauses
from pandaeval_collector.judge.call import JudgeConfig, ModelAnswer, ModelCall
from pandaeval_collector.judge.invalid_replies import MOST_INVALID
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.embedder import WordEmbedder
from support.scripted_judge import ScriptedCaller

CAPTURES = Path(__file__).parents[2] / "golden" / "captures"
ALONE = CAPTURES / "openai_openllmetry" / "good.otlp.jsonl"
FIVE = [CAPTURES / name / "good.otlp.jsonl" for name in ("openai_openllmetry", "pydantic_ai", "langgraph_genai")]
FIVE += [CAPTURES / name / "tool_error.otlp.jsonl" for name in ("openai_openllmetry", "langgraph_genai")]
MODEL = "openai/m"


class _Empty(ScriptedCaller):
    """Answers ``{}`` to named or all questions."""

    def __init__(self, *names: str) -> None:
        super().__init__({})
        self._names = names

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await super().complete(call)
        return ModelAnswer("{}", 1, 1) if not self._names or self.asked[-1] in self._names else answer


class _WithoutPart(ScriptedCaller):
    """Omits a part of the shared call."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await super().complete(call)
        said = json.loads(answer.text)
        said.pop("confidence", None)
        return ModelAnswer(json.dumps(said), 1, 1)


def judged(files: Sequence[Path], caller: ScriptedCaller) -> list[Result]:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings(MODEL)))
    with TraceFiles() as read:
        read.add_all(requests([*map(str, files)]))
        setup = JudgeConfig((MODEL,), concurrency=1)
        with ReplayJudge(read.store, evaluator, setup, caller=caller) as asked:
            return [each for each in replay(read, evaluator, asked) if each.evaluator.kind == "llm"]


def test_a_model_with_empty_replies_gets_a_limited_number_of_calls_per_trace() -> None:
    caller = _Empty()
    results = judged([ALONE], caller)
    assert len(caller.asked) == MOST_INVALID
    assert {each.why for each in results if each.outcome == "unscored"} >= {"invalid_verdict"}


def test_an_invalid_part_of_a_shared_call_is_asked_once_on_its_own() -> None:
    caller = _WithoutPart({})
    [confidence] = [each for each in judged([ALONE], caller) if each.metric == "confidence"]
    assert caller.asked.count("confidence") == 1
    assert confidence.why == "invalid_verdict"


def test_a_model_that_fails_only_shared_calls_is_not_paused() -> None:
    caller = _Empty("trace", "turn")
    results = judged(FIVE, caller)
    answered = {each.unit.trace_id for each in results if each.outcome == "scored"}
    assert len(answered) == len({each.unit.trace_id for each in results})


def test_invalid_replies_for_several_traces_in_a_row_pause_the_model(caplog: pytest.LogCaptureFixture) -> None:
    caller = _Empty()
    with caplog.at_level(logging.WARNING):
        results = judged(FIVE, caller)
    told = [each.message for each in caplog.records if "is paused" in each.message]
    assert len(told) == 1
    assert any("is paused" in each.finding.reason for each in results)
    traces = len({each.unit.trace_id for each in results})
    # A further trace may already be under way when the model is paused.
    assert 3 * MOST_INVALID <= len(caller.asked) < traces * MOST_INVALID


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def test_several_parts_of_a_trace_without_valid_replies_count_once(store: Store) -> None:
    pauses = FormatPauses(store)
    for _ in range(3):
        pauses.note(MODEL, b"a", False)
    pauses.note(MODEL, b"b", False)
    assert not pauses.paused_until(MODEL)
    pauses.note(MODEL, b"c", False)
    assert pauses.paused_until(MODEL)


def test_a_pause_survives_a_restart_and_one_valid_reply_ends_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(type(store.clock), "running", lambda self: now)
    pauses = FormatPauses(store)
    for trace_id in (b"a", b"b"):
        pauses.note(MODEL, trace_id, False)
    assert not pauses.paused_until(MODEL)
    pauses.note(MODEL, b"c", True)
    for trace_id in (b"a", b"b", b"c"):
        pauses.note(MODEL, trace_id, False)
    assert pauses.permit(MODEL).until == now + PAUSE_S
    store.put("barrier", "").result()
    again = FormatPauses(store)
    assert again.permit(MODEL).until == now + PAUSE_S
    now += PAUSE_S + 1
    assert again.permit(MODEL).is_test
    assert again.permit(MODEL).until, "only one test call"
    again.note(MODEL, b"d", True)
    store.put("barrier", "").result()
    assert not again.permit(MODEL).until
    assert not FormatPauses(store).permit(MODEL).until
