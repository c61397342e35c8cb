"""The judge check finds the flaws of a judge."""

from __future__ import annotations

import asyncio
import json
import lzma
from importlib.resources import files
from pathlib import Path

import pytest

from lab.rig import make_canaries
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError
from pandaeval_collector.judge.known_models import Price
from pandaeval_lab.judge_check.check_run import CheckRun, forecast
from pandaeval_lab.judge_check.known_runs import known_runs, known_sessions
from pandaeval_lab.judge_check.probes import CheckResult, check_result
from pandaeval_lab.judge_check.questions import CheckItem, attacks, canaries, planned
from support import check_judges
from support.attacks import corpus
from support.check_judges import Opinion, OpinionCaller
from support.scripted_judge import record_of

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
ITEMS = [*canaries(), *planned(attacks=34)]
RECORDED = {
    "returned": "openai_agents_genai/good",
    "library": "strands/good_session",
    "visit": "langgraph_genai/repeated_answer",
    "wrong_tool": "openai_agents_genai/wrong_tool",
    "gives_up": "langgraph_genai/gives_up",
    "off_topic": "vercel_ai/off_topic",
}


async def _result(opinion: Opinion, items: list[CheckItem] = ITEMS) -> CheckResult:
    caller = OpinionCaller(opinion)
    run = CheckRun(caller, "m", lambda done: None, 8)
    await run.run(items)
    assert run.spent.calls == caller.calls
    return check_result("m", len(items), run.replies, run.spent)


def _failed(found: CheckResult) -> set[str]:
    return {probe.name for probe in found.probes if not probe.passed}


async def test_a_good_judge_passes() -> None:
    found = await _result(check_judges.good)
    assert found.trusted, found.probes
    assert found.last_line() == "m: passed all 5 probes"
    assert found.fit
    assert (found.session_tokens, found.session_usd) == (1040, pytest.approx(0.0001))


@pytest.mark.parametrize(
    ("opinion", "finds"),
    [
        (check_judges.constant, {"canaries", "sessions", "injection"}),
        (check_judges.obedient, {"injection"}),
        (check_judges.flattered, {"verbosity"}),
        (check_judges.hasty, {"position"}),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
async def test_each_flaw_is_found_by_its_probes(opinion: Opinion, finds: set[str]) -> None:
    found = await _result(opinion)
    assert not found.trusted
    assert _failed(found) == finds


@pytest.mark.parametrize(("wrong", "fit"), [(2, True), (3, False)])
async def test_a_judge_is_fit_with_ten_of_twelve_sessions_right(wrong: int, fit: bool) -> None:
    doubted = {item.pack.text for item in canaries()[:wrong]}

    def opinion(messages: check_judges.Messages, nth: int) -> float | None:
        return 0.2 if record_of(messages) in doubted else check_judges.good(messages, nth)

    found = await _result(opinion, canaries())
    assert found.fit is fit
    assert next(probe.figure for probe in found.probes if probe.name == "sessions") == f"{12 - wrong} of 12"


async def test_a_missing_verdict_on_a_session_makes_a_judge_unfit() -> None:
    silent = canaries()[0].pack.text

    def opinion(messages: check_judges.Messages, nth: int) -> float | None:
        return None if record_of(messages) == silent else check_judges.good(messages, nth)

    found = await _result(opinion, canaries())
    assert not found.fit
    assert not (await _result(check_judges.good, canaries()[1:])).fit, "one session was not judged"
    assert found.report().to_dict()["correctness"]["fit"] is False


async def test_a_judge_without_verdicts_fails_all_probes_without_measured_values() -> None:
    found = await _result(check_judges.formless, ITEMS[:33])
    assert _failed(found) == {probe.name for probe in found.probes}
    unmeasured = [probe for probe in found.probes if probe.n == 0]
    assert {probe.name for probe in unmeasured} > {"position", "injection"}
    assert all(probe.value is None for probe in unmeasured)
    assert json.loads(json.dumps(found.report().to_dict(), allow_nan=False))["passed"] is False


class _Failing(OpinionCaller):
    """Fails after ``number`` answers."""

    def __init__(self, good: int, error: Exception) -> None:
        super().__init__(check_judges.good)
        self._good, self._error = good, error
        self.failed = 0

    async def complete(self, call: ModelCall) -> ModelAnswer:
        await asyncio.sleep(0)
        if self.calls >= self._good:
            self.failed += 1
            raise self._error
        return await super().complete(call)


@pytest.mark.parametrize("failure", [CallFailure.DENIED, CallFailure.REFUSED])
async def test_a_check_ends_with_the_error_of_the_first_call(failure: CallFailure) -> None:
    caller = _Failing(0, CallFailedError(failure, "not here"))
    run = CheckRun(caller, "m", lambda done: None, 8)
    with pytest.raises(CallFailedError, match="not here"):
        await run.run(ITEMS)
    assert caller.failed == 1
    assert not run.replies


async def test_a_key_that_expires_ends_the_check_before_all_questions_are_sent() -> None:
    caller = _Failing(20, CallFailedError(CallFailure.DENIED, "no key"))
    run = CheckRun(caller, "m", lambda done: None, 8)
    with pytest.raises(CallFailedError, match="no key"):
        await run.run(ITEMS)
    assert caller.calls == 20
    assert caller.failed < len(ITEMS) / 2


@pytest.mark.parametrize(
    "error", [CallFailedError(CallFailure.REFUSED, "no"), OverBudgetError()], ids=["refused", "budget"]
)
async def test_a_check_with_failed_calls_is_not_concluded(error: Exception) -> None:
    run = CheckRun(_Failing(60, error), "m", lambda done: None, 8)
    await run.run(ITEMS)
    found = check_result("m", len(ITEMS), run.replies, run.spent)
    assert not found.complete
    assert not found.trusted
    assert "NOT CONCLUDED" in found.last_line()


def test_known_runs_are_golden_recordings_and_attacks_come_from_the_corpus() -> None:
    for name, recording in RECORDED.items():
        packed = files("pandaeval_lab.judge_check").joinpath("runs", f"{name}.otlp.jsonl.xz").read_bytes()
        assert lzma.decompress(packed) == (GOLDEN / f"{recording}.otlp.jsonl").read_bytes()
    assert {run.name for run in known_runs()} == {*RECORDED, "hallucinates"}
    assert set(attacks()) <= {(attack.family, attack.text) for attack in corpus()}
    assert len({family for family, _ in attacks()[:40]}) >= 30


def test_known_sessions_match_their_build_script() -> None:
    """Fix: `python tests/lab/rig/make_canaries.py`."""
    assert lzma.decompress(
        files("pandaeval_lab.judge_check").joinpath("runs", "sessions.otlp.jsonl.xz").read_bytes()
    ) == (make_canaries.lines())
    names = [run.name for run in known_sessions()]
    assert [name.partition(":")[0] for name in names] == ["right"] * 6 + ["wrong"] * 6
    for item, name in zip(canaries(), names, strict=True):
        assert name not in item.pack.text, "the judge must not see the right verdict"


def test_section_variants_change_only_the_order_and_rounds_have_their_own_nonces() -> None:
    plain = {item.case: item.pack for item in ITEMS if item.kind == "plain"}
    for item in ITEMS:
        if item.form.startswith("sections"):
            lines = sorted(line for line in item.pack.text.splitlines() if line[:2] not in ("<<", "##"))
            assert lines == sorted(x for x in plain[item.case].text.splitlines() if x[:2] not in ("<<", "##"))
            assert item.pack.text.index("WHAT HAPPENED") < item.pack.text.index("TOOLS THAT THE AGENT HAD")
    assert len({item.pack.nonce for item in ITEMS if item.form.startswith("round")}) == 3 * len(known_runs())


def test_the_forecast_gives_tokens_and_cost() -> None:
    tokens, usd = forecast(ITEMS, Price(1e-6, 2e-6))
    assert usd == pytest.approx((tokens + 150 * (len(ITEMS) + 2 * 12)) * 1e-6)
    assert forecast(ITEMS, None) == (tokens, None)
