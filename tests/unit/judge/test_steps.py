"""The run as ordered turns, calls, answers and thoughts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.judge.pack import WHOLE, pack
from pandaeval_collector.judge.run_facts import facts
from pandaeval_collector.judge.steps import clock, steps
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
    return steps(subject, facts(subject), WHOLE)


class TestThoughts:
    def test_each_thought_is_shown_before_the_call_it_led_to(self) -> None:
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

    def test_thoughts_without_a_model_span_are_shown_before_the_next_known_thought(self) -> None:
        spans = (_model(1, ToolRequest("search")), _model(3, Reasoning("Again."), ToolRequest("search")))
        subject = trace(calls=[call(2), call(4)], spans=spans, reasoning=("Early.", "Again.", "Late."))
        first, second = _told(subject)
        assert "thought" not in first
        assert second.splitlines()[:3] == ["thought: Early.", "thought: Late.", "thought: Again."]

    def test_a_line_of_a_thought_cannot_fake_a_call(self) -> None:
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

    def test_each_turn_is_shown_with_its_calls_and_answer(self) -> None:
        told = _told(self._subject())
        assert [block.partition("\narguments")[0] for block in told] == [
            "turn 1 (Tuesday, 2025-11-25 12:00 UTC), the user said: Where?",
            "call 1: search",
            "call 2: search",
            "turn 1, the agent answered: At the\ndepot.",
            "turn 2 (Tuesday, 2025-11-25 12:00 UTC), the user said: Send it.",
            "call 3: send",
            "turn 2, the agent answered: Sent.",
        ]
        assert "turns: 2\ntool calls: 3" in facts(self._subject()).text

    def test_each_message_is_shown_once(self) -> None:
        shown = pack(self._subject(), SECRET)
        assert "TURN BY TURN" in shown.text
        assert [shown.text.count(each) for each in ("Where?", "At the\ndepot.", "Send it.", "Sent.")] == [1] * 4
        assert "WHAT THE USER ASKED" not in shown.text

    def test_traces_of_a_session_are_shown_in_order_and_counted_together(self) -> None:
        def one(at: int, said: str) -> Trace:
            root = Span(TRACE_ID, f"{at:016x}", "", "run", Kind.AGENT, NOON + at * S, NOON + (at + 5) * S)
            made = replace(call(1), start_ns=NOON + (at + 1) * S)
            return trace(said, f"{said} done", [made], spans=(root,), llm_calls=2)

        whole = conversation([one(0, "First"), one(100, "Second")], "d").trace
        assert [block.partition("\n")[0] for block in _told(whole) if block.startswith("turn")] == [
            "turn 1 (Tuesday, 2025-11-25 12:00 UTC), the user said: First",
            "turn 1, the agent answered: First done",
            "turn 2 (Tuesday, 2025-11-25 12:01 UTC), the user said: Second",
            "turn 2, the agent answered: Second done",
        ]
        assert "model calls: 4" in facts(whole).text


@pytest.mark.parametrize(("time", "told"), [(NOON, "Tuesday, 2025-11-25 12:00 UTC"), (0, ""), (60 * S, "")])
def test_clock_gives_day_and_minute_or_an_empty_text(time: int, told: str) -> None:
    assert clock(time) == told


def test_a_pack_contains_the_start_time() -> None:
    root = Span(TRACE_ID, "1" * 16, "", "run", Kind.AGENT, NOON, NOON + S)
    packed = pack(trace(spans=(root,)), SECRET)
    assert "Tuesday, 2025-11-25 12:00 UTC" in packed.text


class TestRepeats:
    def test_equal_calls_are_shown_once_with_a_count(self) -> None:
        calls = [call(n, arguments={"q": "x" if n > 1 else "y"}, result="none") for n in range(1, 96)]
        told = _told(trace(calls=calls))
        assert [block.partition("\n")[0] for block in told] == [
            "call 1: search",
            "call 2: search",
            "calls 3 to 95: as call 2, 93 times more",
        ]

    def test_a_repeated_call_with_another_result_or_in_another_turn_is_shown(self) -> None:
        same = [call(at, arguments={}, result="gone" if at == 2 else "here") for at in (1, 2, 3, 4, 12)]
        turns = (Turn("Where?", "Here."), Turn("Now?", "Gone.", start_ns=10 * S))
        told = [block for block in _told(trace(calls=same, turns=turns)) if block.startswith("call")]
        assert [block.partition("\n")[0] for block in told] == [
            "call 1: search",
            "call 2: search",
            "calls 3 to 4: as call 1, 2 times more",
            "call 5: as call 1",
        ]


def test_captured_but_empty_text_is_marked_as_empty() -> None:
    empty = trace(answer="", calls=[call(1, result="")], output="")
    shown = pack(empty, SECRET).text
    assert "ANSWERED\n(captured, and empty)" in shown
    assert "result: (empty)" in shown
    assert "ANSWERED\n(nothing was captured)" in pack(trace(answer=None, output=None), SECRET).text


def test_a_call_of_a_tool_that_the_agent_did_not_have_is_listed_as_a_fact() -> None:
    shown = pack(trace(calls=[call(1), call(2, "steal")]), SECRET).text
    assert "not among those that the agent had: 1 (calls 2)" in shown
    assert "not among those" not in pack(trace(calls=[call(1, "steal")], tools=()), SECRET).text


def test_results_of_changing_calls_are_truncated_last() -> None:
    long = "row " * 1500
    calls = [call(n, "search", arguments={"q": n}, result=f"{long}END{n}") for n in range(1, 6)]
    calls.insert(2, call(9, "cancel_order", result=f"{long}REFUND 12 EUR {long}"))
    packed = pack(trace(calls=calls), SECRET, 6000)
    assert "REFUND 12 EUR" in packed.text
    assert "characters cut" in packed.text
    assert packed.shown == 1.0


def test_a_run_that_is_too_long_keeps_its_end_and_an_index_of_the_rest() -> None:
    calls = [call(n, arguments={"q": f"n-{n}"}, result=f"{n} " * 60) for n in range(1, 200)]
    calls[3] = call(4, "cancel_order", result="cancelled")
    packed = pack(trace(calls=calls), SECRET, 3000)
    assert packed.tokens <= 3000
    assert all(f"\ncall {n}: " in packed.text for n in (1, 4, 198, 199))
    assert "(left out: call 2: search)" in packed.text
    assert "\ncall 60: " not in packed.text
    assert packed.shown < 0.5


def test_a_truncated_result_keeps_the_values_that_later_steps_use() -> None:
    noise = "some text " * 400
    calls = [call(n, arguments={"q": n}, result=f"{noise}PK-{n:03d} at shelf SH{n} {noise}") for n in range(1, 9)]
    calls.append(call(9, "track", arguments={"parcel": "PK-004"}, result="on its way"))
    shown = pack(trace("Where?", "It is at shelf SH7.", calls), SECRET, 3000).text
    assert shown.count("PK-004") == 2
    assert "at shelf SH7" in shown.partition("ANSWERED")[0]
    assert "PK-005" not in shown


def test_a_call_that_checks_a_change_is_left_out_last() -> None:
    calls = [call(n, arguments={"q": n}, result=f"{n} " * 60) for n in range(1, 200)]
    calls[3] = call(4, "cancel_order", arguments={"id": "W-123"}, result="ok")
    calls[5] = call(6, "get_order", arguments={"id": "W-123"}, result="status: open")
    shown = pack(trace(calls=calls), SECRET, 3000).text
    assert "\ncall 6: get_order" in shown
    assert "\ncall 5: " not in shown


def test_equal_long_results_are_shown_once() -> None:
    calls = [call(n, arguments={"q": n}, result="the same row " * 20) for n in (1, 2, 3)]
    shown = pack(trace(calls=calls), SECRET).text
    assert shown.count("the same row " * 20) == 1
    assert shown.count("result: (the same as that of call 1)") == 2


def test_code_keeps_its_indentation_and_links_keep_the_text_around_them() -> None:
    code = "def f(x):\n    if x:\n        return 1"
    shown = pack(
        trace("见https://a.example/x,然后 (https://b.example/y). Go", calls=[call(1, arguments=code)]), SECRET
    ).text
    assert r"arguments: def f(x):\n    if x:\n        return 1" in shown
    assert "[link a.example/x],然后 ([link b.example/y]). Go" in shown
