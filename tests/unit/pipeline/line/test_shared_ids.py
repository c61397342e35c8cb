"""Two services with the same session id are two sessions, unless a trace or a span link joins them."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pandaeval_collector.jobs.job_traces import JobTraceLoader
from pandaeval_collector.pipeline.line import stored_traces
from pandaeval_collector.store import Job
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import build_trace
from support.chained import turn
from support.line import RunningPipeline, as_file
from support.made_traces import MadeTrace
from support.two_lines import two

QUIET = 11.0
ID = "chat-7"
OTHER = "chat-7@service:support"


def of(service: str, number: int, session: str | None = ID) -> MadeTrace:
    return replace(turn(number, session=session), service=service)


def linked(made: MadeTrace, to: MadeTrace) -> MadeTrace:
    """The trace with a span link to another trace."""
    copy = replace(made, spans=tuple(type(span).FromString(span.SerializeToString()) for span in made.spans))
    copy.spans[0].links.add(trace_id=to.trace_id, span_id=to.spans[0].span_id)
    return copy


def both_services(number: int, first: str = "shop", second: str = "support", session: str = ID) -> list[MadeTrace]:
    """The parts of one trace with spans of two services: the model call runs in the second service."""
    made = of(first, number, session)
    return [replace(made, spans=made.spans[1:]), replace(made, service=second, spans=made.spans[:1])]


async def say(line: RunningPipeline, *turns: MadeTrace | list[MadeTrace]) -> None:
    """Send the turns; each turn is decided before the next arrives."""
    for each in turns:
        for part in each if isinstance(each, list) else [each]:
            await line.send(part)
        await line.wait(QUIET)


def places(line: RunningPipeline, *turns: MadeTrace) -> list[str | None]:
    found = line.store.reads.session_of([each.trace_id for each in turns])
    return [found.get(each.trace_id) for each in turns]


SHOP = [of("shop", 1), of("shop", 3)]
SUPPORT = [of("support", 2), of("support", 4)]
APART = [SHOP[0], SUPPORT[0], SHOP[1], SUPPORT[1]]


class TestSeparateServices:
    async def test_two_services_are_two_sessions_as_in_a_file(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            await line.settle()
            assert places(line, *APART) == [ID, OTHER] * 2
            assert line.standing() == as_file(APART)

    async def test_a_single_service_keeps_its_id(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *SHOP, of("unknown_service:python", 5))
            assert places(line, *SHOP) == [ID, ID]
            assert places(line, of("", 5)) == [ID]

    async def test_two_services_in_one_batch_are_two_sessions(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            for each in APART:
                await line.send(each)
            await line.wait(QUIET)
            assert places(line, *APART) == [ID, OTHER] * 2

    @pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
    async def test_order_of_arrival_does_not_matter(self, tmp_path: Path, order: tuple[int, ...]) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *[APART[at] for at in order])
            assert places(line, *APART) == [ID, OTHER] * 2

    async def test_restarts_between_traces_keep_the_services_separate(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            for each in APART:
                await say(line, each)
                await line.restart()
            await line.settle()
            assert places(line, *APART) == [ID, OTHER] * 2
            assert line.standing() == as_file(APART)

    async def test_answers_of_other_services_are_not_compared(self, tmp_path: Path) -> None:
        again = replace(turn(2, session=ID, said="Your parcel is on its way."), service="support")
        first = replace(turn(1, session=ID, said="Your parcel is on its way."), service="shop")
        async with RunningPipeline(tmp_path) as line:
            await say(line, first, again)
            assert not line.of(again, "loop_detection")[0]["metadata"].get("comparisons")

    async def test_results_have_the_session_id_of_their_service(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            await line.settle()
            assert {each["session_id"] for each in line.of(SUPPORT[0], "response")} == {OTHER}

    async def test_followers_of_a_response_join_the_service_that_gave_it(self, tmp_path: Path) -> None:
        given = replace(turn(2, ["resp_2"], session=ID), service="support")
        follower = replace(turn(5, ["resp_5"], "resp_2"), service="support")
        async with RunningPipeline(tmp_path) as line:
            await say(line, given, follower)
            assert places(line, given, follower) == [ID, ID]
            await say(line, SHOP[0])
            assert places(line, SHOP[0], given, follower) == [ID, OTHER, OTHER]

    async def test_the_end_of_a_session_ends_it_for_each_service(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            await line.pipeline.submit([CompletedTrace(session_id=ID, session_end=True)])
            await line.wait(0)
            final = [each for each in line.results() if each["level"] == "session" and each["final"]]
            assert {each["session_id"] for each in final} == {ID, OTHER}
            assert not line.pipeline.session_is_open(ID)

    async def test_an_owner_of_the_session_separates_and_joins_the_services(self, tmp_path: Path) -> None:
        async with two(tmp_path) as both:
            for each in APART:
                await both.decide(each)
            assert both.sessions(*APART) == [ID, OTHER] * 2
            assert both.owner.pipeline.session_is_open(ID)
            joint = both_services(5)
            for part in joint:
                await both.forwarder.send(part)
            await both.forwarder.wait(QUIET)
            await both.tell()
            assert both.sessions(*APART, joint[0]) == [ID] * 5
            await both.owner.settle()
            sessions = {key for key in both.owner.standing() if key[1] == "session.agent_reliability"}
            assert sessions == {(ID, "session.agent_reliability")}

    async def test_a_judge_job_has_the_session_of_its_service(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            loader = JobTraceLoader(line.store.reads, b"secret", None)
            body = orjson.dumps({"trigger": "idle", "revision": 1, "late_spans": 0})
            job = Job("1", SUPPORT[1].trace_id, "trace.correctness", "due", 0.0, 0.0, 0, 0, "", "", body)
            found = loader.thread.submit(loader, job).result()
            loader.close()
            assert isinstance(found.subject, Trace)
            assert found.subject.session_id == OTHER

    async def test_three_services_are_three_sessions(self, tmp_path: Path) -> None:
        third = of("billing", 5)
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART, third)
            assert places(line, *APART, third) == [ID, OTHER] * 2 + ["chat-7@service:billing"]


class TestJoinedServices:
    JOINT = both_services(5)

    @pytest.mark.parametrize("at", range(5))
    async def test_a_trace_with_both_services_joins_their_sessions_whenever_it_arrives(
        self, tmp_path: Path, at: int
    ) -> None:
        order: list[MadeTrace | list[MadeTrace]] = [*APART]
        order.insert(at, self.JOINT)
        async with RunningPipeline(tmp_path) as line:
            await say(line, *order)
            await line.settle()
            assert places(line, *APART, self.JOINT[0]) == [ID] * 5
            of_file = as_file([*APART, *self.JOINT])
            assert {key: line.standing().get(key) for key in of_file} == of_file

    @pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
    async def test_a_span_link_joins_the_sessions_of_two_services(self, tmp_path: Path, order: tuple[int, ...]) -> None:
        turns = [SHOP[0], linked(SUPPORT[0], SHOP[0]), SUPPORT[1]]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *[turns[at] for at in order])
            assert places(line, *turns) == [ID] * 3

    async def test_a_span_link_in_a_file_joins_the_sessions_of_two_services(self) -> None:
        turns = [SHOP[0], linked(SUPPORT[0], SHOP[0])]
        assert {unit for unit, _ in as_file(turns)} == {ID, *(each.trace_id.hex() for each in turns)} | _turns(turns)

    async def test_a_link_to_a_trace_of_another_session_joins_nothing(self, tmp_path: Path) -> None:
        elsewhere = of("shop", 6, "chat-8")
        turns = [SHOP[0], elsewhere, linked(SUPPORT[0], elsewhere)]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *turns)
            assert places(line, *turns) == [ID, "chat-8", OTHER]

    async def test_a_gateway_in_each_trace_joins_the_services_behind_it(self, tmp_path: Path) -> None:
        one, two = both_services(1, "gateway", "shop"), both_services(2, "gateway", "support")
        async with RunningPipeline(tmp_path) as line:
            await say(line, one, two)
            assert places(line, one[0], two[0]) == [ID, ID]

    async def test_restarts_before_and_after_the_joining_trace_change_nothing(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            await line.restart()
            await say(line, self.JOINT)
            await line.restart()
            await say(line, of("support", 7))
            assert places(line, *APART, self.JOINT[0], of("support", 7)) == [ID] * 6

    async def test_a_session_that_was_joined_to_another_has_no_score_left(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *APART)
            await line.settle()
            await say(line, self.JOINT)
            await line.settle()
            results = [each for each in line.results() if each["level"] == "session" and each["session_id"] == OTHER]
            newest = {each["metric"]: each["outcome"] for each in results}
            assert newest
            assert set(newest.values()) == {"unscored"}
            listed = line.store.reads.connection().execute(
                "SELECT session_id FROM sessions JOIN listed ON -listed.no = sessions.no"
            )
            assert [*listed] == [(ID,)]


@pytest.mark.parametrize("seed", range(6))
async def test_any_order_of_services_and_links_gives_the_results_of_a_file(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    services = ["shop", "support", "billing", "unknown_service:node"]
    turns: list[list[MadeTrace]] = []
    for number in range(1, 13):
        session = chance.choice(["one", "two"])
        if chance.random() < 0.15:
            turns.append(both_services(number, *chance.sample(services[:3], 2), session=session))
            continue
        single = of(chance.choice(services), number, session)
        if turns and chance.random() < 0.15:
            single = linked(single, chance.choice(turns)[0])
        turns.append([single])
    arriving = chance.sample(turns, len(turns))
    async with RunningPipeline(tmp_path) as line:
        for parts in arriving:
            await say(line, parts)
            if chance.random() < 0.2:
                await line.restart()
        await line.settle()
        of_file = as_file([part for parts in turns for part in parts])
        assert line.standing() == of_file
        sessions = {unit for unit, _ in of_file if unit.startswith(("one", "two"))}
        assert {*places(line, *[parts[0] for parts in turns])} == sessions


class TestFiles:
    ELSEWHERE = of("support", 6, "chat-8")

    @pytest.mark.parametrize(
        ("turns", "times"), [([SHOP[0], ELSEWHERE, SHOP[1]], 1), (APART, 2)], ids=["separate ids", "a shared id"]
    )
    def test_traces_are_built_again_only_for_a_shared_id(
        self, monkeypatch: pytest.MonkeyPatch, turns: list[MadeTrace], times: int
    ) -> None:
        built: list[str] = []

        def noted(*arguments: Any) -> Trace | None:
            trace = build_trace(*arguments)
            built.append(trace.trace_id if trace is not None else "")
            return trace

        monkeypatch.setattr(stored_traces, "build_trace", noted)
        as_file(turns)
        assert sorted(built) == sorted([each.trace_id.hex() for each in turns] * times)

    def test_traces_read_from_a_file_are_in_the_same_sessions(self) -> None:
        assert of_file([*APART, self.ELSEWHERE]) == [ID, OTHER, ID, OTHER, "chat-8"]
        assert of_file([*APART, *both_services(5)]) == [ID] * 5

    async def test_a_service_without_an_agent_does_not_take_the_session_id(self, tmp_path: Path) -> None:
        page = without_agent(replace(turn(9, start=0), service="page"))
        turns = [page, *APART]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *turns)
            await line.settle()
            assert places(line, *APART) == [ID, OTHER] * 2
            assert line.standing() == as_file(turns)
        assert of_file(turns) == [ID, ID, OTHER, ID, OTHER]


def without_agent(made: MadeTrace) -> MadeTrace:
    """The trace with only a page request of its session."""
    root = type(made.spans[-1]).FromString(made.spans[-1].SerializeToString())
    root.name = "GET /chat"
    del root.attributes[:]
    root.attributes.add(key="session.id").value.string_value = ID
    return replace(made, spans=(root,))


def of_file(turns: list[MadeTrace]) -> list[str | None]:
    """Return the sessions of a file's traces, by start."""
    with TraceFiles() as run:
        run.add_all(Request(False, each.request().SerializeToString()) for each in turns)
        return [each.session_id for each in run.traces()]


def _turns(turns: list[MadeTrace]) -> set[str]:
    return {unit for unit, _ in as_file(turns) if ":" in unit}
