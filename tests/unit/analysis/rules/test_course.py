"""How a run went, in counts."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules.course import course
from pandaeval_collector.analysis.stats.problem_features import MOST_TOOLS, Course
from pandaeval_otel.model import Kind, Span, ToolCall, Trace, Turn


def trace(*calls: ToolCall, turns: tuple[Turn, ...] = ()) -> Trace:
    span = Span("t" * 32, "s" * 16, "", "agent", Kind.AGENT, 0, 1)
    return Trace("t" * 32, (span,), "s" * 16, turns=turns, tool_calls=calls)


def call(name: str, arguments: Any = None, result: Any = "fine", error: str | None = None) -> ToolCall:
    return ToolCall(
        name, arguments=arguments or {}, result=result, error=error, has_arguments=True, has_result=error is None
    )


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        ("I am sorry about that.", {"apologies": 1}),
        ("Unfortunately I cannot do that.", {"apologies": 1, "refusals": 1}),
        ("Your booking has been cancelled.", {"done": 1}),
        ("Shall I proceed?", {"confirming": 1, "asks": 1}),
        ("Which one?", {"asks": 1}),
        ("Which one? I took the first.", {"asks": 1}),
        ("Here it is.", {}),
    ],
)
def test_words_of_answers(answer: str, counted: dict[str, int]) -> None:
    found = course(trace(turns=(Turn("Hello", answer),)))
    named = {name: getattr(found, name) for name in ("apologies", "refusals", "done", "confirming", "asks")}
    assert named == {**dict.fromkeys(named, 0), **counted}


@pytest.mark.parametrize(
    ("said", "corrections", "thanks"),
    [
        ("No, I meant the other one.", 1, 0),
        ("That's not what I asked for", 1, 0),
        ("Thank you!", 0, 1),
        ("Book a table for two.", 0, 0),
        ("I know nobody here.", 0, 0),
    ],
)
def test_words_of_users(said: str, corrections: int, thanks: int) -> None:
    found = course(trace(turns=(Turn(said, "Done."),)))
    assert (found.corrections, found.thanks) == (corrections, thanks)


def test_calls() -> None:
    found = course(
        trace(
            call("get_order", {"id": "W1"}, '{"total": "12.50", "state": "open"}'),
            call("get_order", {"id": "W1"}, '{"total": "12.50", "state": "open"}'),
            call("get_user", {"id": "U7"}, '{"name": "Ann"}'),
            call("cancel_order", {"id": "W1"}, error="timeout"),
            call("transfer_to_human", {"why": "it failed"}),
            turns=(Turn("Cancel it", "It cost 12.50."),),
        )
    )
    assert (found.calls, found.failed, found.lost, found.repeats, found.handed) == (5, 1, 1, 1, 1)
    assert (found.to_change, found.changed) == (1, 0)
    assert found.tools == ("cancel_order", "get_order", "get_user", "transfer_to_human")
    assert (found.results, found.unused) == (4, 2)  # what is known of the user, and the transfer's "fine"


def test_of_a_tool_that_is_called_thrice_differently_nothing_is_repeated() -> None:
    assert course(trace(*(call("get", {"id": at}) for at in range(3)))).repeats == 0


def test_lengths_are_those_of_texts() -> None:
    found = course(trace(turns=(Turn("abc", "defgh"), Turn(None, "ij"), Turn("k", None))))
    assert (found.users, found.answers, found.user_chars, found.answer_chars) == (2, 2, 4, 7)


def test_packed_it_reads_back() -> None:
    found = course(trace(call("a"), call("b"), turns=(Turn("x", "y"),)))
    assert Course.unpack(found.pack()) == found


@pytest.mark.parametrize("packed", [None, [], [1, 2, ["a"]]])
def test_what_another_version_packed_is_not_read(packed: list[Any] | None) -> None:
    assert Course.unpack(packed) is None


def test_names_of_tools_are_bounded() -> None:
    assert len(course(trace(*(call(f"tool{at}") for at in range(100)))).tools) == MOST_TOOLS
