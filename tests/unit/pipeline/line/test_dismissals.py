"""A dismissed finding is not counted until the dismissal is withdrawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.scoring.evaluator.judged import verdict
from pandaeval_collector.show.api.overview import window_rates
from pandaeval_collector.store import Dismissal, people
from pandaeval_collector.store.failing import read_failures
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.rates import read_rates
from pandaeval_lab.replay.files import Input
from pandaeval_otel.wire.labels import HumanLabel
from support.ferry_desk import MS, span
from support.line import RunningPipeline
from support.made_traces import START_NS, MadeTrace
from support.results import JUDGE, result
from support.two_lines import QUIET, Two
from unit.pipeline.line.test_recoveries import CLAIMED, TALK


def _crash() -> MadeTrace:
    trace_id = (9).to_bytes(16, "big")
    root = span(trace_id, 0, b"", "invoke_agent desk", START_NS, 90, {"gen_ai.operation.name": "invoke_agent"})
    for key, value in (("gen_ai.agent.name", "desk"), ("gen_ai.conversation.id", "s")):
        root.attributes.add(key=key).value.string_value = value
    root.status.code, root.status.message = 2, "ConnectionError: refused"
    child = span(trace_id, 1, root.span_id, "chat m", START_NS + MS, 50, {"gen_ai.operation.name": "chat"})
    return MadeTrace(trace_id, "s", "shop", (child, root))


CRASH = _crash()
LOOP = Path(__file__).parents[3] / "golden" / "captures" / "langgraph_genai" / "tool_loop.otlp.jsonl"
REPEATED = "turn.tool_call_behavior_failure"


async def _dismiss(
    line: RunningPipeline, trace: MadeTrace, metric: str = "trace.response", undone: bool = False
) -> None:
    label = HumanLabel(trace.trace_id.hex(), metric, None, True, "mia", 1.0, "the tool succeeded")
    await line.pipeline.commit(lambda: _asked(line, Dismissal(label, undone)))


async def test_a_dismissed_turn_finding_is_not_counted_until_the_dismissal_is_withdrawn(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        for request in Input(str(LOOP)).requests():
            await line.pipeline.traces(request.data)
        await line.settle()
        before = _counted(line)
        [turn] = [each for each in line.results() if f"turn.{each['metric']}" == REPEATED]
        assert (turn["evaluator"]["kind"], turn["success"]) == ("code", False)
        label = HumanLabel(f"{turn['trace_id']}:{turn['span_id']}", REPEATED, None, True, "mia", 1.0, "a retry")

        await line.pipeline.commit(lambda: _asked(line, Dismissal(label)))
        await line.settle()
        after = _counted(line)
        assert (turn["trace_id"], turn["label"]) in before["failed"] - after["failed"]
        assert "tool_call_behavior_failure" not in after["rates"]
        newest = [each for each in line.results() if f"turn.{each['metric']}" == REPEATED][-1]
        assert (newest["label"], newest["success"], newest["span_id"]) == ("dismissed", None, turn["span_id"])

        await line.pipeline.commit(lambda: _asked(line, Dismissal(label, undone=True)))
        await line.settle()
        assert {**_counted(line), "groups": before["groups"]} == before


async def test_a_dismissed_finding_no_longer_determines_the_first_wrong_step(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        for request in Input(str(LOOP)).requests():
            await line.pipeline.traces(request.data)
        await line.settle()
        before, rated = _blame(line), _rated(line)
        reasons = before["metadata"]["step"]["reasons"]
        failed = [each for each in line.results() if each["success"] is False and each["level"] != "session"]
        assert set(reasons) <= {f"found by {each['metric']}" for each in failed}
        labels = [_label(each) for each in failed]
        assert len(labels) > 1
        for label, found in zip(labels, failed, strict=True):
            assert "candidates" in _blame(line)["metadata"]
            await _commit(line, Dismissal(label))
            assert f"found by {found['metric']}" not in str(_blame(line)["metadata"])
        assert _blame(line)["outcome"] == "unscored"
        assert "candidates" not in _blame(line)["metadata"]
        assert _rated(line) == ["unscored: insufficient_evidence"]

        for label in labels:
            await _commit(line, Dismissal(label, undone=True))
        assert (_blame(line)["metadata"], _blame(line)["reason"]) == (before["metadata"], before["reason"])
        assert _rated(line) == rated


def _rated(line: RunningPipeline) -> list[str]:
    finder = Finder(line.folder)
    try:
        return [verdict for metric, _, verdict, _ in read_rates(finder, Wanted()) if metric == "trace.blame"]
    finally:
        finder.close()


async def _commit(line: RunningPipeline, asked: Dismissal) -> None:
    await line.pipeline.commit(lambda: _asked(line, asked))
    await line.settle()


def _blame(line: RunningPipeline) -> dict[str, Any]:
    return [each for each in line.results() if each["metric"] == "blame"][-1]


def _label(result: dict[str, Any]) -> HumanLabel:
    of_turn = result["level"] == "turn"
    unit = f"{result['trace_id']}:{result['span_id']}" if of_turn else result["trace_id"]
    return HumanLabel(unit, f"{result['level']}.{result['metric']}", None, True, "mia", 1.0, "a retry")


async def _asked(line: RunningPipeline, asked: Dismissal) -> Any:
    return line.line.dismiss(asked)


def _counted(line: RunningPipeline) -> dict[str, Any]:
    finder = Finder(line.folder)
    try:
        failed, groups, _ = read_failures(finder, Wanted())
        rates = {rate.metric: (rate.passed, rate.failed) for rate in window_rates(read_rates(finder, Wanted()))}
        bad = {row.facts["id"] for row in finder.traces(Wanted(failed=True)).rows}
    finally:
        finder.close()
    return {"failed": {(row.trace_id, row.label) for row in failed}, "groups": groups, "rates": rates, "bad": bad}


def _reliability(line: RunningPipeline) -> float:
    """Return the last score, or 2.0 if the session has no score."""
    score = [each for each in line.results() if each["metric"] == "agent_reliability"][-1]["score"]
    return 2.0 if score is None else float(score)


@pytest.mark.parametrize("trace", [CLAIMED, CRASH], ids=["false_success", "error"])
async def test_a_dismissed_finding_is_not_counted_until_the_dismissal_is_withdrawn(
    tmp_path: Path, trace: MadeTrace
) -> None:
    async with RunningPipeline(tmp_path) as line:
        for each in (trace, TALK):
            await line.send(each)
        await line.settle()
        before, low = _counted(line), _reliability(line)
        [original] = line.of(trace, "response")
        assert original["success"] is False
        assert {id_ for id_, _ in before["failed"]} == {trace.trace_id.hex()}

        await _dismiss(line, trace)
        await line.settle()
        after = _counted(line)
        standing = line.of(trace, "response")[-1]
        assert (standing["label"], standing["success"], standing["score"]) == ("dismissed", None, original["score"])
        assert (standing["revision"], standing["reason"]) == (2, original["reason"])
        assert (after["failed"], after["bad"]) == (set(), set())
        assert after["rates"]["response"] == (before["rates"]["response"][0], 0)
        assert [group.count for group in after["groups"].values()] == [0]
        assert _reliability(line) > low
        [label] = people.labels(line.store.reads.connection())
        assert (label.annotator, label.passed, label.comment) == ("mia", True, "the tool succeeded")

        await _dismiss(line, trace, undone=True)
        await line.settle()
        again = _counted(line)
        assert again == {**before, "groups": again["groups"]}
        assert [group.count for group in again["groups"].values()] == [1]
        assert line.of(trace, "response")[-1]["id"] == original["id"]
        assert _reliability(line) == low
        assert not [*people.labels(line.store.reads.connection())]


async def test_late_spans_do_not_bring_a_dismissed_finding_back(tmp_path: Path) -> None:
    late = CLAIMED.spans[1]
    async with RunningPipeline(tmp_path) as line:
        await line.send(CLAIMED, [each for each in CLAIMED.spans if each is not CLAIMED.spans[0]])
        await line.wait(QUIET)
        assert line.of(CLAIMED, "response")[-1]["success"] is False, late.name
        await _dismiss(line, CLAIMED)
        await line.send(CLAIMED)
        await line.wait(QUIET)
        await line.settle()
        assert line.of(CLAIMED, "response")[-1]["label"] == "dismissed"
        assert line.of(CLAIMED, "blame")[-1]["outcome"] == "unscored"
        assert _counted(line)["failed"] == set()


async def test_a_dismissal_reaches_the_collector_that_scores_the_session(tmp_path: Path) -> None:
    """Two collectors of the same topics: one decides the trace, the other its session."""
    async with (
        RunningPipeline(tmp_path / "forwarder", hands_over=True) as forwarder,
        RunningPipeline(tmp_path / "owner", hands_over=True) as owner,
    ):
        both = Two(forwarder, owner)
        await both.decide(CRASH, TALK)
        await owner.settle()
        low = _reliability(owner)
        await owner.pipeline.commit(lambda: _disputed(owner))
        assert _verdict(owner) == ("disputed", None)

        await _dismiss(forwarder, CRASH)
        assert forwarder.pipeline.open_sessions == 0, "the owner scores it"
        await both.tell()
        await owner.settle()
        assert _reliability(owner) > low
        assert _verdict(owner) == ("pass", True)

        await _dismiss(forwarder, CRASH, undone=True)
        await both.tell()
        await owner.settle()
        assert _reliability(owner) == low
        assert _verdict(owner) == ("disputed", None)


async def _disputed(line: RunningPipeline) -> Any:
    """File a verdict that the crash disputes."""
    against = {"metric": "response", "reason": "it crashed", "trace_id": CRASH.trace_id.hex()}
    finding = verdict(Score(0.9, "All was done.", {"sure": 96}), (25.0, 75.0), against)
    about = {"level": "session", "session_id": "s", "trace_id": against["trace_id"]}
    made = result("correctness", finding, evaluator=JUDGE, **about)
    decision = Conclusion()
    line.line._revisions.add([replace(made, unit=replace(made.unit, id="s"))], decision)
    return decision


def _verdict(line: RunningPipeline) -> tuple[str, bool | None]:
    newest = [each for each in line.results() if each["metric"] == "correctness"][-1]
    return newest["label"], newest["success"]


async def test_a_trace_without_a_failure_cannot_be_dismissed(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        await line.send(TALK)
        await line.settle()
        before = line.results()
        await _dismiss(line, TALK)
        await _dismiss(line, replace(TALK, trace_id=b"\1" * 16))
        await _dismiss(line, TALK, undone=True)
        assert line.results() == before
        assert not line.store.people.has_labels()
