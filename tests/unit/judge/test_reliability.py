"""How far a judge can be trusted: questions put twice, and runs whose verdicts are known."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.score import Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.cli._summary import AskedTwice, Summary
from pandaeval_collector.jobs.canaries import Canaries
from pandaeval_collector.jobs.canary_file import read_canaries
from pandaeval_collector.jobs.checks import Agreement, AskedAgain
from pandaeval_collector.jobs.setup import Desks
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, Question
from pandaeval_collector.store import Store
from pandaeval_otel.base.component_errors import ERRORS
from support.asked import Memory, ScriptedCaller
from support.embedder import WordEmbedder
from support.judged import call, trace

MODEL = "openai/small"
RUN = trace(calls=[call(1)], reasoning=("First I search, then I tell.",))
GOLDEN = Path(__file__).parents[2] / "golden" / "captures" / "pydantic_ai"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, durability="off", max_bytes=1 << 30)
    yield opened
    opened.close()


def _evaluator() -> Evaluator:
    return Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings(MODEL)))


def _question(name: str) -> Question:
    _, questions = _evaluator().judged(RUN)
    return next(each for each in questions if each.metric.name == name)


def _gauge(telemetry: Telemetry, name: str, **about: str) -> list[float]:
    wanted = {f"pandaeval.{key}": value for key, value in about.items()}
    measures = [each for each in telemetry.measures() if each.instrument.name == name]
    return [each.value for each in measures if wanted.items() <= dict(each.attributes).items()]


class _Failing(ScriptedCaller):
    """Answers ``good`` calls, then raises."""

    def __init__(self, good: int, error: Exception) -> None:
        super().__init__({})
        self._good, self._error = good, error

    async def complete(self, call: ModelCall) -> ModelAnswer:
        if len(self.asked) >= self._good:
            raise self._error
        return await super().complete(call)


class TestRetest:
    async def _beside(
        self, store: Store, caller: ScriptedCaller, name: str, share: float = 1.0, telemetry: Telemetry | None = None
    ) -> tuple[Any, Judge]:
        telemetry = telemetry or Telemetry()
        question, packed = _question(name), pack(RUN, b"s" * 32)
        first = Judge(Desk(caller, Memory()), packed, MODEL)
        assert question.metric.ask is not None
        finding = await question.metric.ask(RUN, first)
        assert finding is not None
        retest = AskedAgain(Desks(caller), Agreement(store, telemetry), telemetry, share)
        return await retest.beside(question, RUN, packed, first, finding), first

    async def test_the_question_is_put_once_more_behind_other_fences_and_the_first_verdict_stands(
        self, store: Store
    ) -> None:
        said = [
            {"answered": "yes", "taken": "yes", "reason": "Good.", "verdict": 0.9},
            {"answered": "no", "taken": "yes", "reason": "Less so.", "verdict": 0.7},
        ]
        caller, telemetry = ScriptedCaller({"task_completion": said}), Telemetry()
        found, first = await self._beside(store, caller, "task_completion", telemetry=telemetry)
        assert found.value == 0.9
        assert found.metadata["retest"]["score"] == 0.7
        assert math.isclose(found.metadata["retest"]["difference"], 0.2)
        assert found.metadata["judge_agreement"]["n"] == 1
        assert caller.asked == ["task_completion", "task_completion"]
        assert first.spent.calls == 2, "and the second call is paid for by the result"
        assert caller.questions[0] != caller.questions[1]
        about = {"check": "retest", "metric": "trace.task_completion", "model": MODEL}
        [shown] = _gauge(telemetry, "pandaeval.judge.agreement", **about)
        assert math.isclose(shown, 0.8)

    async def test_without_a_share_nothing_is_asked_twice(self, store: Store) -> None:
        caller = ScriptedCaller({})
        found, _ = await self._beside(store, caller, "confidence", share=0.0)
        assert caller.asked == ["confidence"]
        assert not found.metadata

    @pytest.mark.parametrize(
        "error", [CallFailedError(CallFailure.TIMEOUT, "late"), OverBudgetError()], ids=["timeout", "budget"]
    )
    async def test_that_the_provider_is_away_says_nothing_about_the_judge(self, store: Store, error: Exception) -> None:
        telemetry = Telemetry()
        found, _ = await self._beside(store, _Failing(1, error), "confidence", telemetry=telemetry)
        assert isinstance(found, Score)
        assert "retest" not in found.metadata
        assert telemetry.total("pandaeval.judge.retests", "not_asked") == 1
        assert not _gauge(telemetry, "pandaeval.judge.agreement")

    async def test_agreement_outlives_a_restart(self, store: Store) -> None:
        await Agreement(store, Telemetry()).add("retest", "trace.confidence", MODEL, (0.8, 0.4), 0.5)
        telemetry = Telemetry()
        again = Agreement(store, telemetry)
        await again.add("retest", "trace.confidence", MODEL, (0.1, 0.1), 0.5)
        shown = again.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert (shown.agreement, shown.flips, shown.n) == (0.8, 1, 2)
        assert _gauge(telemetry, "pandaeval.judge.agreement") == [0.8]
        assert _gauge(telemetry, "pandaeval.judge.flips") == [0.5]

    async def test_a_judge_that_says_the_same_of_all_is_named(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        telemetry = Telemetry()
        agreement = Agreement(store, telemetry)
        with caplog.at_level(logging.WARNING):
            for _ in range(25):
                await agreement.add("retest", "trace.confidence", MODEL, (0.9, 0.9), 0.5)
        shown = agreement.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert (shown.agreement, shown.to_dict()["label"]) == (1.0, "does not discriminate")
        assert _gauge(telemetry, "pandaeval.judge.discrimination") == [0.0]
        assert _gauge(telemetry, "pandaeval.judge.spread", of="runs") == [0.0]
        assert not _gauge(telemetry, "pandaeval.judge.kappa"), "where chance explains everything there is no kappa"
        assert len(caplog.records) == 1
        assert "does not discriminate by trace.confidence" in caplog.text

    async def test_a_judge_that_tells_runs_apart_is_not(self, store: Store) -> None:
        agreement = Agreement(store, Telemetry())
        for number in range(25):
            value = number % 5 / 4
            await agreement.add("retest", "trace.confidence", MODEL, (value, abs(value - 0.05)), 0.5)
        shown = agreement.of("retest", "trace.confidence", MODEL)
        assert shown is not None
        assert not shown.alike
        assert shown.discrimination > 0.9


def _canaries(tmp_path: Path, text: str) -> Path:
    (tmp_path / "good.otlp.jsonl").write_bytes((GOLDEN / "good.otlp.jsonl").read_bytes())
    path = tmp_path / "canaries.yaml"
    path.write_text(text, encoding="utf-8")
    return path


TWO = """
- name: booked as asked
  traces: good.otlp.jsonl
  expected: {trace.task_completion: [0.8, 1.0], trace.confidence: [0.3, 1.0]}
"""


class TestCanaries:
    def _open(self, path: Path, store: Store, caller: ScriptedCaller, telemetry: Telemetry) -> Canaries:
        return Canaries(read_canaries(path), store, caller, _evaluator(), telemetry, 3600.0)

    async def test_a_round_is_a_gauge_by_metric(self, tmp_path: Path, store: Store) -> None:
        telemetry, caller = Telemetry(), ScriptedCaller({"confidence": {"reason": "Hm.", "confidence": 0.1}})
        canaries = self._open(_canaries(tmp_path, TWO), store, caller, telemetry)
        assert await canaries.round() == 2
        assert caller.asked == ["task_completion", "confidence"]
        assert _gauge(telemetry, "pandaeval.judge.agreement", check="canary", metric="trace.task_completion") == [1.0]
        assert _gauge(telemetry, "pandaeval.judge.agreement", check="canary", metric="trace.confidence") == [0.0]

    async def test_a_judge_that_changes_is_an_alarm(
        self, tmp_path: Path, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        path, telemetry = _canaries(tmp_path, TWO), Telemetry()
        with caplog.at_level(logging.WARNING):
            await self._open(path, store, ScriptedCaller({}), telemetry).round()
            assert not caplog.records
            worse = ScriptedCaller(
                {"task_completion": {"answered": "no", "taken": "no", "reason": "No.", "verdict": 0.1}}
            )
            restarted = Telemetry()
            canaries = self._open(path, store, worse, restarted)
            await canaries.round()
        assert (
            "2 canaries are 0.40 from those of the first round in the mean, and 1 are on the other side" in caplog.text
        )
        assert "booked as asked, trace.task_completion: 0.90 at first, 0.10 now" in caplog.text
        assert math.isclose(canaries.drift, 0.4)
        assert math.isclose(_gauge(restarted, "pandaeval.judge.drift")[0], 0.4)
        assert _gauge(restarted, "pandaeval.judge.canaries.changed") == [1.0]
        assert _gauge(restarted, "pandaeval.judge.canary.score", metric="trace.task_completion") == [0.1]

    async def test_a_drift_that_no_band_shows_is_one(self, tmp_path: Path, store: Store) -> None:
        """Both verdicts lie within a wide band, or both outside of a narrow one."""
        wide = TWO.replace("[0.8, 1.0]", "[0.0, 1.0]").replace("[0.3, 1.0]", "[0.0, 0.05]")
        path = _canaries(tmp_path, wide)
        await self._open(path, store, ScriptedCaller({}), Telemetry()).round()
        worse = {
            "task_completion": {"answered": "no", "taken": "no", "reason": "No.", "verdict": 0.1},
            "confidence": {"reason": "No.", "confidence": 0.2},
        }
        telemetry = Telemetry()
        canaries = self._open(path, store, ScriptedCaller(worse), telemetry)
        await canaries.round()
        assert sorted(_gauge(telemetry, "pandaeval.judge.agreement", check="canary")) == [0.0, 1.0]
        assert math.isclose(canaries.drift, (0.8 + 0.2) / 2)

    async def test_a_verdict_that_is_none_any_more_has_gone_all_the_way(self, tmp_path: Path, store: Store) -> None:
        path = _canaries(tmp_path, TWO)
        await self._open(path, store, ScriptedCaller({}), Telemetry()).round()
        silent = ScriptedCaller({"confidence": {"reason": "No.", "confidence": "none"}})
        canaries = self._open(path, store, silent, Telemetry())
        await canaries.round()
        assert canaries.drift == 0.5

    async def test_other_canaries_are_no_change_of_the_judge(self, tmp_path: Path, store: Store) -> None:
        await self._open(_canaries(tmp_path, TWO), store, ScriptedCaller({}), Telemetry()).round()
        harder = TWO.replace("[0.3, 1.0]", "[0.99, 1.0]")
        canaries = self._open(_canaries(tmp_path, harder), store, ScriptedCaller({}), Telemetry())
        await canaries.round()
        assert canaries.drift == 0.0

    async def test_what_could_not_be_asked_counts_neither_way(self, tmp_path: Path, store: Store) -> None:
        away = _Failing(0, CallFailedError(CallFailure.UNAVAILABLE, "away"))
        canaries = self._open(_canaries(tmp_path, TWO), store, away, Telemetry())
        assert await canaries.round() == 0
        assert canaries.drift == 0.0

    async def test_a_metric_that_raises_counts_neither_way_and_is_counted(self, tmp_path: Path, store: Store) -> None:
        path = _canaries(tmp_path, TWO)
        before = ERRORS.counts()
        caller = _Failing(0, LookupError("a bug"))
        assert await self._open(path, store, caller, Telemetry()).round() == 0
        assert (ERRORS.counts() - before).keys() == {
            ("metric", "trace.task_completion"),
            ("metric", "trace.confidence"),
        }

    async def test_one_that_instructs_the_judge_is_to_be_noticed(self, tmp_path: Path, store: Store) -> None:
        text = TWO.replace("{trace.task_completion: [0.8, 1.0], trace.confidence: [0.3, 1.0]}", "{trace.confidence: X}")
        path, telemetry = _canaries(tmp_path, text.replace("X", "injection_suspected")), Telemetry()
        noticing = ScriptedCaller({"confidence": {"instructed": True, "reason": "It orders.", "confidence": 1.0}})
        await self._open(path, store, noticing, telemetry).round()
        assert _gauge(telemetry, "pandaeval.judge.agreement", check="canary") == [1.0]

    async def test_they_run_at_the_start_and_not_again_before_their_time(self, tmp_path: Path, store: Store) -> None:
        path = _canaries(tmp_path, TWO)
        for caller, asked in ((ScriptedCaller({}), 2), (ScriptedCaller({}), 0)):
            canaries = self._open(path, store, caller, Telemetry())
            canaries.start()
            for _ in range(200):
                await asyncio.sleep(0.01)
                if len(caller.asked) == 2 and json.loads(store.reads.get("judge.canaries") or "{}"):
                    break
            await canaries.stop()
            assert len(caller.asked) == asked

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("- {name: x}", "Field required"),
            (TWO.replace("[0.8, 1.0]", "[0.8, 7]"), "less than or equal to 1"),
            (TWO.replace("trace.confidence", "trace.coherence"), "trace.coherence is no judged metric"),
            (TWO.replace("good.otlp.jsonl", "none.jsonl"), "none.jsonl"),
            ("[", "canaries.yaml"),
            ("- name: a\n  name: b", "canaries.yaml:2:3 .*given twice; the first is in line 1"),
            ("a: &a [x, x]\n" + "".join(f"k{n}: &k{n} [{'*a, ' * 90}]\n" for n in range(20)), "through its aliases"),
            ("- " * 10_000, "nested more than 30 levels deep"),
            ("- {name: 12:30:00}", "12:30:00 is 45000 to YAML"),
        ],
    )
    def test_a_file_that_cannot_be_used_is_refused(self, tmp_path: Path, text: str, says: str) -> None:
        with pytest.raises(UserError, match=says):
            read_canaries(_canaries(tmp_path, text))


def test_agreement_is_shown_beside_the_scores() -> None:
    summary = Summary()
    result: dict[str, Any] = {
        "level": "trace",
        "metric": "confidence",
        "outcome": "scored",
        "why": None,
        "score": 0.9,
        "reason": "",
        "trace_id": "t",
        "session_id": None,
        "agent": "a",
        "success": True,
        "label": "pass",
    }
    for difference in (0.0, 0.2):
        summary.add(
            {
                **result,
                "metadata": {
                    "retest": {"score": 0.9 - difference, "difference": difference, "flipped": difference > 0}
                },
            }
        )
    summary.add({**result, "metadata": {}})
    assert summary.agreement() == {"trace.confidence": AskedTwice(0.9, 1, 2, False)}
    alike = {"value": 1.0, "n": 20, "label": "does not discriminate"}
    summary.add({**result, "metadata": {"judge_agreement": alike}})
    assert summary.agreement()["trace.confidence"].alike
