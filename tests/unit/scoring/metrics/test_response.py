"""Endings of runs, and lookalikes per rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from pandaeval_collector.analysis.rules.response_recovery import (
    FailureAccount,
    admits_failure,
    changed_by,
    failure_account,
)
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.config import load
from pandaeval_collector.scoring.metrics.trace.response import ASKS_ON, HONEST, Ending, response
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, ToolDefinition, ToolRequest, Trace, Trigger, Turn

ASKED = "Book the cheapest ferry."


def span(span_id: str, kind: Kind, start: int, **more: Any) -> Span:
    return Span("t", span_id, "" if span_id == "root" else "root", span_id, kind, start, start + 5, **more)


def run(answer: str | None = "It is booked.", *calls: ToolCall, user: str | None = ASKED, **more: Any) -> Trace:
    """Return an agent run with ``calls`` and an answer."""
    made = [span(call.span_id, Kind.TOOL, call.start_ns) for call in calls if call.span_id]
    spans = (span("root", Kind.AGENT, 0), *made)
    turns = (Turn(user, answer, "root"),)
    return Trace("t", spans, "root", input=user, output=answer, turns=turns, tool_calls=calls, **more)


def call(name: str, result: Any = None, at: int = 10, error: str | None = None, **arguments: Any) -> ToolCall:
    captured = result is not None
    span_id = f"{name}{at}"
    return ToolCall(
        name, "", arguments, result, error, span_id, "", at, at + 5, has_arguments=True, has_result=captured
    )


@dataclass(frozen=True)
class Response:
    """The result about a run's end."""

    score: float | None
    reason: str
    ending: Ending | None = None
    why: Why | None = None
    tool: str = ""
    error: str = ""
    span_ids: tuple[str, ...] = ()


def found(trace: Trace, *end_tokens: str) -> Response:
    said = response(trace, end_tokens)
    if isinstance(said, Unscored):
        return Response(None, said.reason, why=said.why)
    assert isinstance(said, Score)
    ending = Ending(said.metadata["ending"]) if "ending" in said.metadata else None
    tool = said.metadata.get("tool") or said.metadata.get("ended_by") or ""
    return Response(said.value, said.reason, ending, None, tool, said.metadata.get("error") or "", said.span_ids)


def test_changing_tool_counts_only_if_its_last_call_succeeded() -> None:
    made = run(
        "Done.",
        call("book_flight", "Error: no seats", at=10),
        call("book_flight", "booked", at=20),
        call("cancel_flight", "cancelled", at=30),
        call("cancel_flight", "Error: not found", at=40),
        call("get_flight", "LH 12", at=50),
    )
    assert changed_by(made) == ("book_flight",)


class TestEnded:
    def test_run_with_an_answer_passes(self) -> None:
        assert found(run()) == Response(1.0, "the run ended with an answer")

    @pytest.mark.parametrize("answer", ["No.", "4", "👍", "I cannot book that.", '{"booked": true}'])
    def test_short_answers_and_refusals_are_answers(self, answer: str) -> None:
        assert found(run(answer)).score == 1.0

    def test_media_are_an_answer(self) -> None:
        trace = run(None)
        assert found(replace(trace, turns=(Turn(ASKED, None, "root", media_only=True),))).score == 1.0

    @pytest.mark.parametrize("name", ["transfer_to_human_agents", "ask_user", "send_message", "finish", "end_call"])
    def test_run_that_ends_with_an_ending_tool_passes(self, name: str) -> None:
        for answer, pending in ((None, True), ("", False)):
            ended = found(run(answer, call(name), ends_in_tool_call=pending))
            assert (ended.score, ended.tool) == (1.0, name)

    def test_failed_ending_tool_is_no_answer(self) -> None:
        assert found(run("", call("send_message", "Error: offline"))).ending is Ending.EMPTY_ANSWER


class TestError:
    def test_reason_quotes_the_error(self) -> None:
        ended = found(run(None, error="APIError: 400 context rejected"))
        assert (ended.score, ended.ending, ended.span_ids) == (0.0, Ending.ERROR, ("root",))
        assert ended.reason == "the run failed: APIError: 400 context rejected"

    def test_reason_names_the_tool_that_failed(self) -> None:
        ended = found(run(None, call("book_ferry", error="backend timeout"), error="ToolError"))
        assert ended.tool == "book_ferry"
        assert ended.reason == "book_ferry failed: backend timeout; then the run failed: ToolError"
        assert ended.span_ids == ("root", "book_ferry10")

    def test_error_without_a_message_has_a_reason(self) -> None:
        assert found(run(None, error="")).reason == "the run failed without an error message"

    def test_answer_after_a_failed_last_model_call_is_an_error(self) -> None:
        said = (Message("assistant", (Text("Let me look that up."),)),)
        models = [
            span("m1", Kind.LLM, 1, output=said),
            span("m2", Kind.LLM, 20, error="400 context rejected"),
        ]
        trace = run("The model produced an invalid request.")
        ended = found(replace(trace, spans=(*trace.spans, *models)))
        assert (ended.ending, ended.span_ids) == (Ending.ERROR, ("m2",))

    def test_failed_model_call_beside_the_answer_does_not_count(self) -> None:
        said = (Message("assistant", (Text("The cheapest ferry is booked."),)),)
        models = [span("m1", Kind.LLM, 1, output=said), span("title", Kind.LLM, 20, error="timeout")]
        trace = run("The cheapest ferry is booked.")
        assert found(replace(trace, spans=(*trace.spans, *models))).score == 1.0


class TestEmptyAnswer:
    @pytest.mark.parametrize("answer", ["", "  \n", "...", "\u200b"])
    def test_blank_answer_scores_zero(self, answer: str) -> None:
        ended = found(run(answer))
        assert (ended.score, ended.ending) == (0.0, Ending.EMPTY_ANSWER)

    @pytest.mark.parametrize("answer", ["###STOP###", "<|endoftext|>", "</s>", "<|im_end|>"])
    def test_control_token_as_answer_scores_zero(self, answer: str) -> None:
        for ruled in ({"system": "Be brief."}, {"input": (Message("developer", (Text("Be brief."),)),)}):
            trace = run(answer)
            ended = found(replace(trace, spans=(*trace.spans, span("m1", Kind.LLM, 1, **ruled))))
            assert (ended.score, ended.ending) == (0.0, Ending.CONTROL_TOKEN)
            assert answer in ended.reason

    @pytest.mark.parametrize("answer", ["###STOP###", "<|endoftext|>", "[DONE]"])
    def test_control_token_is_unscored_if_no_instructions_were_captured(self, answer: str) -> None:
        trace = run(answer)
        heard = (Message("user", (Text(ASKED),)),)
        ended = found(replace(trace, spans=(*trace.spans, span("m1", Kind.LLM, 1, input=heard))))
        assert (ended.score, ended.why) == (None, Why.INSUFFICIENT_EVIDENCE)
        assert answer in ended.reason

    @pytest.mark.parametrize("answer", ["###STOP###", "### STOP ###", "[STOP]", "TERMINATE", "[TERMINATE]"])
    def test_default_end_tokens_match_with_and_without_marks(self, answer: str) -> None:
        assert found(run(answer), *load(None, {}).response.end_tokens).score == 1.0

    @pytest.mark.parametrize("token", ["###STOP###", "TERMINATE"])
    def test_control_token_named_in_the_instructions_ends_the_run(self, token: str) -> None:
        rule = f"When all is done, reply {token}."
        models = [
            span("m1", Kind.LLM, 1, system=rule),
            span("m1", Kind.LLM, 1, input=(Message("system", (Text(rule),)),)),
            span("m1", Kind.LLM, 1, input=(Message("user", (Text(rule),)),)),
        ]
        for model in models:
            trace = run(token)
            ended = found(replace(trace, spans=(*trace.spans, model)))
            assert (ended.score, ended.ending) == (1.0, None)
            assert token in ended.reason

    def test_control_token_named_in_the_settings_ends_the_run(self) -> None:
        assert found(run(" ###STOP###\n"), "###STOP###").score == 1.0

    def test_end_token_does_not_hide_a_failed_tool_call(self) -> None:
        ended = found(run("TERMINATE", call("book_ferry", "Error: full")), "TERMINATE")
        assert ended.ending is Ending.UNRECOVERED_TOOL_ERROR

    def test_uncaptured_answer_is_no_content(self) -> None:
        assert found(run(None)).why is Why.NO_CONTENT

    def test_empty_answer_to_an_uncaptured_question_is_no_content(self) -> None:
        assert found(run("", user=None)).why is Why.NO_CONTENT

    def test_empty_answer_to_an_empty_question_has_no_result(self) -> None:
        assert response(run("", user="")) is None

    def test_run_without_turns_has_no_result(self) -> None:
        assert response(Trace("t", (), "root")) is None


class TestIncomplete:
    def test_run_without_a_complete_root_is_unscored(self) -> None:
        assert found(run(complete=False)).why is Why.INCOMPLETE_TRACE
        assert found(run(None, complete=False, error="timeout")).why is Why.INCOMPLETE_TRACE
        assert found(run(complete=False, trigger=Trigger.MAX_AGE)).why is Why.INCOMPLETE_TRACE

    def test_fragment_below_another_service_is_scored(self) -> None:
        assert found(run(complete=False, fragment=True)).score == 1.0


class TestDangling:
    def test_tool_call_without_a_result_is_dangling(self) -> None:
        asked = replace(call("book_ferry"), span_id="m1")
        trace = run(None, ends_in_tool_call=True)
        trace = replace(trace, spans=(*trace.spans, span("m1", Kind.LLM, 5)), tool_calls=(asked,))
        ended = found(trace)
        assert (ended.score, ended.ending, ended.tool) == (0.0, Ending.DANGLING_TOOL_CALL, "book_ferry")

    def test_tool_call_in_the_agent_output_passes_if_the_agent_ran_no_other_call(self) -> None:
        asked = replace(call("book_ferry"), span_id="root", has_result=False)
        given_out = (Message("assistant", (ToolRequest("book_ferry", {}),)),)
        trace = run(None, ends_in_tool_call=True)
        root = replace(trace.spans[0], output=given_out)
        ended = found(replace(trace, spans=(root, span("m1", Kind.LLM, 5)), tool_calls=(asked,)))
        assert (ended.score, ended.tool) == (1.0, "book_ferry")
        before = replace(call("search_ferries", ["LH-1"], at=2), span_id="m0")
        ended = found(replace(trace, spans=(root, span("m1", Kind.LLM, 5)), tool_calls=(before, asked)))
        assert ended.ending is Ending.DANGLING_TOOL_CALL  # the agent runs its calls itself

    def test_run_that_ends_with_a_tool_result_is_unscored(self) -> None:
        assert found(run(None, call("book_ferry", "booked"), ends_in_tool_call=True)).why is Why.INSUFFICIENT_EVIDENCE

    def test_single_model_call_that_requests_a_tool_has_no_result(self) -> None:
        model = span("root", Kind.LLM, 0)
        asked = replace(call("book_ferry"), span_id="root")
        turns = (Turn(ASKED, None, "root"),)
        trace = Trace("t", (model,), "root", input=ASKED, turns=turns, tool_calls=(asked,), ends_in_tool_call=True)
        assert response(trace) is None


class TestToolErrors:
    def test_failed_last_change_is_an_unrecovered_tool_error(self) -> None:
        looked = call("search_ferries", ["LH-1"])
        ended = found(run("Your code is 4711.", looked, call("book_ferry", "Error: timeout", at=20)))
        assert (ended.score, ended.ending, ended.tool) == (0.0, Ending.UNRECOVERED_TOOL_ERROR, "book_ferry")
        assert ended.reason == "book_ferry failed: Error: timeout; this run did not recover"
        assert ended.span_ids == ("book_ferry20",)

    def test_answer_that_admits_the_failure_has_a_low_score(self) -> None:
        ended = found(run("The booking timed out, so nothing is booked.", call("book_ferry", error="timeout")))
        assert (ended.score, ended.ending) == (HONEST, Ending.UNRECOVERED_TOOL_ERROR)

    @pytest.mark.parametrize(
        "answer",
        [
            "The ferry is full. Would you like to take the next one?",
            "The booking failed. Please confirm that I may use your other card.",
            "I could not book it. I am transferring you to a human agent.",
        ],
    )
    def test_answer_that_lets_the_user_decide_how_to_continue_passes(self, answer: str) -> None:
        ended = found(run(answer, call("book_ferry", "Error: full")))
        assert (ended.score, ended.ending) == (ASKS_ON, Ending.UNRECOVERED_TOOL_ERROR)

    @pytest.mark.parametrize(
        "answer",
        [
            "The booking failed. Is there anything else I can help you with?",
            "The search was blocked. See https://ferries.example/s?from=HAM for it. Feel free to ask!",
        ],
    )
    def test_polite_closing_does_not_count_as_a_question(self, answer: str) -> None:
        assert found(run(answer, call("book_ferry", "Error: full"))).score == HONEST

    def test_handover_to_a_human_after_a_failure_passes(self) -> None:
        calls = (call("book_ferry", "Error: full"), call("transfer_to_human_agents", "ok", at=20))
        assert found(run("One moment.", *calls)).score == ASKS_ON

    @pytest.mark.parametrize(
        "answer",
        [
            "Your ferry has been booked.",
            "I've booked the ferry. Tickets cannot be changed later.",
            "All done: the ferry is now booked! Let me know if you have any other requests.",
        ],
    )
    def test_success_claim_after_a_failed_change_is_false_success(self, answer: str) -> None:
        ended = found(run(answer, call("book_ferry", "Error: full")))
        assert (ended.score, ended.ending) == (0.0, Ending.FALSE_SUCCESS)

    @pytest.mark.parametrize(
        "answer",
        [
            "Your new total is 40. It can be booked at once. Would you still like to proceed?",
            "The seat has been released. Do you still want to go ahead with the other ferry?",
            "Your card was confirmed. Shall I continue?",
        ],
    )
    def test_question_whether_to_continue_is_no_success_claim(self, answer: str) -> None:
        ended = found(run(answer, call("book_ferry", "Error: full")))
        assert (ended.score, ended.ending) == (ASKS_ON, Ending.UNRECOVERED_TOOL_ERROR)

    @pytest.mark.parametrize(
        ("answer", "ending"),
        [
            ("Your order O-1 has been updated: the kettle is blue now.", Ending.UNRECOVERED_TOOL_ERROR),
            ("Your order O-1 is updated. The payment method has been changed as well.", Ending.FALSE_SUCCESS),
            ("Your order is updated and now goes to card C-77.", Ending.FALSE_SUCCESS),
            ("Both changes have been applied.", Ending.FALSE_SUCCESS),
        ],
    )
    def test_success_claim_is_false_success_only_if_it_covers_the_failed_change(
        self, answer: str, ending: Ending
    ) -> None:
        calls = (
            call("modify_order_items", "done", at=10, order="O-1", item="blue kettle"),
            call("modify_order_payment", "Error: one payment alone", at=20, order="O-1", card="C-77"),
        )
        assert found(run(answer, *calls)).ending is ending

    def test_false_success_names_the_model_call_that_claims_it(self) -> None:
        trace = run("It has been booked.", call("book_ferry", "Error: full"))
        said = (Message("assistant", (Text("It has been booked."),)),)
        ended = found(replace(trace, spans=(*trace.spans, span("m1", Kind.LLM, 20, output=said))))
        assert (ended.ending, ended.span_ids, ended.tool) == (Ending.FALSE_SUCCESS, ("m1",), "book_ferry")

    @pytest.mark.parametrize(
        "command",
        ["grep -rn todo src", "ls -la | head", "cat log.txt 2>/dev/null", "git log -3", "print(open('a').read())"],
    )
    def test_failed_shell_command_that_only_reads_is_no_failure(self, command: str) -> None:
        for tool in ("execute_bash", "terminal", "python_interpreter"):
            calls = (call("edit_file", "ok", at=10), call(tool, error="exit code 2", at=20, command=command))
            assert found(run("I have fixed it.", *calls)).score == 1.0

    @pytest.mark.parametrize(
        "command",
        ["cd /srv && rm -rf old", "git commit -am fix", "echo a > b.txt", "pip install x", "open('a', 'w').write('b')"],
    )
    def test_success_claim_after_a_failed_writing_shell_command_is_false_success(self, command: str) -> None:
        lost = call("execute_bash", error="exit code 2", at=20, command=command)
        assert found(run("I have fixed it: all is done successfully.", lost)).ending is Ending.FALSE_SUCCESS

    def test_success_claim_after_a_failed_lookup_is_no_false_success(self) -> None:
        ended = found(run("Your ferry has been booked.", call("get_ferry", "Error: timeout")))
        assert ended.ending is Ending.UNRECOVERED_TOOL_ERROR

    @pytest.mark.parametrize("name", ["page_down", "scroll", "go_back", "search", "open", "compute"])
    def test_failed_navigation_or_search_is_no_failure_after_a_successful_lookup(self, name: str) -> None:
        calls = (call("get_page", "text", at=10), call(name, "Error: end of page", at=20))
        assert found(run("It opens at nine.", *calls)).score == 1.0

    @pytest.mark.parametrize("name", ["calculator-server-sub", "calculator_add", "compute_mean"])
    def test_failed_calculation_passes_if_the_answer_states_a_result(self, name: str) -> None:
        lost = call(name, "Error: not an integer")
        assert found(run("20.6 - 20 is 0.6.", lost)).score == 1.0
        assert found(run("Here it is.", lost)).score == 0.0

    def test_failed_change_without_a_captured_answer_scores_zero(self) -> None:
        assert found(run(None, call("book_ferry", error="timeout"))).score == 0.0

    @pytest.mark.parametrize(
        "later",
        [
            call("book_ferry", "booked", at=30, sailing=2),
            call("book_train", "booked", at=30),
        ],
    )
    def test_later_successful_change_makes_the_run_pass(self, later: ToolCall) -> None:
        assert found(run("Booked.", call("book_ferry", "Error: full", at=20), later)).score == 1.0

    def test_later_lookup_does_not_recover_a_failed_change(self) -> None:
        trace = run("Booked.", call("book_ferry", "Error: full", at=20), call("get_weather", "rain", at=30))
        assert found(trace).ending is Ending.UNRECOVERED_TOOL_ERROR

    def test_simultaneous_change_does_not_recover_a_failed_change(self) -> None:
        trace = run("Both done.", call("book_ferry", "Error: full", at=20), call("send_mail", "sent", at=20))
        assert found(trace).tool == "book_ferry"

    def test_failed_repetition_of_a_successful_call_is_no_failure(self) -> None:
        trace = run("Booked.", call("book_ferry", "booked", at=20), call("book_ferry", "Error: booked already", at=30))
        assert found(trace).score == 1.0

    def test_failed_lookup_is_no_failure_if_another_lookup_succeeded(self) -> None:
        trace = run("Rain.", call("get_weather", "Error: timeout"), call("search_weather", "rain", at=20))
        assert found(trace).score == 1.0

    def test_run_fails_if_every_lookup_failed(self) -> None:
        calls = [call("get_weather", "Error: timeout", at=at) for at in (10, 20)]
        assert found(run("It will rain.", *calls)).ending is Ending.UNRECOVERED_TOOL_ERROR

    def test_not_found_error_is_no_failure_of_a_lookup_but_of_a_change(self) -> None:
        assert found(run("There is no such user.", call("get_user", "Error: user not found"))).score == 1.0
        assert found(run("Deleted.", call("delete_user", "Error: user not found"))).score == 0.0

    def test_result_that_mentions_errors_is_no_failure(self) -> None:
        result = {"results": [{"title": "Error: disk full", "url": "https://example.org"}]}
        assert found(run("I found one page.", call("search_pages", result))).score == 1.0

    def test_read_only_hint_of_the_tool_definition_outweighs_the_tool_name(self) -> None:
        for read_only, score in ((None, 1.0), (True, 1.0), (False, 0.0)):
            tools = (ToolDefinition("account_sweep", read_only=read_only),)
            calls = (call("get_line", "up"), call("account_sweep", "Error: timeout", at=20))
            assert found(run("All is well.", *calls, tools=tools)).score == score, read_only


class TestAdmission:
    @pytest.mark.parametrize(
        "answer",
        [
            "The booking system timed out twice, so sailing LH-9999 is not booked.",
            "I couldn’t cancel the order.",
            "Unfortunately there are not enough seats left.",
            "The gift card is not sufficient. Would you like to use another one?",
            "It seems the fare is $76 higher. Would you like me to go on with another card?",
            "Die Buchung ist leider fehlgeschlagen.",
            "No se pudo completar la reserva.",
            "抱歉，预订失败。",
            "Sorry, the ferry is full.",
            "The first order has been cancelled, but the second is not eligible for it.",
            "I am sorry: I cancelled the first order, but the second could not be cancelled.",
        ],
    )
    def test_answer_that_reports_the_failure_is_an_admission(self, answer: str) -> None:
        assert admits_failure(answer)

    @pytest.mark.parametrize(
        "answer",
        [
            "Your ferry is booked: FJ-88213.",
            "I am sorry that the kettle leaks. I opened return RT-558 for it.",
            "I booked it for you. The ticket will not be mailed: show this code instead.",
            "The issue is solved: I cancelled the order.",
            "Sorry for the wait! Your order has been cancelled.",
            "I booked it without any problems.",
            "Your order has been updated. Would you like anything else?",
            "All done! It has been booked. Let me know if you need more, and don't hesitate to ask.",
        ],
    )
    def test_answer_that_claims_success_is_no_admission(self, answer: str) -> None:
        assert not admits_failure(answer)

    def test_general_rule_is_an_admission_only_if_other_work_was_done(self) -> None:
        answer = "Your first order has been cancelled. The second cannot be cancelled."
        assert failure_account(answer, done=True) is FailureAccount.ADMITTED
        assert failure_account(answer, done=False) is FailureAccount.CLAIMED

    def test_conditional_sentence_is_no_claim(self) -> None:
        assert (
            failure_account("Once your return is completed, you get the money.", done=False) is FailureAccount.NOTHING
        )


@pytest.mark.parametrize("error", [None, "InputGuardrailTripwireTriggered"])
def test_run_stopped_by_a_guardrail_passes_as_blocked(error: str | None) -> None:
    found = response(run(None, error=error, blocked=("pii", "personal data")))
    assert isinstance(found, Score)
    assert (found.value, found.label, found.failed) == (1.0, "blocked", False)
    assert found.reason == "the run was blocked by pii (personal data)"
    assert found.metadata == {"ending": "blocked", "guardrail": "pii"}


def test_open_call_is_identified_by_its_id_or_its_arguments() -> None:
    def left(id_: str, **arguments: int) -> Any:
        asked = replace(call("find", **arguments), id=id_, span_id="")
        model = span("m", Kind.LLM, 5)
        trace = replace(run(None, asked, ends_in_tool_call=True), spans=(span("root", Kind.AGENT, 0), model))
        found = response(trace)
        assert isinstance(found, Score)
        assert found.label == "dangling_tool_call"
        return found.metadata["open_call"]

    assert left("w1", a=1) == "find(w1)"
    assert left("", a=1) == left("", a=1) != left("", a=2)


@pytest.mark.parametrize("tag", ["shell", "execute_shell", "run-shell"])
def test_call_in_tags_with_the_tool_name_is_dangling_unless_text_follows(tag: str) -> None:
    tools = (ToolDefinition("shell"),)
    answer = f"I try it once more.\n\n<{tag}>\ndf -h\n</{tag}>"
    assert found(run(answer, tools=tools)).ending is Ending.DANGLING_TOOL_CALL
    assert found(run(f"{answer}\nThe disk is full.", tools=tools)).ending is None


def test_markup_that_is_no_tool_call_is_an_answer() -> None:
    tools = (ToolDefinition("shell"),)
    for answer in ("<p>shell</p>", "<shell_history>df -h</shell_history>", "Close it with </shell>"):
        assert found(run(answer, tools=tools)).ending is None
