"""Sessions from linked responses."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.runner import Runner
from pandaeval_collector.jobs.setup import StoredMemory
from pandaeval_collector.judge.client import JudgeClient
from pandaeval_collector.judge.selection import Selection
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store, StoreReader, numbers, response_digest, responses
from pandaeval_collector.store.responses import BLOCK_BITS
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace, Trigger
from support.chained import turn
from support.database import open_database
from support.embedder import WordEmbedder
from support.judged import ScriptedConfidence, filed_here, stored
from support.line import RunningPipeline, as_file
from support.made_traces import Composer, MadeTrace

QUIET = 11.0
ONE = turn(1, ["resp_1"])
TWO = turn(2, ["resp_2"], "resp_1")
THREE = turn(3, ["resp_3"], "resp_2")


TOLD = [turn(1, told=[11]), turn(2, told=[11, 12]), turn(3, told=[11, 12, 13])]


async def say(line: RunningPipeline, *turns: MadeTrace) -> None:
    for each in turns:
        await line.send(each)
        await line.wait(QUIET)


def places(line: RunningPipeline, *turns: MadeTrace) -> list[str | None]:
    found = line.store.reads.session_of([each.trace_id for each in turns])
    return [found.get(each.trace_id) for each in turns]


class TestInOrder:
    async def test_three_turns_are_one_session_with_the_results_of_a_file(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, TWO, THREE)
            await line.settle()
            assert places(line, ONE, TWO, THREE) == ["resp_1"] * 3
            assert line.standing() == as_file([ONE, TWO, THREE])
            [session] = [each for each in line.results() if each["metric"] == "agent_reliability"]
            assert session["session_id"] == "resp_1"

    async def test_the_first_turn_joins_the_session_when_the_second_turn_arrives(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE)
            assert places(line, ONE) == [None]
            assert {each["session_id"] for each in line.results()} == {None}
            assert not line.of(ONE, "loop_detection")
            assert not line.pipeline.open_sessions
            await say(line, TWO)
            [first] = line.of(ONE, "loop_detection")
            assert (first["trigger"], first["session_id"], first["revision"]) == ("session_changed", "resp_1", 1)
            assert len(line.of(ONE, "coherence")) == 1
            assert {each["session_id"] for each in line.of(TWO, "coherence")} == {"resp_1"}

    async def test_answers_are_compared_across_turns(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, turn(2, ["resp_2"], "resp_1", said="The refund was sent."))
            [second] = [each for each in line.results() if each["metric"] == "loop_detection" and each["score"] == 0.0]
            assert second["metadata"]["comparisons"][0]["trace_id"] == ONE.trace_id.hex()

    async def test_two_turns_that_continue_the_same_turn_are_in_its_session(self, tmp_path: Path) -> None:
        fork = turn(4, ["resp_4"], "resp_1")
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, TWO, fork)
            assert places(line, ONE, TWO, fork) == ["resp_1"] * 3

    async def test_a_turn_continues_the_last_response_of_a_turn_with_tools(self, tmp_path: Path) -> None:
        first, second = turn(1, ["resp_a", "resp_b"]), turn(2, ["resp_c", "resp_d"], "resp_b")
        async with RunningPipeline(tmp_path) as line:
            await say(line, first, second, turn(3, ["resp_e"], "resp_d"))
            assert places(line, first, second) == ["resp_b"] * 2

    async def test_restarts_between_turns_do_not_change_the_results(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            for each in (ONE, TWO, THREE):
                await say(line, each)
                await line.restart()
            await line.settle()
            assert line.standing() == as_file([ONE, TWO, THREE])


class TestByHistory:
    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
    async def test_turns_that_repeat_the_earlier_turns_are_one_session(
        self, tmp_path: Path, order: tuple[int, ...]
    ) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, *[TOLD[at] for at in order])
            await line.settle()
            [session] = {*places(line, *TOLD)}
            assert str(session).startswith("history:")
            of_file = as_file(TOLD)
            assert {key: line.standing().get(key) for key in of_file} == of_file

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
    async def test_a_turn_continues_no_history_that_two_earlier_turns_share(
        self, tmp_path: Path, order: tuple[int, ...]
    ) -> None:
        same = [turn(1, told=[11]), turn(2, told=[11]), turn(3, told=[11, 12])]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *[same[at] for at in order])
            assert places(line, *same) == [None] * 3

    async def test_a_later_conversation_with_the_same_start_does_not_split_a_session(self, tmp_path: Path) -> None:
        again = [turn(4, told=[11]), turn(5, told=[11, 12]), turn(6, told=[11, 12, 15]), turn(7, told=[11, 12, 15, 16])]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *TOLD, *again)
            first, second = places(line, TOLD[0])[0], places(line, again[2])[0]
            assert places(line, *TOLD, *again) == [first] * 3 + [None, None, second, second]
            assert first != second

    async def test_an_ambiguous_history_does_not_separate_turns_linked_by_response(self, tmp_path: Path) -> None:
        """One turn continues the first turn by response, another by history."""
        first = turn(2, ["resp_2"], told=[11])
        by_response, by_history, alike = turn(3, [], "resp_2"), turn(4, told=[11, 12]), turn(1, told=[11])
        found = [first, by_response, by_history, alike]
        async with RunningPipeline(tmp_path) as line:
            await say(line, first, by_response, by_history)
            assert places(line, *found) == ["resp_2"] * 3 + [None]
            await say(line, alike)
            await line.settle()
            assert places(line, *found) == ["resp_2", "resp_2", None, None]
            of_file = as_file(found)
            assert {key: line.standing().get(key) for key in of_file} == of_file

    async def test_examples_in_a_prompt_do_not_join_a_session(self, tmp_path: Path) -> None:
        shown = [turn(1, told=[11, 12]), turn(2, told=[11, 13]), turn(3, told=[11, 14])]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *shown)
            assert places(line, *shown) == [None] * 3

    def test_a_trace_notes_that_its_session_was_derived_from_history(self) -> None:
        with TraceFiles() as run:
            for made in TOLD:
                run.add(Request(False, made.request().SerializeToString()))
            assert {trace.notes[-1] for trace in run.traces()} == {
                "session derived from the history in its traces; no span has a session ID"
            }


class TestOutOfOrder:
    async def test_a_session_is_named_after_a_missing_first_response(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, TWO, THREE)
            assert places(line, TWO, THREE) == ["resp_1"] * 2

    async def test_a_late_first_turn_does_not_change_the_session_name(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, TWO)
            await say(line, ONE)
            assert places(line, ONE, TWO) == ["resp_1"] * 2

    async def test_a_late_middle_turn_joins_the_turns_before_and_after_it(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, THREE)
            assert places(line, ONE, THREE) == [None, "resp_2"]
            await line.wait(2000)  # that session is over, and scored
            await say(line, TWO)
            await line.settle()
            assert places(line, ONE, TWO, THREE) == ["resp_1"] * 3
            assert line.standing() == as_file([ONE, TWO, THREE])

    async def test_a_late_span_that_names_a_session_also_moves_the_following_turns(self, tmp_path: Path) -> None:
        named = turn(1, ["resp_1"], session="chat-7")
        *calls, root = named.spans
        async with RunningPipeline(tmp_path) as line:
            await line.send(named, calls)
            await line.wait(200.0)
            await say(line, TWO, THREE)
            assert places(line, named, TWO, THREE) == ["resp_1"] * 3
            await line.send(named, [root])
            await line.wait(QUIET)
            assert places(line, named, TWO, THREE) == ["chat-7"] * 3

    async def test_a_first_turn_leaves_its_session_if_the_next_turn_names_another_session(self, tmp_path: Path) -> None:
        named = turn(2, ["resp_2"], "resp_1", session="chat-8")
        *calls, root = named.spans
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE)
            await line.send(named, calls)
            await line.wait(200.0)
            assert places(line, ONE, named) == ["resp_1"] * 2
            await line.send(named, [root])
            await line.wait(QUIET)
            assert places(line, ONE, named) == [None, "chat-8"]
            await say(line, turn(5, ["resp_5"], "resp_1"))
            assert places(line, ONE) == ["resp_1"]

    async def test_a_first_turn_with_an_unseen_history_also_leaves_its_session(self, tmp_path: Path) -> None:
        first, named = turn(1, ["resp_1"], told=[11, 12]), turn(2, ["resp_2"], "resp_1", session="chat-8")
        *calls, root = named.spans
        async with RunningPipeline(tmp_path) as line:
            await say(line, first)
            await line.send(named, calls)
            await line.wait(200.0)
            assert places(line, first, named) == ["resp_1"] * 2
            await line.send(named, [root])
            await line.wait(QUIET)
            await line.settle()
            assert places(line, first, named) == [None, "chat-8"]

    async def test_a_response_that_a_late_call_of_its_own_turn_continues_links_no_other_turn(
        self, tmp_path: Path
    ) -> None:
        """A late call of the turn continues the turn's own response."""
        closed, later = turn(1, ["resp_1", ""]), turn(2, ["resp_2"], "resp_1")
        first, second, root = closed.spans
        second.attributes.add(key="gen_ai.request.previous_response.id").value.string_value = "resp_1"
        async with RunningPipeline(tmp_path) as line:
            await line.send(closed, [first, root])
            await line.wait(QUIET)
            await line.send(closed, [second])
            await line.wait(200.0)
            await say(line, later)
            assert places(line, closed, later) == [None, "resp_1"]
            assert {int(each.trace_id, 16): each.session_id for each in inspected([closed, later])} == {
                1: None,
                2: "resp_1",
            }


class TestNamed:
    async def test_a_turn_without_session_id_joins_the_named_session_it_continues(self, tmp_path: Path) -> None:
        first = turn(1, ["resp_1"], session="chat-7")
        async with RunningPipeline(tmp_path) as line:
            await say(line, first, TWO, THREE)
            assert places(line, first, TWO, THREE) == ["chat-7"] * 3

    async def test_a_named_session_begins_at_the_turn_that_names_it(self, tmp_path: Path) -> None:
        second = turn(2, ["resp_2"], "resp_1", session="chat-7")
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, second, THREE)
            assert places(line, ONE, second, THREE) == [None, "chat-7", "chat-7"]


class TestOdd:
    async def test_responses_that_continue_each_other_are_one_session(self, tmp_path: Path) -> None:
        one, two = turn(1, ["resp_1"], "resp_2"), turn(2, ["resp_2"], "resp_1")
        itself = turn(3, ["resp_3"], "resp_3")
        async with RunningPipeline(tmp_path) as line:
            await say(line, two, one, itself)
            assert places(line, one, two, itself) == ["resp_2", "resp_2", None]
            await line.settle()
            assert as_file([one, two, itself]).items() <= line.standing().items()

    async def test_a_wrong_clock_does_not_separate_the_first_two_turns(self, tmp_path: Path) -> None:
        early = turn(2, ["resp_2"], "resp_1", start=0)
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, early)
            assert places(line, ONE, early) == ["resp_1"] * 2

    async def test_equal_digests_of_different_responses_join_no_wrong_turn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("pipeline.line.implied_sessions", "store.responses"):
            monkeypatch.setattr(f"pandaeval_collector.{module}.response_digest", lambda id_: b"the same")
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, turn(8, ["resp_8"]), TWO)
            assert places(line, ONE, turn(8), TWO) == ["resp_1", None, "resp_1"]


class TestCosts:
    async def test_traces_without_linkable_responses_cause_no_lookups(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = watch(monkeypatch)
        composer = Composer(3)
        named = [made for made in (composer.trace() for _ in range(12)) if made.session is not None]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *named, turn(1, ["chatcmpl-1"]), turn(2, ["msg_1"]))
        assert asked == []
        assert rows(tmp_path, "SELECT count(*) FROM responses") == 0
        assert rows(tmp_path, "SELECT count(*) FROM members WHERE session = 0") == 0

    async def test_a_long_chain_is_not_read_whole_for_each_turn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[int] = []
        newest_of = StoreReader.newest_traces

        def watched(store: StoreReader, session_ids: Collection[str], newest: int) -> Any:
            read.append(newest)
            return newest_of(store, session_ids, newest)

        def whole(store: StoreReader, session_id: str) -> Any:
            raise AssertionError("read whole")

        monkeypatch.setattr(StoreReader, "newest_traces", watched)
        async with RunningPipeline(tmp_path) as line:
            await say(line, *(turn(n, [f"resp_{n}"], f"resp_{n - 1}" if n > 1 else "") for n in range(1, 60)))
            asked, read[:] = watch(monkeypatch), []
            monkeypatch.setattr(StoreReader, "session_traces", whole)
            await say(line, *(turn(n, [f"resp_{n}"], f"resp_{n - 1}") for n in range(60, 70)))
            assert newest_of(line.store.reads, ["resp_1"], 1)["resp_1"][0] == 69
        assert read == [4] * 10
        assert asked == [[response_digest(f"resp_{n}")] for n in range(59, 69)]

    async def test_only_a_few_of_many_traces_with_one_response_id_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pandaeval_collector.store.responses.MANY", 3)
        same = [turn(n, ["resp_1"]) for n in range(1, 9)]
        others = [turn(n, [f"resp_{n}"], "resp_1") for n in range(10, 18)]
        async with RunningPipeline(tmp_path) as line:
            await say(line, *same, *others)
            assert set(places(line, *others)) == {"resp_1"}
            assert len(line.store.reads.responses.traces(["resp_1"], continued=False)) == 3
            # A rare response is found although the common response fills its limit.
            assert {
                row.trace_id for row in line.store.reads.responses.traces(["resp_1", "resp_10"], continued=False)
            } >= {others[0].trace_id}
            assert len(line.store.reads.responses.traces(["resp_1"], continued=True)) == 3


class TestForgotten:
    async def test_responses_are_deleted_with_their_traces(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await say(line, ONE, TWO, turn(9, ["resp_9"]))
            await line.settle()
            assert rows(tmp_path, "SELECT count(*) FROM responses") == 4
            with open_database(tmp_path / "pandaeval.db") as connection:
                connection.execute("UPDATE traces SET decided_at = 0")
                connection.execute("UPDATE sessions SET touched_at = 0")
            line.store.forget(1.0, 100.0, now=50.0).result(10)
            assert rows(tmp_path, "SELECT count(*) FROM members") == 3
            line.store.forget(1.0, 100.0, now=200.0).result(10)
            line.store.forget(1.0, 100.0, now=200.0).result(10)
            for table in ("members", "traces", "responses"):
                assert rows(tmp_path, f"SELECT count(*) FROM {table}") == 0, table

    def test_a_block_of_responses_is_deleted_with_its_last_trace(self, tmp_path: Path) -> None:
        store = Store(tmp_path, "off")
        with open_database(tmp_path / "pandaeval.db") as connection:
            for no in (7, 1 << BLOCK_BITS, (1 << BLOCK_BITS) + 1):
                connection.execute("INSERT INTO responses VALUES (?, 0, ?, ?)", (no >> BLOCK_BITS, b"12345678", no))
            connection.execute("INSERT INTO traces VALUES (?, x'00', 1, 1, '', x'', '[]', 0, 1e12)", (1 << BLOCK_BITS,))
        store.forget(1.0, 1.0, now=10.0).result(10)
        store.close()
        assert rows(tmp_path, "SELECT min(no) FROM responses") == 1 << BLOCK_BITS


class TestFiles:
    def test_sessions_of_a_file_do_not_depend_on_the_order_of_its_lines(self) -> None:
        turns = [ONE, TWO, THREE, turn(7, ["resp_7"]), turn(8, ["resp_8"], session="chat-8")]
        random.Random(5).shuffle(turns)
        found = {trace.trace_id: trace for trace in inspected(turns)}
        names = {int(id_, 16): trace.session_id for id_, trace in found.items()}
        assert names == {1: "resp_1", 2: "resp_1", 3: "resp_1", 7: None, 8: "chat-8"}
        noted = {number for number in names if any("session derived" in note for note in found[f"{number:032x}"].notes)}
        assert noted == {1, 2, 3}

    def test_every_result_of_a_file_names_the_session(self) -> None:
        with TraceFiles() as run:
            # Between the first and the second turn are more traces than one decision holds.
            between = [turn(number, start=2) for number in range(100, 400)]
            for each in (ONE, *between, turn(2, ["resp_2"], "resp_1", start=9)):
                run.add(Request(False, each.request().SerializeToString()))
            results = [result.to_dict() for result in replay(run, Evaluator(WordEmbedder(), EvaluatorSettings()))]
        of_first = [each for each in results if each["trace_id"] == ONE.trace_id.hex() and each["level"] == "trace"]
        assert {each["metric"] for each in of_first} >= {"coherence", "loop_detection"}
        assert {each["session_id"] for each in of_first} == {"resp_1"}


class TestJudged:
    def test_a_conversation_is_judged_whole_or_not_at_all(self, tmp_path: Path) -> None:
        half = JudgeSettings("m", selection=Selection(share=0.5))
        evaluator = Evaluator(WordEmbedder(), EvaluatorSettings({"trace.confidence"}, judge=half))
        store = Store(tmp_path, "off")
        line = Line(store.reads, evaluator)
        found = set()
        for number in range(1, 13):
            names = ["", *(f"resp_{number}_{at}" for at in range(4))]
            turns = [turn(10 * number + at, [names[at + 1]], names[at]) for at in range(4)]
            asked = []
            for each in turns:
                decision = line.decide([stored(store, each)])
                store.commit(decision.changes).result()
                asked.append(len(decision.changes.jobs))
            signals = {
                orjson.loads(row.body)["signals"]["confidence"]["outcome"]
                for row in store.reads.session_traces(names[1])
            }
            found.add((*asked, *signals))
            with TraceFiles() as run:
                for each in turns:
                    run.add(Request(False, each.request().SerializeToString()))
                decided: list[Conclusion] = []
                list(replay(run, evaluator, on_decided=decided.append))
            assert sum(len(decision.changes.jobs) for decision in decided) == sum(asked)
        store.close()
        assert found == {(1, 1, 1, 1, "pending"), (0, 0, 0, 0, "unscored")}

    async def test_a_judge_score_of_a_first_turn_counts_in_its_session(self, tmp_path: Path) -> None:
        store, metrics = Store(tmp_path, "off"), {"trace.confidence", "session.agent_consistency"}
        evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(metrics, judge=JudgeSettings("m", delay=0.0)))
        line = Line(store.reads, evaluator)

        async def settle(decide: Callable[[], Conclusion]) -> None:
            store.commit(decide().changes).result()

        desk = JudgeClient(ScriptedConfidence(), StoredMemory(store, Telemetry()))
        for each in (ONE, TWO):
            store.commit(line.decide([stored(store, each)]).changes).result()
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
        results = [orjson.loads(row.body) for row in store.reads.results_after(0)]
        assert [(each["metric"], each["session_id"]) for each in results] == [
            ("confidence", None),
            ("confidence", "resp_1"),
        ]
        [whole] = line.close_sessions(dict.fromkeys(["resp_1"], Trigger.IDLE)).results
        store.close()
        assert (whole.outcome, whole.to_dict()["coverage"]) == ("scored", 1.0)


def inspected(turns: list[MadeTrace]) -> list[Trace]:
    with TraceFiles() as run:
        for each in turns:
            run.add(Request(False, each.request().SerializeToString()))
        return list(run.traces())


def watch(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """Record responses read from disk."""
    asked: list[list[bytes]] = []

    def watched(digests: list[bytes]) -> Any:
        asked.append(sorted(digests))
        return numbers.batched(digests)

    monkeypatch.setattr(responses, "numbers", SimpleNamespace(**{**vars(numbers), "batched": watched}))
    return asked


def rows(folder: Path, query: str) -> Any:
    with open_database(folder / "pandaeval.db") as connection:
        [(found,)] = connection.execute(query).fetchall()
    return found
