"""A separate session owner gives the same results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.job_traces import EarlierTraces
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.kafka.members import with_contents
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.facts import unpack
from pandaeval_collector.pipeline.line.handover import unpacked
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.pipeline.owned_sessions import OwnedSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store
from pandaeval_otel._proto.member_pb2 import Member
from support.chained import turn
from support.embedder import WordEmbedder
from support.judged import ScriptedConfidence, filed_here, stored
from support.line import RunningPipeline, as_file, in_session
from support.made_traces import Composer, MadeTrace
from support.two_lines import QUIET, two

_SAID = "Your parcel is on its way."


async def test_a_forwarder_and_an_owner_together_give_the_results_of_a_file(tmp_path: Path) -> None:
    composer = Composer(3)
    traces = [composer.trace() for _ in range(40)]
    async with two(tmp_path) as both:
        await both.decide(*traces[:25])
        await both.decide(*traces[25:])
        assert not both.forwarder.pipeline.open_sessions
        await both.owner.settle()
        assert both.standing() == as_file(traces)


async def test_a_member_that_is_delivered_twice_counts_once(tmp_path: Path) -> None:
    traces = [turn(1, session="s"), turn(2, session="s")]
    async with two(tmp_path) as both:
        await both.decide(*traces)
        await both.owner.settle()
        results = both.owner.results()
        await both.owner.adopt([*both.handed, *both.handed])
        await both.owner.restart()
        await both.owner.settle()
        assert both.owner.results() == results
        assert len(both.owner.store.reads.session_traces("s")) == 2


async def test_late_spans_that_name_another_session_move_the_trace(tmp_path: Path) -> None:
    first, second = (in_session(each, "one") for each in _with_session(2))
    moved = in_session(first, "elsewhere", first.spans[-1:])  # the late root names another session
    async with two(tmp_path) as both:
        await both.forwarder.send(first, first.spans[:-1])
        await both.decide(second)
        await both.forwarder.wait(200)
        await both.tell()
        assert both.sessions(first, second) == ["one", "one"]
        await both.forwarder.send(moved, moved.spans[-1:])
        await both.forwarder.wait(200)
        await both.tell()
        assert both.sessions(first, second) == ["elsewhere", "one"]
        await both.owner.settle()
        assert both.standing() == as_file([moved, second])
        messages = [unpacked(each) for each in both.handed]
        assert [getattr(each, "left", None) for each in messages][-2:] == [True, False]


async def test_a_trace_that_left_a_session_is_no_longer_its_member(tmp_path: Path) -> None:
    """Its new session has another owner."""
    first, second = turn(1, session="one"), turn(2, session="one")
    async with two(tmp_path) as both:
        await both.decide(first, second)
        await both.owner.adopt([_left(first.trace_id, "one")])
        assert both.sessions(first, second) == [None, "one"]
        await both.owner.settle()
        whole = as_file([second])
        session = {key: result for key, result in both.owner.standing().items() if key[0] == "one"}
        assert session == {key: result for key, result in whole.items() if key[0] == "one"}


@pytest.mark.parametrize("trigger", ["idle", "explicit"])
async def test_a_member_that_arrives_while_its_session_is_being_closed_is_still_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trigger: str
) -> None:
    first, second = turn(2, session="s", said=_SAID), turn(3, session="s", said=_SAID)
    close_due = OwnedSessions.close_due
    async with two(tmp_path) as both:
        await both.decide(first)
        await both.forwarder.send(second)
        await both.forwarder.wait(QUIET)

        over = both.owner.now + 1000
        if trigger == "explicit":
            over = both.owner.now
            both.owner.pipeline.end_session("s")

        async def late(closer: OwnedSessions, now: float) -> None:
            if not closer.open or now < over:
                return await close_due(closer, now)
            monkeypatch.setattr(OwnedSessions, "close_due", close_due)
            await asyncio.gather(both.tell(), close_due(closer, now))

        monkeypatch.setattr(OwnedSessions, "close_due", late)
        await both.owner.settle()
        assert both.standing() == as_file([first, second])
        triggers = [each["trigger"] for each in both.owner.results() if each["level"] == "session"]
        assert set(triggers) == {trigger}


async def test_the_end_of_a_session_is_sent_to_its_owner(tmp_path: Path) -> None:
    trace = turn(1, session="s")
    async with two(tmp_path) as both:
        await both.decide(trace)
        both.forwarder.pipeline.end_session("s")
        await both.forwarder.wait(1)
        await both.tell()
        assert both.handed[-1] == Member(session_id="s", session_end=True).SerializeToString()
        await both.owner.wait(1)
        assert not both.owner.pipeline.open_sessions
        assert {each["trigger"] for each in both.owner.results() if each["level"] == "session"} == {"explicit"}


async def test_an_owner_decides_spans_that_it_receives_of_a_handed_over_trace(tmp_path: Path) -> None:
    trace = turn(1, session="s")
    async with two(tmp_path) as both:
        await both.decide(trace)
        await both.owner.send(trace)
        await both.owner.wait(QUIET)
        assert both.owner.telemetry.total("pandaeval.spans", "rejected") == 0
        assert both.owner.results_of(trace)
        await both.owner.restart()
        assert len(both.owner.store.reads.session_traces("s")) == 1
        await both.owner.settle()
        assert both.owner.standing() == as_file([trace])


async def test_only_the_owner_gives_open_sessions_provisional_scores(tmp_path: Path) -> None:
    async with two(tmp_path, Timing(session_interim=5.0, upkeep=1e9)) as both:
        await both.decide(turn(1, session="s"), turn(2, session="s"))
        await both.owner.wait(6)
        await both.forwarder.wait(6)
        assert {each["final"] for each in both.owner.results() if each["level"] == "session"} == {False}
        assert all(each["final"] for each in both.forwarder.results())
        assert not [each for each in both.forwarder.results() if each["level"] == "session"]


async def test_invalid_member_messages_are_rejected(tmp_path: Path) -> None:
    async with two(tmp_path) as both:
        await both.decide(turn(1, session="s"))
        good = both.handed[0]
        bad = [
            b"\xff",
            b"",
            Member(session_end=True).SerializeToString(),
            good + Member(trace_id=b"short").SerializeToString(),
            good + Member(facts=b"[]").SerializeToString(),
            good + Member(answer=b"\x00").SerializeToString(),
            good + Member(session_id="s" * 5000).SerializeToString(),
            good + Member(start_ns=1 << 63).SerializeToString(),
        ]
        for each in bad:
            with pytest.raises(ValueError, match=r"^(it|not a protobuf Member)"):  # noqa: PT012
                MemberMessage.read(each)
                unpacked(each)


async def test_a_session_waits_for_a_judge_that_another_collector_calls(tmp_path: Path) -> None:
    evaluator = Evaluator(
        WordEmbedder(),
        EvaluatorSettings({"trace.confidence", "session.agent_consistency"}, judge=JudgeSettings("m", delay=0.0)),
    )
    store = Store(tmp_path / "forwarder", "off")
    line = Line(store.reads, evaluator, hands_over=True)

    async def settle(decide: Callable[[], Conclusion]) -> None:
        store.commit(decide().changes).result()

    async with RunningPipeline(
        tmp_path / "owner", Timing(judge_wait=1e6, upkeep=1e9), settings=evaluator.settings
    ) as owner:
        store.commit(line.decide([stored(store, turn(1, session="s"))]).changes).result()
        first = store.outbox.after(MEMBERS, 0)
        await owner.adopt([each.body for each in first])
        await owner.wait(1000)
        assert owner.pipeline.open_sessions == 1
        desk = JudgeClient(ScriptedConfidence(), StoredMemory(store, Telemetry()))
        await Runner(
            store,
            Attempts(
                store,
                line.scores,
                evaluator,
                desk,
                filed_here(line, settle),
                Telemetry(),
            ),
        ).drain()
        await owner.adopt([each.body for each in store.outbox.after(MEMBERS, first[-1].seq)])
        await owner.wait(1)
        assert not owner.pipeline.open_sessions
        [whole] = [each for each in owner.results() if each["level"] == "session"]
        assert (whole["outcome"], whole["coverage"]) == ("scored", 1.0)
    store.close()


async def test_an_owner_receives_the_spans_that_it_needs_to_judge_a_session(tmp_path: Path) -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings("m", delay=0.0)))
    store, traces = Store(tmp_path / "forwarder", "off"), [turn(1, session="s"), turn(2, session="s")]
    line = Line(store.reads, evaluator, hands_over=True)
    for each in traces:
        store.commit(line.decide([stored(store, each)]).changes).result()
    sent = [row.body for row in store.outbox.after(MEMBERS, 0)]
    full = [with_contents(each, store.reads.contents, 1 << 20) for each in sent]
    assert [with_contents(each, store.reads.contents, 10) for each in sent] == sent, "too large"
    async with RunningPipeline(tmp_path / "owner") as owner:
        await owner.adopt(full)
        found, missing = EarlierTraces(owner.store.reads, lambda trace: trace).whole("s")
        assert ([each.trace_id for each in found], missing) == ([each.trace_id.hex() for each in traces], 0)
        assert [each.digest for each in found] == [unpack(unpacked(each).row.body).digest for each in sent]
        await owner.send(traces[0], traces[0].spans[:1])
        await owner.wait(200)
        assert len(EarlierTraces(owner.store.reads, lambda trace: trace).whole("s")[0][0].spans) == 1, (
            "its own spans, after its own decision"
        )
    store.close()


async def test_sent_spans_stay_only_if_the_next_member_has_the_same_evidence(tmp_path: Path) -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=JudgeSettings("m", delay=0.0)))
    store, trace = Store(tmp_path / "forwarder", "off"), turn(1, session="s")
    line = Line(store.reads, evaluator, hands_over=True)
    store.commit(line.decide([stored(store, trace)]).changes).result()
    (decided,) = (row.body for row in store.outbox.after(MEMBERS, 0))
    answered = Member.FromString(decided)
    answered.decided = False
    other = Member.FromString(decided)
    other.facts = replaced(other.facts, digest="f" * 32)
    full = with_contents(decided, store.reads.contents, 1 << 20)
    for name, words, parts in (
        ("together", [full, answered.SerializeToString()], 1),
        ("of other evidence", [full, other.SerializeToString()], 0),
        ("left", [full, _left(trace.trace_id, "s")], 0),
    ):
        async with RunningPipeline(tmp_path / name) as owner:
            await owner.adopt(words)
            assert len(owner.store.reads.contents(trace.trace_id)) == parts, name
    store.close()


def _left(trace_id: bytes, session_id: str) -> bytes:
    return Member(trace_id=trace_id, session_id=session_id, left=True).SerializeToString()


def replaced(facts: bytes, **changed: str) -> bytes:
    return orjson.dumps(orjson.loads(facts) | changed)


def _with_session(number: int) -> list[MadeTrace]:
    composer = Composer(5)
    return [trace for trace in (composer.trace(6) for _ in range(20)) if trace.session is not None][:number]
