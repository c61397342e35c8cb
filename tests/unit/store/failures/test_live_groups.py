"""Live failure groups, without double counting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.base.result import EvaluatorInfo, Result, Unit, now
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_collector.jobs.same_cause import RUBRIC, SameCause, judged_group
from pandaeval_collector.judge.client import Judge, JudgeClient
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.store import FailureGroupRow, Store, WriteSet
from pandaeval_collector.store.failure_groups import MOST_GAUGES, RETURNED, GroupGauges
from pandaeval_collector.store.failures import Failure
from pandaeval_collector.store.live_groups import LiveGroups
from pandaeval_collector.store.triage import STATES, Triage
from pandaeval_otel.base.component_errors import ERRORS
from support.embedder import WordEmbedder
from support.line import RunningPipeline
from support.made_traces import Composer, MadeTrace
from support.scripted_judge import Memory, ScriptedCaller

TIMEOUT = "the run ended with an error: TimeoutError: the model did not answer in 30 s"
UNKEYED = "the run ended with an error: KeyError: 'customer_id' is missing in the order"
BOOKED = "The agent confirmed booking ABC123, which no tool result contains."
RESERVED = "The agent confirmed the reservation XYZ987 although the booking tool had failed."
WEATHER = "The agent said it will rain in Bergen tomorrow without having called any weather tool."


def failure(number: int, reason: str, label: str = "error", agent: str = "desk") -> Failure:
    return Failure(f"r{number}", "trace.response", label, reason, trace_id=f"{number:032x}", agent=agent)


@pytest.fixture(scope="module")
def embedder() -> Any:
    return load("embedded")


# -- which group -----------------------------------------------------------------------------------------------------


def test_a_new_failure_joins_a_similar_group(embedder: Any) -> None:
    groups = LiveGroups(embedder)
    first = groups.place(failure(1, TIMEOUT))
    assert groups.place(failure(2, TIMEOUT.replace("30", "60"))).id == first.id, "numbers do not separate causes"
    assert (
        groups.place(failure(3, "TimeoutError: the model did not answer, the run ended with an error")).id == first.id
    )
    assert groups.place(failure(4, WEATHER)).id != first.id


def test_failures_with_different_labels_or_agents_are_in_different_groups(embedder: Any) -> None:
    groups = LiveGroups(embedder)
    ids = {
        groups.place(failure(1, TIMEOUT)).id,
        groups.place(failure(2, TIMEOUT, label="empty_answer")).id,
        groups.place(failure(3, TIMEOUT, agent="other")).id,
    }
    assert len(ids) == 3


def lost(number: int, tool: str, error: str, label: str = "unrecovered_tool_error") -> Failure:
    return replace(failure(number, f"{tool} failed: {error}", label), tool=tool, error=error)


def test_failures_of_two_tools_or_two_errors_are_in_different_groups(embedder: Any, tmp_path: Path) -> None:
    made = [
        lost(1, "book", "order 4711: the backend timed out"),
        lost(2, "book", "order 4712: the backend timed out"),
        lost(3, "cancel", "order 4711: the backend timed out"),
        lost(4, "book", "the card was declined"),
        lost(5, "book", "order 4711: the backend timed out", "false_success"),
    ]
    groups = LiveGroups(embedder)
    rows = [groups.place(each) for each in made]
    assert len({row.id for row in rows}) == 4
    assert rows[0].id == rows[1].id
    assert rows[0].title == "unrecovered tool error: book: order 4711: the backend timed out"
    with closing(Store(tmp_path, "off")) as store:
        store.commit(WriteSet(failures=[replace(row, count=1) for row in rows])).result()
        known = LiveGroups(embedder, store.reads.failure_groups())
    assert [known.place(replace(each, result=f"again {each.result}")).id for each in made] == [row.id for row in rows]


def test_the_same_failure_gets_the_same_group_again(embedder: Any) -> None:
    groups = LiveGroups(embedder)
    first = groups.place(failure(1, TIMEOUT))
    groups.place(failure(2, WEATHER))
    assert groups.place(failure(1, TIMEOUT)).id == first.id
    assert LiveGroups(embedder).place(failure(1, TIMEOUT)).id == first.id, "the id depends on the first failure"


def test_failures_are_grouped_by_equal_text_if_the_embedder_fails() -> None:
    before = ERRORS.counts()
    groups = LiveGroups(WordEmbedder(fail_on="answer"))
    first = groups.place(failure(1, TIMEOUT))
    assert groups.place(failure(2, TIMEOUT)).id == first.id
    assert groups.place(failure(3, TIMEOUT + " or so")).id != first.id
    assert (ERRORS.counts() - before)["embedder", "words-1"] == 3


# -- the judge, only if the similarity is unclear --------------------------------------------------------------------


def asked(groups: LiveGroups, of: Failure, *answers: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """Return a failure's group and the judge's questions."""
    caller = ScriptedCaller({"same_cause": [{"reason": "It seems so.", **each} for each in answers]})

    async def ask(shown: Pack, given: Mapping[str, Any]) -> SameCause:
        return await Judge(JudgeClient(caller, Memory()), shown, "m").ask(RUBRIC, given)

    return asyncio.run(judged_group(groups, of, ask)), caller.asked


def test_the_judge_is_called_only_if_the_text_similarity_is_unclear(embedder: Any) -> None:
    groups = LiveGroups(embedder)
    first = groups.place(failure(1, BOOKED))
    assert asked(groups, failure(2, BOOKED.replace("123", "456"))) == (first.id, [])
    assert asked(groups, failure(3, WEATHER)) == ("", [])
    unclear = failure(4, RESERVED)
    assert asked(groups, unclear, {"group": 1}) == (first.id, ["same_cause"])
    assert asked(groups, unclear, {"group": None}) == ("", ["same_cause"])
    assert asked(groups, unclear, {"group": 7}, {"group": 1}) == (first.id, ["same_cause"] * 2)
    assert asked(groups, unclear, {"group": 7}) == (None, ["same_cause"] * 2)


def test_the_group_that_the_judge_chose_is_used(embedder: Any) -> None:
    groups = LiveGroups(embedder)
    first = groups.place(failure(1, BOOKED))
    assert groups.place(failure(2, UNKEYED), first.id).id == first.id
    assert groups.place(failure(3, BOOKED.replace("no tool", "no other tool")), "").id != first.id


# -- in the store ----------------------------------------------------------------------------------------------------


def broken(composer: Composer, message: str) -> MadeTrace:
    """Return a failed trace."""
    trace = composer.trace(4)
    root = Span.FromString(trace.spans[-1].SerializeToString())
    root.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=message))
    return replace(trace, spans=(*trace.spans[:-1], root))


async def test_groups_survive_a_restart_and_no_failure_is_counted_twice(tmp_path: Path) -> None:
    composer = Composer(1)
    traces = [broken(composer, "database refused the connection") for _ in range(4)]
    other = broken(composer, "quite another thing: no such customer")
    async with RunningPipeline(tmp_path) as line:
        for trace in traces[:2]:
            await line.send(trace)
        await line.wait(20)
        await line.restart()
        for trace in (*traces[2:], other, traces[0]):
            await line.send(trace)
        await line.wait(20)
        results = [each for each in line.results() if each["metric"] == "response" and each["success"] is False]
        groups = line.store.reads.failure_groups()
        series = line.store.reads.tally.page("scrape", "pandaeval.failures")
    of_group = {each["metadata"]["failure_group"]["id"]: each for each in results}
    assert len(results) == 5
    assert sorted(row.count for row in groups if row.label == "error") == [1, 4]
    assert set(of_group) == {row.id for row in groups if row.label == "error"}
    assert sum(each.count for each in series) == sum(row.count for row in groups)
    errors = [each.attributes for each in series if ("pandaeval.failure.label", "error") in each.attributes]
    assert len(errors) == 2
    assert all(("pandaeval.failure.severity", "medium") in each for each in errors)


def row(number: int, severity: str = "high") -> FailureGroupRow:
    return FailureGroupRow(
        f"g{number}",
        "trace.response",
        "error",
        "title",
        "description",
        severity,
        "desk",
        "shop",
        "text",
        1,
        number,
        number,
    )


def test_groups_over_the_cap_share_one_gauge(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    try:
        rows = [replace(row(number), text=f"cause {chr(0x4E00 + number)}") for number in range(MOST_GAUGES + 3)]
        store.commit(WriteSet(failures=rows)).result()
        values = GroupGauges(store.reads.connection).values()
    finally:
        store.close()
    assert len(values) == MOST_GAUGES + 1
    assert sum(values.values()) == MOST_GAUGES + 3
    others = (("pandaeval.failure.group", "__other__"), ("pandaeval.failure.severity", "high"))
    assert values["pandaeval.failure_groups", others] == 3


def test_groups_with_the_same_text_share_one_gauge(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    try:
        store.commit(WriteSet(failures=[replace(row(no), text=f"booking {no} was lost") for no in (1, 2)])).result()
        [(key, value)] = GroupGauges(store.reads.connection).values().items()
        newest = store.reads.failure_groups()[0]
    finally:
        store.close()
    named = {"group": newest.id, "label": newest.label, "severity": "high"}
    assert key == ("pandaeval.failure_groups", tuple((f"pandaeval.failure.{name}", of) for name, of in named.items()))
    assert value == 2


def test_a_resolved_group_that_returns_has_a_gauge_until_its_next_state(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")

    def returned() -> set[str]:
        values = GroupGauges(store.reads.connection).values()
        return {dict(pairs)["pandaeval.failure.group"] for name, pairs in values if name == RETURNED}

    try:
        store.commit(WriteSet(failures=[row(1), replace(row(2), text="of another cause")])).result()
        store.triage.mark(["g1", "g2"], Triage("resolved", at=5000)).result()
        assert returned() == set()
        store.commit(WriteSet(failures=[replace(row(1), last_at=6.0)])).result()
        assert returned() == {"g1"}
        for state in STATES[1:]:
            store.triage.mark(["g1"], Triage(state, at=7000)).result()
            assert returned() == set()
    finally:
        store.close()


def test_the_log_event_names_the_group() -> None:
    unit = Unit("trace", "a" * 32, "a" * 32, "b" * 16)
    by = EvaluatorInfo("code", "1")
    made = Result("r" * 32, "response", unit, Score(0.0, label="error", failed=True), by, 0.5, 1, True, 0.0, now())
    assert b"pandaeval.failure.group" not in log_record(encode_attributes([made])[0])
    assert b"pandaeval.failure.group\x12\x0e\n\x0c0123456789ab" in log_record(
        encode_attributes([replace(made, failure_group="0123456789ab")])[0]
    )
