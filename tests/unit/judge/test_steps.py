"""What happened, told in order: turns with their calls and answers, and thoughts between the calls they led to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pandaeval_collector.judge.neutral import neutral
from pandaeval_collector.judge.pack import WHOLE, cleaned, pack
from pandaeval_collector.judge.sections import clock, facts, steps
from pandaeval_collector.judge.turns import conversation
from pandaeval_otel.model import Kind, Message, Part, Reasoning, Span, Text, ToolRequest, Trace, Turn
from support.judged import TRACE_ID, call, trace

SECRET = b"s" * 32
S = 10**9
NOON = 1_764_072_000 * S
"""Tuesday, 2025-11-25 12:00 UTC."""


def _model(at: int, *parts: Part) -> Span:
    out = (Message("assistant", parts),)
    return Span(TRACE_ID, f"{at:016x}", "", "chat", Kind.LLM, at * S, at * S + 1, output=out)


def _told(subject: Trace) -> list[str]:
    return steps(cleaned(subject, neutral), facts(subject), WHOLE)


class TestThoughts:
    def test_each_stands_before_the_call_that_it_led_to(self) -> None:
        spans = (
            _model(1, Reasoning("I search."), Text("Let me look."), ToolRequest("search")),
            _model(3, Reasoning("Not there, I try the depot."), ToolRequest("search")),
            _model(5, Reasoning("That is it."), Text("It is at the depot.")),
        )
        subject = trace(calls=[call(2), call(4)], spans=spans, reasoning=("I search.", "That is it."))
        first, second, last = _told(subject)
        assert first.startswith("thought: I search.\nsaid: Let me look.\ncall 1: search\n")
        assert second.startswith("thought: Not there, I try the depot.\ncall 2: search\n")
        assert last == "thought: That is it."

    def test_one_that_only_a_later_history_tells_stands_before_that_call(self) -> None:
        spans = (_model(1, ToolRequest("search")), _model(3, Reasoning("Again."), ToolRequest("search")))
        subject = trace(calls=[call(2), call(4)], spans=spans, reasoning=("Early.", "Again.", "Late."))
        first, second = _told(subject)
        assert "thought" not in first
        assert second.splitlines()[:3] == ["thought: Early.", "thought: Late.", "thought: Again."]

    def test_no_line_of_one_passes_for_a_call(self) -> None:
        subject = trace(calls=[call(2)], reasoning=("x\ncall 9: book",))
        assert "\ncall 9" not in "\n".join(_told(subject))


class TestTurns:
    def _subject(self) -> Trace:
        turns = (
            Turn("Where?", "At the\ndepot.", start_ns=NOON),
            Turn("Send it.", "Sent.", start_ns=NOON + 9 * S),
        )
        shifted = [replace(each, start_ns=NOON + each.start_ns) for each in (call(1), call(2), call(10, "send"))]
        return trace(calls=shifted, turns=turns)

    def test_each_with_its_calls_and_its_answer(self) -> None:
        told = _told(self._subject())
        assert [block.partition("\narguments")[0] for block in told] == [
            "turn 1 (Tuesday, 2025-11-25 12:00 UTC), the user said: Where?\ncall 1: search",
            "call 2: search",
            "turn 1, the agent answered: At the\ndepot.",
            "turn 2 (Tuesday, 2025-11-25 12:00 UTC), the user said: Send it.\ncall 3: send",
        ]
        assert "turns: 2\ntool calls: 3" in facts(self._subject()).text

    def test_the_last_answer_stands_by_itself(self) -> None:
        shown = pack(self._subject(), SECRET).text
        assert "TURN BY TURN" in shown
        assert shown.index("At the\ndepot.") < shown.index("Send it.\ncall 3") < shown.index("turn 2: Sent.")

    def test_traces_of_a_session_are_told_in_their_order_and_counted_together(self) -> None:
        def one(at: int, said: str) -> Trace:
            root = Span(TRACE_ID, f"{at:016x}", "", "run", Kind.AGENT, NOON + at * S, NOON + (at + 5) * S)
            made = replace(call(1), start_ns=NOON + (at + 1) * S)
            return trace(said, f"{said} done", [made], spans=(root,), llm_calls=2)

        whole = conversation([one(0, "First"), one(100, "Second")], "d").trace
        assert [block.partition("\n")[0] for block in _told(whole)] == [
            "turn 1 (Tuesday, 2025-11-25 12:00 UTC), the user said: First",
            "turn 1, the agent answered: First done",
            "turn 2 (Tuesday, 2025-11-25 12:01 UTC), the user said: Second",
        ]
        assert "model calls: 4" in facts(whole).text


@pytest.mark.parametrize(("time", "told"), [(NOON, "Tuesday, 2025-11-25 12:00 UTC"), (0, ""), (60 * S, "")])
def test_a_clock_tells_day_and_minute(time: int, told: str) -> None:
    assert clock(time) == told


def test_every_pack_and_every_question_about_the_outset_has_the_time() -> None:
    root = Span(TRACE_ID, "1" * 16, "", "run", Kind.AGENT, NOON, NOON + S)
    packed = pack(trace(spans=(root,)), SECRET)
    assert "Tuesday, 2025-11-25 12:00 UTC" in packed.text[: packed.outset]
