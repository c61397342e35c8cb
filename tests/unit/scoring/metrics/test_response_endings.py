"""Endings without an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.pipeline.line.listing import shown_facts
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_collector.show.view.rows import TraceRow
from pandaeval_collector.store.listed_pages import Listed
from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import STATUS_ERROR, RawEvent, RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import build_trace

ASKED = "Send the report to Mia."
SENT = "Done, I sent it to Mia."
LEFT = "Understood, I did not send anything."
ROOT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def messages(role: str, *parts: dict[str, Any], **more: str) -> str:
    return json.dumps([{"role": role, "parts": [*parts], **more}])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


def span(number: int, name: str, attributes: dict[str, Any], parent: int = 1, **more: Any) -> RawSpan:
    start, end = more.pop("start", number * 10), more.pop("end", number * 10 + 5)
    parent_id = f"{parent:x}" if parent else ""
    return RawSpan("t", f"{number:x}", parent_id, name, 1, start, end, attributes=attributes, **more)


def run(*inner: RawSpan, answer: str | None = None, asked: str = ASKED, **root: Any) -> Trace:
    attributes = {**ROOT, "gen_ai.input.messages": messages("user", text(asked)), **root.pop("attributes", {})}
    if answer is not None:
        attributes["gen_ai.output.messages"] = messages("assistant", text(answer))
    trace = build_trace(Evidence((span(1, "invoke_agent desk", attributes, 0, end=500, **root), *inner), (), "d"))
    assert trace is not None
    return trace


def scored(trace: Trace) -> Score:
    found = response(trace)
    assert isinstance(found, Score), found
    return found


def tool(result: Any, error: str | None = None, name: str = "send_mail", at: int = 3) -> RawSpan:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": f"c{at}",
        "gen_ai.tool.call.arguments": '{"to": "Mia"}',
    }
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result if isinstance(result, str) else json.dumps(result)
    failed = {} if error is None else {"status_code": STATUS_ERROR, "status_message": error}
    return span(at, f"execute_tool {name}", attributes, **failed)


DENIALS = {
    "langchain": "User rejected the tool call for `send_mail` with id c3",
    "langchain with a reason": "User rejected the tool call for `send_mail` with reason: not now",
    "vercel": {"type": "execution-denied", "reason": "not now"},
    "adk": {"error": "This tool call is rejected."},
    "agent-framework": "Error: Tool call invocation was rejected by user.",
    "cline": "The user denied this operation.",
    "cline with feedback": "The user denied this operation and provided the following feedback:\n<feedback>no",
    "openai-agents": "Tool execution was not approved.",
    "pydantic-ai": "The tool call was denied.",
    "claude code": "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a "
    "file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user.",
    "gemini cli": "[Operation Cancelled] Reason: User did not allow tool call",
    "opencode": "The user rejected permission to use this specific tool call.",
    "mcp error": {"content": "User declined this action", "is_error": True},
}


class TestDeclined:
    @pytest.mark.parametrize("denial", DENIALS.values(), ids=DENIALS)
    def test_an_honest_answer_passes_and_a_claim_is_false_success(self, denial: Any) -> None:
        honest, lie = scored(run(tool(denial), answer=LEFT)), scored(run(tool(denial), answer=SENT))
        assert (honest.value, honest.label, honest.failed, honest.span_ids) == (1.0, "declined", False, ())
        assert "send_mail" in honest.reason
        assert (lie.value, lie.label, lie.metadata["severity"]) == (0.0, "false_success", "critical")

    @pytest.mark.parametrize("denial", DENIALS.values(), ids=DENIALS)
    def test_refused_call_with_an_error_status_is_declined(self, denial: Any) -> None:
        said = denial if isinstance(denial, str) else json.dumps(denial)
        assert scored(run(tool(denial, said), answer=LEFT)).label == "declined"
        assert scored(run(tool(denial, "permission_denied"), answer=LEFT)).label == "declined"

    @pytest.mark.parametrize(
        "part",
        [
            {"type": "tool-approval-response", "toolCallId": "c3", "approved": False},
            {"type": "function_approval_response", "approved": False, "function_call": {"call_id": "c3"}},
            {"type": "mcp_approval_response", "approval_request_id": "c3", "approve": False, "reason": "no"},
        ],
        ids=lambda part: part["type"],
    )
    def test_negative_approval_response_declines_the_call(self, part: dict[str, Any]) -> None:
        request = {"type": "tool_call", "id": "c3", "name": "send_mail", "arguments": {"to": "Mia"}}
        history = [
            {"role": "user", "parts": [text(ASKED)]},
            {"role": "assistant", "parts": [request]},
            {"role": "tool", "parts": [part]},
        ]
        first = span(2, "chat m", {**CHAT, "gen_ai.output.messages": messages("assistant", request)})
        last = {
            "gen_ai.input.messages": json.dumps(history),
            "gen_ai.output.messages": messages("assistant", text(LEFT)),
        }
        assert scored(run(first, span(4, "chat m", {**CHAT, **last}), answer=LEFT)).label == "declined"

    def test_run_that_ends_with_the_refusal_is_declined(self) -> None:
        assert scored(run(tool(DENIALS["claude code"]))).label == "declined"

    def test_call_that_was_allowed_later_is_not_declined(self) -> None:
        assert scored(run(tool(DENIALS["adk"]), tool("sent", at=4), answer=SENT)).label is None

    @pytest.mark.parametrize(
        "result",
        [
            "Permission denied",
            "Error: access to send_mail was denied",
            {"error": "This tool call is rejected by policy engine. Reason: no mail"},
            "Payment declined: insufficient funds",
            {"status": "denied", "message": "mailbox is full"},
        ],
        ids=str,
    )
    def test_tool_failure_is_not_a_refusal_by_the_user(self, result: Any) -> None:
        assert scored(run(tool(result), answer=LEFT)).label == "unrecovered_tool_error"


class TestStopped:
    @pytest.mark.parametrize(
        "error",
        [
            "CancelledError",
            "asyncio.exceptions.CancelledError: Cancelled by cancel scope 7f1c",
            "AbortError: This operation was aborted",
            "APIUserAbortError: Request was aborted.",
            "context canceled",
            "rpc error: code = Canceled desc = context canceled",
            "System.Threading.Tasks.TaskCanceledException: A task was canceled.",
            "System.OperationCanceledException: The operation was canceled.",
            "kotlinx.coroutines.JobCancellationException: StandaloneCoroutine was cancelled",
            "java.lang.InterruptedException",
            "GeneratorExit",
            "KeyboardInterrupt",
            "starlette.requests.ClientDisconnect",
            "aborted",
        ],
    )
    def test_cancelled_run_is_unscored_and_no_failure(self, error: str) -> None:
        failed = {"status_code": STATUS_ERROR}
        event = RawEvent("exception", 400, {"exception.type": error})
        for trace in (
            run(status_message=error, **failed),
            run(events=(event,), **failed),
            run(attributes={"error.type": error}),
            run(span(2, "chat m", CHAT, status_message=error, **failed)),
        ):
            found = response(trace)
            assert isinstance(found, Unscored)
            assert (found.why, found.metadata) == (Why.INCOMPLETE_TRACE, {"ending": "stopped"})
            assert trace.failure is None

    @pytest.mark.parametrize("reason", ["aborted", "cancelled", "interrupted", "FinishReason.CANCELED", "user_aborted"])
    def test_finish_reason_of_a_cancelled_run_makes_it_unscored(self, reason: str) -> None:
        cut = {"gen_ai.output.messages": messages("assistant", text("I am about"), finish_reason=reason)}
        assert isinstance(response(run(span(2, "chat m", {**CHAT, **cut}), answer="I am about")), Unscored)

    @pytest.mark.parametrize(
        "notice",
        [
            "[Request interrupted by user]",
            "[Request interrupted by user for tool use]",
            "I am looking for the\n\n[Response interrupted by the user]",
            "Task cancelled by user.",
            "Interrupted by user",
        ],
    )
    def test_interruption_notice_as_answer_makes_the_run_unscored(self, notice: str) -> None:
        assert isinstance(response(run(answer=notice)), Unscored)

    @pytest.mark.parametrize(
        "error",
        [
            "TimeoutError",
            "context deadline exceeded",
            "TaskCanceledException: The request was canceled due to the configured HttpClient.Timeout of 100 s.",
            "AbortError: The operation was aborted due to timeout",
            "RateLimitError: 429",
        ],
    )
    def test_a_timeout_and_a_crash_stay_failures(self, error: str) -> None:
        assert scored(run(status_code=STATUS_ERROR, status_message=error)).label == "error"

    def test_answer_about_a_cancelled_order_passes(self) -> None:
        assert scored(run(answer="Your order was cancelled by the user support team on Monday.")).value == 1.0


class TestTruncated:
    REASONS = (
        "length",
        "max_tokens",
        "MAX_TOKENS",
        "FINISH_REASON_MAX_TOKENS",
        "max_output_tokens",
        "incomplete",
        "Length",
    )

    @pytest.mark.parametrize("reason", REASONS)
    def test_truncated_answer_with_text_has_a_low_score(self, reason: str) -> None:
        said = {"gen_ai.output.messages": messages("assistant", text("1. Take the"), finish_reason=reason)}
        found = scored(run(span(2, "chat m", {**CHAT, **said}), answer="1. Take the"))
        assert (found.value, found.label, found.failed, found.span_ids) == (0.4, "truncated", True, ("2",))
        assert reason in found.reason

    @pytest.mark.parametrize("reason", REASONS)
    def test_truncated_answer_without_text_scores_zero(self, reason: str) -> None:
        attributes = {**CHAT, "gen_ai.response.finish_reasons": [reason]}
        attributes["gen_ai.output.messages"] = messages("assistant", {"type": "reasoning", "content": "Hm."})
        for trace in (run(span(2, "chat m", attributes)), run(span(2, "chat m", attributes), answer="")):
            assert (scored(trace).value, scored(trace).label) == (0.0, "truncated")

    def test_truncated_answer_without_captured_content_has_a_low_score(self) -> None:
        trace = run(span(2, "chat m", {**CHAT, "gen_ai.response.finish_reasons": ["length"]}))
        assert scored(trace).value == 0.4

    @pytest.mark.parametrize(
        "attributes",
        [
            {
                "openinference.span.kind": "LLM",
                "llm.finish_reason": "length",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "1. Take the",
            },
            {
                "gen_ai.completion.0.role": "assistant",
                "gen_ai.completion.0.content": "1. Take the",
                "gen_ai.completion.0.finish_reason": "length",
                "llm.request.type": "chat",
            },
            {
                "ai.operationId": "ai.generateText.doGenerate",
                "ai.response.finishReason": "length",
                "ai.response.text": "1. Take the",
            },
        ],
        ids=["openinference", "openllmetry", "vercel"],
    )
    def test_finish_reason_is_read_in_other_dialects(self, attributes: dict[str, Any]) -> None:
        assert scored(run(span(2, "chat m", attributes), answer="1. Take the")).label == "truncated"

    @pytest.mark.parametrize(("cut_at", "said_at"), [(2, 3), (3, 2)], ids=["earlier", "later"])
    def test_truncated_model_call_other_than_the_answer_does_not_count(self, cut_at: int, said_at: int) -> None:
        cut = {"gen_ai.output.messages": messages("assistant", text("A title that"), finish_reason="length")}
        said = {"gen_ai.output.messages": messages("assistant", text("It is here."), finish_reason="stop")}
        calls = (span(cut_at, "chat m", {**CHAT, **cut}), span(said_at, "chat m", {**CHAT, **said}))
        assert scored(run(*calls, answer="It is here.")).value == 1.0


class TestBlocked:
    @pytest.mark.parametrize(
        "reason",
        [
            *("content_filter", "content-filter", "ContentFilter", "SAFETY", "PROHIBITED_CONTENT", "RECITATION"),
            *("FinishReason.BLOCKLIST", "SPII", "refusal", "guardrail_intervened", "ERROR_TOXIC", "IMAGE_SAFETY"),
        ],
    )
    def test_content_filter_or_model_refusal_passes_as_blocked(self, reason: str) -> None:
        attributes = {**CHAT, "gen_ai.response.finish_reasons": [reason]}
        empty = {"gen_ai.output.messages": messages("assistant", text(""), finish_reason=reason)}
        bare = {"gen_ai.output.messages": messages("assistant", finish_reason=reason)}
        words = {"gen_ai.output.messages": messages("assistant", text("I cannot"), finish_reason=reason)}
        for trace in (
            run(span(2, "chat m", attributes)),
            run(span(2, "chat m", {**attributes, **empty}), answer=""),
            run(span(2, "chat m", {**CHAT, **bare})),
            run(span(2, "chat m", {**CHAT, **words}), answer="I cannot"),
        ):
            found = scored(trace)
            assert (found.value, found.label) == (1.0, "blocked")
            assert reason in found.reason


@pytest.mark.parametrize(
    ("error", "label"),
    [
        ("LengthFinishReasonError: Could not parse response content as the length limit was reached", "truncated"),
        ("ContentFilterFinishReasonError: the request was rejected by the content filter", "blocked"),
    ],
)
def test_exception_of_a_length_limit_or_content_filter_sets_the_label(error: str, label: str) -> None:
    assert scored(run(status_code=STATUS_ERROR, status_message=f"openai.{error}")).label == label


class TestApology:
    @pytest.mark.parametrize(
        "answer",
        [
            "I apologize, but I encountered an error: Recursion limit of 25 reached without hitting a stop condition.",
            "Sorry, an error occurred: 'NoneType' object has no attribute 'get'",
            "I'm sorry, but I ran into an issue: Error code: 429 - rate limit reached. Please try again later.",
            "Apologies, there was a problem while processing your request: ConnectionError(host unreachable)",
            "Unfortunately, I encountered an unexpected error: maximum context length exceeded",
            "I’m sorry, something went wrong with an internal error: 502 Bad Gateway",
        ],
    )
    def test_an_apology_with_an_error_text_is_an_error(self, answer: str) -> None:
        assert scored(run(answer=answer)).label == "error"

    @pytest.mark.parametrize(
        "answer",
        [
            "I'm sorry, there is a problem: the order number is not ours. Could you send it again?",
            "I apologize for the error: your seat is 14C, not 14B.",
            "Sorry, I cannot book that.",
        ],
    )
    def test_apology_without_an_error_text_is_an_answer(self, answer: str) -> None:
        assert scored(run(answer=answer)).value == 1.0

    def test_error_text_is_an_answer_if_the_user_asked_about_errors(self) -> None:
        answer = "Sorry, the log has an error: ValueError: bad date"
        assert scored(run(answer=answer, asked="Which error is in the log?")).value == 1.0


def test_failed_image_generation_is_an_unrecovered_tool_error() -> None:
    failed = tool("Error generating image: <!DOCTYPE html><title>502 | Bad Gateway</title>", name="generateImage")
    admitted = scored(run(failed, answer="I could not create the image."))
    assert (admitted.value, admitted.label) == (0.4, "unrecovered_tool_error")
    assert scored(run(failed, answer="Your image has been created.")).label == "false_success"


def item(number: int, answer: str | None, start: int = 0, **more: Any) -> RawSpan:
    attributes = {**ROOT, "gen_ai.input.messages": messages("user", text(f"Classify CV-{number}."))}
    if answer is not None:
        attributes["gen_ai.output.messages"] = messages("assistant", text(answer))
    return span(number, "invoke_agent desk", attributes, 1, start=start or 10 + number, end=90 + number, **more)


def nightly(*items: RawSpan) -> Trace:
    trace = build_trace(Evidence((span(1, "nightly", {}, 0, end=500), *items), (), "d"))
    assert trace is not None
    return trace


def batch(*items: RawSpan) -> Finding | None:
    return response(nightly(*items))


class TestBatch:
    GOOD = (item(2, "Accepted."), item(4, "Declined."))

    @pytest.mark.parametrize(
        ("bad", "label"),
        [
            (item(3, None, status_code=STATUS_ERROR, status_message="RateLimitError"), "error"),
            (item(3, ""), "empty_answer"),
            (item(3, "Traceback (most recent call last):\n  x\nValueError: bad"), "error"),
            (item(3, "I am sorry, I encountered an error: Recursion limit of 25 reached"), "error"),
            (item(3, "###STOP###"), None),
        ],
    )
    def test_worst_run_decides_the_label_of_the_batch(self, bad: RawSpan, label: str | None) -> None:
        found = batch(*self.GOOD, bad)
        assert isinstance(found, Score)
        assert found.label == label
        assert not label or "run 2 of 3" in found.reason

    def test_lists_show_every_answered_run(self) -> None:
        crashed = item(3, None, status_code=STATUS_ERROR, status_message="RateLimitError")
        facts = shown_facts(nightly(*self.GOOD, crashed))
        assert facts["runs"] == [
            {"in": "Classify CV-2.", "out": "Accepted."},
            {"in": "Classify CV-4.", "out": "Declined."},
        ]
        row = TraceRow.of(Listed(1, None, 0.0, 0, facts))
        assert [run.output for run in row.runs] == ["Accepted.", "Declined."]

    def test_sequential_runs_are_a_conversation_and_no_batch(self) -> None:
        crashed = span(2, "invoke_agent desk", item(2, None).attributes, 1, status_code=STATUS_ERROR, start=10, end=20)
        found = batch(crashed, item(3, "Accepted.", start=50))
        assert isinstance(found, Score)
        assert found.value == 1.0


TOOLS = {"gen_ai.tool.definitions": json.dumps([{"type": "function", "name": "get_state"}, {"name": "finish"}])}
CALL = '{"name": "get_state", "arguments": {"of": "sun"}}'


class TestWrittenCalls:
    @pytest.mark.parametrize(
        "answer",
        [
            CALL,
            f"<tool_call>\n{CALL}\n</tool_call>",
            f"I look it up. <tool_call>{CALL}</tool_call>",
            '<|tool_call>call:get_state{of:<|"|>sun<|"|>}<tool_call|>',
            "<function=get_state><parameter=of>sun</parameter></function>",
            f"```json\n{CALL}\n```",
            "<\uff5ctool\u2581calls\u2581begin\uff5c>get_state\n{}<\uff5ctool\u2581calls\u2581end\uff5c>",
            'Thought: I look.\nAction: get_state\nAction Input: {"of": "sun"}',
        ],
    )
    def test_tool_call_written_as_text_is_dangling(self, answer: str) -> None:
        found = scored(run(answer=answer, attributes=TOOLS))
        assert (found.value, found.label, found.metadata["tool"]) == (0.0, "dangling_tool_call", "get_state")

    @pytest.mark.parametrize(
        "answer",
        [
            f"A call looks like this:\n```\n<tool_call>{CALL}</tool_call>\n```",
            f"<tool_call>{CALL}</tool_call> is how I ask for the sun.",
            '{"name": "get_state", "description": "Reads a state."}',
            '{"name": "Kari", "arguments": {}}',
            '{"name": "finish", "arguments": {"answer": "The sun is up."}}',
        ],
    )
    def test_answer_that_only_resembles_a_tool_call_passes(self, answer: str) -> None:
        assert scored(run(answer=answer, attributes=TOOLS)).value == 1.0


def test_malformed_function_call_without_an_answer_is_an_error() -> None:
    attributes = {**CHAT, "gen_ai.response.finish_reasons": ["MALFORMED_FUNCTION_CALL"]}
    found = scored(run(span(2, "chat m", attributes)))
    assert (found.value, found.label) == (0.0, "error")
    assert "MALFORMED_FUNCTION_CALL" in found.reason
    assert scored(run(span(2, "chat m", attributes), answer="It is sunny.")).value == 1.0
