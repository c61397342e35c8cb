"""Session scores from stored traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.facts import SignalFacts, TraceFacts
from pandaeval_collector.pipeline.line.members import Member, packed_answer, to_row
from pandaeval_collector.pipeline.line.session_scores import SessionScores
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import Store, WriteSet
from pandaeval_otel.model import Trigger
from support.embedder import WordEmbedder

SIGNAL: SignalFacts = {"outcome": "scored", "value": 0.75, "why": None}
PENDING: SignalFacts = {"outcome": "pending", "value": None, "why": None}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "off")
    yield opened
    opened.close()


def trace_id(number: int) -> str:
    return f"{number:032x}"


def member(number: int, signals: dict[str, SignalFacts] | None = None, **fields: Any) -> Member:
    values: dict[str, Any] = {
        "agent": f"agent {number}",
        "service": f"service {number}",
        "environment": f"env {number}",
        "span_id": f"{number:016x}",
        "response_id": "",
        "sampled": False,
        "fragment": False,
        "digest": f"d{number}",
        "revision": 1,
        "crashed": False,
        "captured": True,
        "said": True,
        "embedder": None,
        "signals": {"coherence": SIGNAL} if signals is None else signals,
    }
    facts = TraceFacts(**(values | fields))
    return Member(trace_id(number), number * 100, number * 100 + 50, facts, packed_answer("answer", b"", "answer"))


def scores(
    store: Store, *members: Member, left_out: frozenset[str] = frozenset(), judged: bool = False
) -> SessionScores:
    rows = [to_row(each, "s") for each in members]
    store.commit(WriteSet(session_traces=rows, touched={"s"})).result()
    settings = EvaluatorSettings(judge=JudgeSettings("m")) if judged else EvaluatorSettings()
    return SessionScores(store.reads, Evaluator(WordEmbedder(), settings), left_out)


def evidence(found: SessionScores, trigger: Trigger = Trigger.IDLE) -> str:
    [one] = {result.unit.evidence for result in found.score("s", trigger)[0]}
    return one


class TestUnit:
    def test_a_session_result_has_the_span_agent_and_service_of_its_last_trace(self, store: Store) -> None:
        found = scores(store, member(3), member(1, sampled=True), member(2)).score("s", Trigger.IDLE)[0]
        assert {result.metric for result in found} >= {"agent_reliability"}
        for unit in (result.unit for result in found):
            assert (unit.level, unit.id, unit.session_id) == ("session", "s", "s")
            assert (unit.trace_id, unit.span_id, unit.end_ns) == (trace_id(3), f"{3:016x}", 350)
            assert (unit.agent, unit.service, unit.environment) == ("agent 3", "service 3", "env 3")
            assert (unit.trigger, unit.sampled) == (Trigger.IDLE.value, True)
            assert unit.trace_ids == tuple(f"{trace_id(number)}:{number:016x}" for number in (1, 2, 3))

    def test_long_names_are_cut_and_an_empty_environment_is_none(self, store: Store) -> None:
        long = member(1, agent="a" * 9999, service="s" * 9999, environment="")
        [unit, *_] = (result.unit for result in scores(store, long).score("s", Trigger.IDLE)[0])
        assert unit.environment is None
        assert 0 < len(unit.agent) == len(unit.service) < 300
        assert not unit.sampled

    def test_the_128_newest_traces_are_linked(self, store: Store) -> None:
        found = scores(store, *(member(number) for number in range(1, 131))).score("s", Trigger.IDLE)[0]
        ids = found[0].unit.trace_ids
        assert (len(ids), ids[0], ids[-1]) == (128, f"{trace_id(3)}:{3:016x}", f"{trace_id(130)}:{130:016x}")

    def test_a_session_without_traces_has_no_results(self, store: Store) -> None:
        found = scores(store, member(1), left_out=frozenset({trace_id(1)}))
        assert found.score("s", Trigger.IDLE) == ([], [])
        assert found.score("t", Trigger.IDLE) == ([], [])
        assert found.conversation("s", Trigger.IDLE) is None

    def test_traces_that_are_left_out_do_not_count(self, store: Store) -> None:
        bad = member(2, {"coherence": {"outcome": "scored", "value": 0.0, "why": None}})
        found = scores(store, member(1), bad, left_out=frozenset({trace_id(2)}))
        [reliability] = [each for each in found.score("s", Trigger.IDLE)[0] if each.metric == "agent_reliability"]
        assert isinstance(reliability.finding, Score)
        assert reliability.finding.value == pytest.approx(0.75)
        assert reliability.unit.trace_id == trace_id(1)


class TestEvidence:
    def test_evidence_depends_on_traces_digests_and_missing_judge_answers(self, tmp_path: Path) -> None:
        cases = {
            "same": (member(1), member(2)),
            "digest": (member(1), member(2, digest="other")),
            "fewer": (member(1),),
            "more": (member(1), member(2), member(3)),
            "pending": (member(1), member(2, {"coherence": SIGNAL, "confidence": PENDING})),
            "an older revision's": (
                member(1),
                member(2, {"coherence": SIGNAL, "confidence": {**SIGNAL, "older": True}}),
            ),
            "another one's": (
                member(1),
                member(2, {"coherence": SIGNAL, "confidence": {**SIGNAL, "value": 0.5, "older": True}}),
            ),
            "another pending": (member(1), member(2, {"coherence": SIGNAL, "helpfulness": PENDING})),
            "passing": (member(1), member(2, {"confidence": {"outcome": "unscored", "value": None, "why": "timeout"}})),
            "otherwise passing": (
                member(1),
                member(2, {"confidence": {"outcome": "unscored", "value": None, "why": "over_budget"}}),
            ),
            "for good": (
                member(1),
                member(2, {"confidence": {"outcome": "unscored", "value": None, "why": "no_content"}}),
            ),
            "another value": (member(1), member(2, {"coherence": {"outcome": "scored", "value": 0.1, "why": None}})),
        }
        found = {}
        for name, members in cases.items():
            store = Store(tmp_path / name.replace(" ", "-"), "off")
            found[name] = evidence(scores(store, *members))
            store.close()
        alike = {"same", "for good", "another value"}
        assert {found[name] for name in alike} == {found["same"]}
        assert {len(bytes.fromhex(each)) for each in found.values()} == {16}
        assert len(set(found.values())) == len(found) - len(alike) + 1

    def test_results_of_an_open_session_have_their_own_ids(self, store: Store) -> None:
        found = scores(store, member(1))
        now, closed = (found.score("s", trigger)[0] for trigger in (Trigger.SESSION_CHANGED, Trigger.IDLE))
        assert not {each.id for each in now} & {each.id for each in closed}
        assert now[0].unit.evidence == closed[0].unit.evidence + ":open"

    def test_the_evidence_for_a_judge_does_not_depend_on_signals(self, tmp_path: Path) -> None:
        found = []
        for name, signals in (("without", {}), ("with", {"confidence": PENDING})):
            store = Store(tmp_path / name, "off")
            conversation = scores(store, member(1, signals), member(2)).conversation("s", Trigger.IDLE)
            assert conversation is not None
            found.append(conversation[1].evidence)
            assert [trace.trace_id for trace in conversation[0].traces] == [trace_id(1), trace_id(2)]
            assert conversation[0].session_id == "s"
            assert len(bytes.fromhex(conversation[1].evidence)) == 16
            store.close()
        assert found[0] == found[1]
        assert found[0] != ""


_JUDGED = ["session.correctness", "session.goal_completion", "session.user_friction"]


class TestJudgeJobs:
    @pytest.mark.parametrize("judged", [(False, False), (True, False), (False, True)])
    def test_a_session_is_judged_if_any_of_its_traces_is_judged(self, store: Store, judged: tuple[bool, bool]) -> None:
        members = [member(number, judged=is_judged) for number, is_judged in enumerate(judged, 1)]
        _, jobs = scores(store, *members, judged=True).score("s", Trigger.IDLE)
        assert [job.metric for job in jobs] == (_JUDGED if any(judged) else [])
        for job in jobs:
            assert (job.trace_id.hex(), job.delay) == (trace_id(2), 0.0)
            assert orjson.loads(job.body) == {"session": "s", "trigger": Trigger.IDLE.value}

    def test_two_sessions_have_different_jobs(self, tmp_path: Path) -> None:
        ids = set()
        for session in ("s", "t"):
            store = Store(tmp_path / session, "off")
            store.commit(WriteSet(session_traces=[to_row(member(1, judged=True), session)], touched={session})).result()
            _, [job, *_] = scores(store, judged=True).score(session, Trigger.IDLE)
            ids.add(job.id)
            store.close()
        assert len(ids) == 2

    def test_without_a_judge_there_are_no_jobs(self, store: Store) -> None:
        results, jobs = scores(store, member(1, judged=True)).score("s", Trigger.IDLE)
        assert {each.evaluator.kind for each in results} & {"llm"} == set()
        assert jobs == []


def test_a_trace_precedes_a_trace_that_starts_just_before_its_end() -> None:
    earlier = member(1)
    embedder, end = earlier.facts.embedder, earlier.end_ns
    assert earlier.precedes("agent 1", end, embedder)
    assert earlier.precedes("agent 1", end - 30, embedder), "clocks may differ a little"
    assert not earlier.precedes("agent 1", earlier.start_ns, embedder), "both began at once"
    long = Member(earlier.trace_id, 0, 10_000_000, earlier.facts, earlier.answer)
    assert not long.precedes("agent 1", 5_000_000, embedder), "they overlap"
