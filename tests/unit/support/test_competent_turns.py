"""The scripted judge follows its prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.judge.client import Judge, JudgeClient
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.prompt import messages
from pandaeval_collector.judge.rubric import QuestionPart, rubric_of
from pandaeval_collector.judge.turns import turn_view
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace
from support.competent import CompetentCaller
from support.competent_record import read
from support.competent_turns import asked_parts, of_turn
from support.judged import call, trace
from support.scripted_judge import Memory, question_in

METRICS = {metric.name: metric for metric in registry().values() if metric.level == "turn"}
PARTS = tuple(metric.part for metric in METRICS.values() if metric.part is not None)
ASKED = "Please tell me where my parcel PX-3391 is."
ANSWER = "Your parcel PX-3391 is in Leeds and arrives on 12 March."
FOUND = {"parcel_id": "PX-3391", "at": "Leeds", "expected": "2026-03-12"}


def run(answer: str = ANSWER, arguments: Mapping[str, str] | None = None, result: object = FOUND) -> Trace:
    looked = call(1, "track_parcel", arguments=arguments or {"parcel_id": "PX-3391"}, result=result)
    return trace(ASKED, answer, calls=[looked])


async def findings(subject: Trace, together: bool) -> dict[str, Finding | None]:
    view, desk = turn_view(subject, 0), JudgeClient(CompetentCaller(), Memory())
    shown, parts = pack(view.trace, b"s" * 32), PARTS if together else ()

    async def ask(name: str) -> Finding | None:
        metric = METRICS[name]
        assert metric.ask is not None
        return await metric.ask(view, Judge(desk, shown, "m", together=parts))

    return dict(zip(METRICS, await asyncio.gather(*map(ask, METRICS)), strict=True))


async def scores(subject: Trace) -> dict[str, float]:
    """Return the scores, equal in both forms."""
    shared, apart = [await findings(subject, together) for together in (True, False)]
    assert shared == apart
    return {name: each.value for name, each in shared.items() if isinstance(each, Score)}


async def test_a_good_turn_gets_the_best_score_in_every_metric() -> None:
    assert await scores(run()) == dict.fromkeys(METRICS, 1.0)


@pytest.mark.parametrize(
    ("subject", "lower"),
    [
        (run(ANSWER.replace("12", "17")), {"faithfulness", "agent_behavior_failure", "tool_call_behavior_failure"}),
        (run(arguments={"parcel_id": "PX-7000"}), {"tool_call_behavior_failure"}),
        (run("Your parcel PX-3391 is in Leeds and"), {"coherence", "helpfulness", "verbosity"}),
        (run(f"{ANSWER} {ANSWER}"), {"verbosity"}),
        (run("Our gardens open when spring comes."), {"relevance", "helpfulness", "agent_behavior_failure"}),
    ],
    ids=["invented value", "wrong argument", "broken off", "said twice", "another topic"],
)
async def test_a_fault_lowers_only_the_metrics_that_it_concerns(subject: Trace, lower: set[str]) -> None:
    found = await scores(subject)
    assert {name for name, value in found.items() if value < 1} == lower
    assert {*found} == {*METRICS}


def test_the_parts_of_a_question_are_found_with_their_criteria() -> None:
    text = rubric_of(PARTS).text
    form = "\n".join(f'"{part.name}": an object (' for part in PARTS)
    found = asked_parts(f"{text}\n\nexactly these fields:\n{form}")
    assert {name: text.strip() for name, text in found.items()} == {part.name: part.text.strip() for part in PARTS}


@pytest.mark.parametrize("lost", PARTS, ids=lambda part: part.name)
def test_a_part_without_criteria_is_not_rated_and_other_parts_are_unchanged(lost: QuestionPart) -> None:
    asked = messages(pack(run(), b"s" * 32), rubric_of(PARTS), {"calls": 1})
    record, whole = read(asked), question_in(asked)
    cut = whole.replace(lost.text.strip(), "")
    before, after = (of_turn(record, asked_parts(question)) for question in (whole, cut))
    assert after[lost.name].get("rating") is None
    assert not after[lost.name].get("labels")
    assert before[lost.name] != after[lost.name]
    assert {**before, lost.name: None} == {**after, lost.name: None}
