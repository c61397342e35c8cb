"""Does the check of a judge find what is wrong with it?"""

from __future__ import annotations

import json
import lzma
import math
from importlib.resources import files
from pathlib import Path

import pytest

from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall, OverBudgetError
from pandaeval_collector.judge.known import Price
from pandaeval_lab.judge_check import CheckRun, JudgeAwayError, Sheet, planned, sheet
from pandaeval_lab.judge_check.questions import CheckItem, attacks, forecast, known_runs, parallel_swapped
from support import check_judges
from support.attacks import corpus
from support.check_judges import Opinion, OpinionCaller

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
ITEMS = planned(attacks=34)
RECORDED = {
    "returned": "openai_agents_genai/good",
    "library": "strands/good_session",
    "visit": "langgraph_genai/repeated_answer",
    "wrong_tool": "openai_agents_genai/wrong_tool",
    "gives_up": "langgraph_genai/gives_up",
    "off_topic": "vercel_ai/off_topic",
}


async def _sheet(opinion: Opinion, items: list[CheckItem] = ITEMS) -> Sheet:
    caller = OpinionCaller(opinion)
    run = CheckRun(caller, "m")
    await run.run(items)
    assert run.spent.calls == caller.calls
    return sheet("m", len(items), run.replies, run.spent)


def _failed(found: Sheet) -> set[str]:
    return {probe.name for probe in found.probes if not probe.passed}


async def test_a_judge_that_does_its_work_passes() -> None:
    found = await _sheet(check_judges.good)
    assert found.trusted, found.probes
    assert found.last_line() == "m: passed all 7 probes"
    assert {name: set(said) for name, (_, said) in found.runs.items()} == {
        run.name: {0.95 if run.good else 0.05} for run in known_runs()
    }


@pytest.mark.parametrize(
    ("opinion", "finds"),
    [
        (check_judges.constant, {"canaries", "discrimination", "injection"}),
        (check_judges.obedient, {"injection"}),
        (check_judges.flattered, {"verbosity"}),
        (check_judges.hasty, {"position"}),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
async def test_each_fault_is_found_by_the_probe_that_is_for_it(opinion: Opinion, finds: set[str]) -> None:
    found = await _sheet(opinion)
    assert not found.trusted
    assert _failed(found) == finds


async def test_one_that_throws_dice_does_not_repeat_itself() -> None:
    assert _failed(await _sheet(check_judges.noisy)) >= {"repeatability", "canaries"}


async def test_one_that_gives_no_verdicts_fails_and_nothing_is_made_of_it() -> None:
    found = await _sheet(check_judges.formless, ITEMS[:21])
    assert _failed(found) == {probe.name for probe in found.probes}
    unmeasured = [probe for probe in found.probes if probe.n == 0]
    assert {probe.name for probe in unmeasured} > {"discrimination", "repeatability", "injection"}
    assert all(math.isnan(probe.value) for probe in unmeasured)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["passed"] is False


class _Failing(OpinionCaller):
    """Its provider fails after so many answers."""

    def __init__(self, good: int, error: Exception) -> None:
        super().__init__(check_judges.good)
        self._good, self._error = good, error

    async def complete(self, call: ModelCall) -> ModelAnswer:
        if self.calls >= self._good:
            raise self._error
        return await super().complete(call)


async def test_a_wrong_key_ends_it_at_once() -> None:
    run = CheckRun(_Failing(0, CallFailedError(CallFailure.DENIED, "no key")), "m")
    with pytest.raises(JudgeAwayError, match="no key"):
        await run.run(ITEMS)
    assert not run.replies


async def test_a_model_that_never_answers_is_not_asked_to_the_end() -> None:
    run = CheckRun(_Failing(0, CallFailedError(CallFailure.REFUSED, "no such prompt")), "m")
    with pytest.raises(JudgeAwayError):
        await run.run(ITEMS)
    assert not run.replies


@pytest.mark.parametrize(
    "error", [CallFailedError(CallFailure.REFUSED, "no"), OverBudgetError()], ids=["refused", "budget"]
)
async def test_what_could_not_be_asked_is_no_verdict_on_the_model(error: Exception) -> None:
    run = CheckRun(_Failing(60, error), "m")
    await run.run(ITEMS)
    found = sheet("m", len(ITEMS), run.replies, run.spent)
    assert not found.complete
    assert not found.trusted
    assert "NOT CONCLUDED" in found.last_line()


def test_the_runs_are_recordings_of_ours_and_the_attacks_are_of_the_corpus() -> None:
    for name, recording in RECORDED.items():
        packed = files("pandaeval_lab.judge_check").joinpath("runs", f"{name}.otlp.jsonl.xz").read_bytes()
        assert lzma.decompress(packed) == (GOLDEN / f"{recording}.otlp.jsonl").read_bytes()
    assert {run.name for run in known_runs()} == {*RECORDED, "hallucinates"}
    assert set(attacks()) <= {(attack.family, attack.text) for attack in corpus()}
    assert len({family for family, _ in attacks()[:40]}) >= 30


def test_variants_change_what_they_are_to_change_and_nothing_else() -> None:
    [returned] = [run for run in known_runs() if run.name == "returned"]
    swapped = parallel_swapped(returned.trace)
    assert swapped is not None
    assert [each.name for each in swapped.tool_calls] == ["check_stock", "find_order", "start_return"]
    assert sum(item.form.startswith("parallel") for item in ITEMS) == 1
    plain = {item.case: item.pack for item in ITEMS if item.kind == "plain"}
    for item in ITEMS:
        if item.form.startswith("sections"):
            lines = sorted(line for line in item.pack.text.splitlines() if line[:2] not in ("<<", "##"))
            assert lines == sorted(x for x in plain[item.case].text.splitlines() if x[:2] not in ("<<", "##"))
            assert item.pack.text.index("WHAT HAPPENED") < item.pack.text.index("TOOLS THAT THE AGENT HAD")
    assert len({item.pack.nonce for item in ITEMS if item.form.startswith("round")}) == 3 * len(known_runs())


def test_what_it_will_take_is_said_before_it_begins() -> None:
    expected = forecast(ITEMS, Price(1e-6, 2e-6))
    assert expected.calls == len(ITEMS)
    assert expected.usd is not None
    assert expected.usd == pytest.approx((expected.tokens + 150 * len(ITEMS)) * 1e-6)
    assert forecast(ITEMS, None).usd is None
