"""What a problem score is made of: each feature's value, the words for it, and the packed counts of a trace."""

from __future__ import annotations

import json
from dataclasses import fields
from math import log1p

import pytest

from pandaeval_collector.analysis.stats.problem_features import FEATURES, RULES, Course, session_features, told

FIRST = Course(
    spans=4, users=1, answers=1, user_chars=10, answer_chars=20, calls=4, failed=2, lost=1, to_change=3, changed=2,
    repeats=1, handed=1, results=2, unused=1, apologies=1, done=1, confirming=1, corrections=1, thanks=1, asks=1,
    tools=("a", "b"),
)  # fmt: skip
SECOND = Course(spans=2, users=1, answers=1, refusals=1, corrections=1, calls=2, confirming=1, done=1, tools=("a",))
LAST = Course(spans=3, users=2, answers=2, user_chars=6, answer_chars=7, asks=1)
VALUES = {
    "spans": log1p(9),
    "user_turns": log1p(4),
    "calls": log1p(6),
    "calls_per_turn": 6 / 4,
    "failed_calls": 2 / 6,
    "a_call_failed": 1.0,
    "unresolved_failure": 1.0,
    "unresolved_at_end": 0.0,
    "changing_calls": log1p(3),
    "changes_made": log1p(2),
    "a_change_failed": 1.0,
    "nothing_changed": 0.0,
    "repeated_calls": 1 / 6,
    "handed_over": 1.0,
    "results_unused": 0.5,
    "apologies": 1 / 4,
    "refusals": 1 / 4,
    "refusal_at_end": 1.0,
    "done_at_end": 1.0,
    "asks_at_end": 1.0,
    "asks_to_confirm": 2 / 4,
    "user_corrects": 1 / 4,
    "thanks_at_end": 0.0,
    "answer_length": log1p(27 / 4),
    "user_length": log1p(16 / 4),
    "first_message": log1p(10),
    "last_answer": log1p(7),
    "different_tools": 2 / 6,
}


class TestValues:
    def test_every_feature_of_a_session(self) -> None:
        row = session_features([FIRST, SECOND, LAST], [])
        assert {name: row[name] for name in FEATURES} == pytest.approx(VALUES)

    def test_every_feature_of_a_trace_in_which_nothing_happened(self) -> None:
        """Shares of nothing are 0, and are not divided by."""
        row = session_features([Course()], [])
        assert {name for name in FEATURES if row[name]} == {"nothing_changed"}
        assert row["nothing_changed"] == 1.0

    def test_a_share_of_one_is_a_whole(self) -> None:
        row = session_features([Course(users=1, calls=1, failed=1, repeats=1, tools=("a",))], [])
        assert {
            name: row[name] for name in ("calls_per_turn", "failed_calls", "repeated_calls", "different_tools")
        } == {
            "calls_per_turn": 1.0,
            "failed_calls": 1.0,
            "repeated_calls": 1.0,
            "different_tools": 1.0,
        }

    @pytest.mark.parametrize(("at", "is_end"), [(0, 0.0), (1, 1.0), (2, 1.0)])
    @pytest.mark.parametrize(
        ("name", "of"),
        [
            ("done", "done_at_end"),
            ("thanks", "thanks_at_end"),
            ("refusals", "refusal_at_end"),
            ("apologies", "refusal_at_end"),
        ],
    )
    def test_the_last_two_traces_are_the_end(self, name: str, of: str, at: int, is_end: float) -> None:
        traces = [Course(**{name: int(place == at)}) for place in range(3)]  # type: ignore[arg-type]
        assert session_features(traces, [])[of] == is_end

    @pytest.mark.parametrize(("name", "of"), [("lost", "unresolved_at_end"), ("asks", "asks_at_end")])
    def test_what_is_left_open_is_told_by_the_last_trace_alone(self, name: str, of: str) -> None:
        opened, closed = Course(**{name: 2}), Course()  # type: ignore[arg-type]
        assert session_features([closed, opened], [])[of] == 1.0
        assert session_features([opened, closed], [])[of] == 0.0

    def test_without_a_trace_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="without traces"):
            session_features([], [])

    def test_scores_of_rules_count_by_their_worst_and_their_mean(self) -> None:
        row = session_features([Course()] * 3, [{"response": 0.2}, {"grounding": 1.0}, {"response": 0.6}])
        assert (row["worst response"], row["mean response"]) == (0.2, pytest.approx(0.4))
        assert (row["worst grounding"], row["mean grounding"]) == (1.0, 1.0)
        assert (row["worst tool_loop"], row["mean tool_loop"]) == (1.0, 1.0)

    def test_each_tool_that_any_trace_called_is_one(self) -> None:
        row = session_features([FIRST, SECOND, LAST, Course(tools=("refund",))], [])
        assert {name: row[name] for name in row if name.startswith("calls ")} == {
            "calls a": 1.0,
            "calls b": 1.0,
            "calls refund": 1.0,
        }


class TestWords:
    def test_every_feature_has_some_for_both_ends(self) -> None:
        row = session_features([Course()], [])
        assert {*FEATURES, *(f"worst {rule}" for rule in RULES), *(f"mean {rule}" for rule in RULES)} == {*row}
        assert all(more != less for more, less in FEATURES.values())
        assert len({words for both in FEATURES.values() for words in both}) == 2 * len(FEATURES)

    @pytest.mark.parametrize(
        ("name", "high", "words"),
        [
            ("spans", True, "many steps"),
            ("spans", False, "few steps"),
            ("calls", True, "many tool calls"),
            ("calls refund", True, "refund was called"),
            ("calls refund", False, "refund was not called"),
            ("calls calls ", True, "calls  was called"),
            ("worst response", True, "worst response score high"),
            ("mean coherence", False, "mean coherence score low"),
        ],
    )
    def test_a_feature_is_told(self, name: str, high: bool, words: str) -> None:
        assert told(name, high) == words


class TestPacked:
    @pytest.mark.parametrize("course", [Course(), FIRST, SECOND, LAST])
    def test_it_reads_back_from_json(self, course: Course) -> None:
        assert Course.unpack(json.loads(json.dumps(course.pack()))) == course

    def test_the_fields_stand_in_their_order(self) -> None:
        counts = range(1, len(fields(Course)))
        assert Course(*counts, tools=("a", "b")).pack() == [*counts, ["a", "b"]]

    def test_nothing_and_what_another_version_wrote_is_no_course(self) -> None:
        packed = FIRST.pack()
        assert Course.unpack(None) is None
        assert Course.unpack([]) is None
        assert Course.unpack(packed[1:]) is None
        assert Course.unpack([0, *packed]) is None
