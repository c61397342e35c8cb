"""Results of older revisions are retracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trigger
from support.embedder import WordEmbedder
from support.ferry_desk import (
    BOOKED,
    INVENTED,
    INVENTS,
    KNOWN,
    asked_again,
    grounding,
    trace,
    with_last_word,
)
from support.judged import filed_here, stored
from support.line import RunningPipeline, as_file
from support.made_traces import MadeTrace
from support.scripted_judge import RIGHT, Answers, ScriptedCaller
from support.two_lines import QUIET, two


async def test_a_result_is_retracted_if_the_newest_revision_leaves_nothing_to_check(
    tmp_path: Path,
) -> None:
    late = with_last_word(INVENTS, "With pleasure.")
    async with RunningPipeline(tmp_path) as line:
        await line.send(INVENTS)
        await line.wait(QUIET)
        assert grounding(line, INVENTS)["success"] is False
        await line.send(late)
        await line.wait(200)
        found = grounding(line, INVENTS)
        assert (found["outcome"], found["success"], found["revision"]) == ("unscored", None, 2)
        assert "does not apply any more" in found["reason"]
        await line.send(with_last_word(late, "Anything else?"))
        await line.wait(200)
        assert len(line.of(INVENTS, "grounding")) == 2, "retracted once"
        await line.settle()
        assert line.standing() == as_file([replace(INVENTS, spans=(*late.spans, *INVENTS.spans))])


async def test_blame_is_retracted_with_the_failure_that_it_explains(tmp_path: Path) -> None:
    failed = trace(5, f"You are on the {INVENTED}.", result=BOOKED, session=None)
    late = with_last_word(failed, "With pleasure.")
    async with RunningPipeline(tmp_path) as line:
        await line.send(failed)
        await line.wait(QUIET)
        assert line.of(failed, "blame")[-1]["outcome"] == "scored"
        await line.send(late)
        await line.wait(200)
        assert line.of(failed, "blame")[-1]["outcome"] == "unscored"
        assert line.standing() == as_file([replace(failed, spans=(*late.spans, *failed.spans))])


async def test_a_turn_result_is_retracted_if_its_span_is_no_longer_a_turn(tmp_path: Path) -> None:
    """The agent's own span arrives late."""
    once = trace(6, "It is full.", result=BOOKED, session=None)
    calls = tuple(step for number in (4, 5, 6) for step in asked_again(once.spans[1], number))
    whole = replace(once, spans=(*calls, once.spans[0], once.spans[-1]))
    async with RunningPipeline(tmp_path) as line:
        for spans in (whole.spans[:-1], whole.spans[-1:]):
            await line.send(whole, spans)
            await line.wait(200)
        before, now, gone = line.of(whole, "tool_call_behavior_failure")
        assert (before["level"], before["success"]) == ("turn", False)
        assert (now["span_id"], now["success"]) == (whole.spans[-1].span_id.hex(), False)
        assert (gone["span_id"], gone["outcome"], gone["revision"]) == (before["span_id"], "unscored", 2)
        assert line.standing() == as_file([whole])


async def test_an_owner_also_retracts_a_result_of_an_older_revision(tmp_path: Path) -> None:
    late = with_last_word(INVENTS, "With pleasure.")
    async with two(tmp_path) as both:
        await both.decide(INVENTS)
        await both.owner.wait(1)
        assert grounding(both.owner, INVENTS)["success"] is False
        await both.forwarder.send(late)
        await both.forwarder.wait(200)
        await both.tell()
        await both.owner.settle()
        assert grounding(both.owner, INVENTS)["outcome"] == "unscored"
        assert both.standing() == as_file([replace(INVENTS, spans=(*late.spans, *INVENTS.spans))])


async def test_an_owner_does_not_retract_a_result_that_the_forwarder_has_replaced(tmp_path: Path) -> None:
    called = trace(4, "", result={"sailing": INVENTED}).spans[1]
    late = replace(INVENTS, spans=(called,))
    async with two(tmp_path) as both:
        await both.decide(INVENTS)
        await both.owner.wait(1)
        await both.forwarder.send(late)
        await both.forwarder.wait(200)
        await both.tell()
        await both.owner.settle()
        assert grounding(both.forwarder, INVENTS)["success"] is True
        assert not [each for each in both.owner.of(INVENTS, "grounding") if each["metadata"].get("taken_back")]


class Asked:
    """A line with an immediate judge."""

    def __init__(self, folder: Path, metrics: set[str], selection: Selection | None = None) -> None:
        self.store = Store(folder, "off")
        judge = JudgeSettings("m", delay=0.0, selection=selection or Selection())
        self._evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(metrics, judge=judge))
        self._line, self._revision = Line(self.store.reads, self._evaluator), 0
        self.answers: Answers = {}

    async def _settle(self, decide: Callable[[], Conclusion]) -> None:
        self.store.commit(decide().changes).result()

    async def revise(self, made: MadeTrace, spans: Iterable[Span]) -> None:
        """Decide the next revision and answer its questions."""
        self._revision += 1
        due = stored(self.store, replace(made, spans=tuple(spans)), self._revision)
        self.store.commit(self._line.decide([due]).changes).result()
        await self._answer()

    async def close(self, session_id: str) -> None:
        """Close a session and answer its questions."""
        self.store.commit(self._line.close_sessions({session_id: Trigger.IDLE}).changes).result()
        await self._answer()

    async def _answer(self) -> None:
        attempts = Attempts(
            self.store,
            self._line.scores,
            self._evaluator,
            JudgeClient(ScriptedCaller(self.answers), StoredMemory(self.store, Telemetry())),
            filed_here(self._line, self._settle),
            Telemetry(),
        )
        await Runner(self.store, attempts).drain()

    def said(self, metric: str) -> list[dict[str, Any]]:
        found = [orjson.loads(row.body) for row in self.store.reads.results_after(0)]
        return [each for each in found if each["metric"] == metric]


@pytest.fixture
def asked(tmp_path: Path) -> Iterable[Callable[..., Asked]]:
    made: list[Asked] = []

    def make(*metrics: str, selection: Selection | None = None) -> Asked:
        made.append(Asked(tmp_path, {*metrics}, selection))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


async def test_judge_results_of_a_former_turn_are_retracted_and_new_judge_results_stay(
    asked: Callable[..., Asked],
) -> None:
    of = asked("turn.helpfulness", "trace.confidence")
    made = trace(7, "It is full.", result=BOOKED, session=None)
    await of.revise(made, made.spans[:-1])
    await of.revise(made, made.spans)
    first, *rest = of.said("helpfulness")
    gone, now = sorted(rest, key=lambda each: str(each["outcome"]), reverse=True)
    assert (first["outcome"], gone["outcome"], now["outcome"]) == ("scored", "unscored", "scored")
    assert gone["span_id"] == first["span_id"] != now["span_id"]
    assert [each["outcome"] for each in of.said("confidence")] == ["scored", "scored"]


def _verdict(step: str | None) -> dict[str, Any]:
    things = [{"thing": "A ferry.", "became": "wrong", "shown_by": step}]
    wrong = {} if step is None else {"things": things, "first_wrong_step": step, "correct": False, "sure": 5}
    return {**RIGHT, **wrong, "goal_completed": step is None, "friction": "none", "friction_turns": []}


@pytest.mark.parametrize("later", [None, "call 2"])
async def test_a_later_session_verdict_retracts_the_blame_of_the_earlier_verdict(
    asked: Callable[..., Asked], later: str | None
) -> None:
    of = asked("session.correctness", "trace.blame")
    traces = [trace(number, f"It is {KNOWN}.", result=BOOKED) for number in (1, 2, 3)]
    for made, step in zip(traces, (None, "call 1", later), strict=True):
        of.answers = {"conversation": _verdict(step)}
        await of.revise(made, made.spans)
        await of.close("s")
    assert [each["success"] for each in of.said("correctness")] == [True, False, later is None]
    outcomes = [(each["trace_id"], each["outcome"]) for each in of.said("blame")]
    first, second, _ = (made.trace_id.hex() for made in traces)
    moved = [(second, "scored")] if later else []
    assert sorted(outcomes) == sorted([(first, "scored"), (first, "unscored"), *moved])
    assert {each["metadata"].get("taken_back") for each in of.said("blame") if each["outcome"] == "unscored"} == {True}


async def test_blame_by_a_code_finding_stays_if_the_blame_by_a_verdict_is_retracted(
    asked: Callable[..., Asked],
) -> None:
    of = asked("session.correctness", "trace.grounding", "trace.blame")
    more = trace(5, f"It is {KNOWN}.", result=BOOKED)
    for made, step in ((INVENTS, "turn 1"), (more, None)):
        of.answers = {"conversation": _verdict(step)}
        await of.revise(made, made.spans)
        await of.close("s")
    reasons = [each["metadata"]["step"]["reasons"] for each in of.said("blame")]
    assert reasons == [["found by correctness", "found by grounding"], ["found by grounding"]], "as before the verdict"


def blame(line: RunningPipeline, of: MadeTrace) -> dict[str, Any]:
    return line.of(of, "blame")[-1]


async def test_a_fabricated_value_is_blamed_on_its_model_call(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        await line.send(INVENTS)
        await line.wait(QUIET)
        [model] = [each for each in INVENTS.spans if each.name.startswith("chat")]
        blame_result = blame(line, INVENTS)
        assert (blame_result["outcome"], blame_result["span_ids"]) == ("scored", [model.span_id.hex()])
        assert grounding(line, INVENTS)["metadata"]["blame"] == blame_result["metadata"]["step"]
        await line.settle()
        assert line.standing() == as_file([INVENTS])


@pytest.mark.parametrize("first", [True, False])
async def test_blame_for_a_value_is_retracted_if_an_earlier_trace_contains_the_value(
    tmp_path: Path, first: bool
) -> None:
    knows = trace(1, "It is booked.", result={"sailing": INVENTED})
    async with RunningPipeline(tmp_path) as line:
        for each in (knows, INVENTS) if first else (INVENTS, knows):
            await line.send(each)
            await line.wait(QUIET)
        assert [each["outcome"] for each in line.of(INVENTS, "blame")] == ([] if first else ["scored", "unscored"])
        await line.settle()
        assert line.standing() == as_file([knows, INVENTS])
