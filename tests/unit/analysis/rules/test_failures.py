"""Results that are errors, or only mention errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_collector.analysis.rules._failure_text import sign_in_text
from pandaeval_collector.analysis.rules._failures import (
    FailureSign,
    error_of,
    failed,
    failure_of,
    failure_sign,
    reports_not_found,
)
from pandaeval_otel.model import ToolCall
from support.told_failures import DECLINED, FAILED, FINE, UNSURE


def called(result: Any = None, error: str | None = None) -> ToolCall:
    return ToolCall("get_line", result=result, error=error, has_result=True)


def test_error_results_are_failures() -> None:
    assert [result for result in FAILED if failure_sign(called(result)) is not FailureSign.FAILED] == []
    assert all(failed(called(result)) for result in FAILED)


def test_calls_declined_by_a_person_are_no_failures() -> None:
    assert [result for result in DECLINED if failure_sign(called(result)) is not FailureSign.DECLINED] == []
    assert [result for result in DECLINED if failed(called(error=result))] == []


def test_normal_results_have_no_failure_sign() -> None:
    assert [result for result in FINE if failure_sign(called(result)) is not FailureSign.NOTHING] == []


def test_ambiguous_results_are_unsure_and_not_failed() -> None:
    assert [result for result in UNSURE if failure_sign(called(result)) is not FailureSign.UNSURE] == []
    assert not any(failed(called(result)) for result in UNSURE)


def test_an_object_and_its_json_text_have_the_same_failure_sign() -> None:
    for results in (FAILED, FINE, UNSURE):
        objects = [result for result in results if isinstance(result, dict | list)]
        assert len(objects) >= 5
        assert [
            each for each in objects if failure_sign(called(json.dumps(each))) is not failure_sign(called(each))
        ] == []


def test_an_error_status_fails_a_call_whatever_its_result() -> None:
    assert failed(called({"rows": []}, error="timeout"))


def test_the_output_of_a_successful_command_as_error_status_is_no_failure() -> None:
    ended = {"exitCode": 0, "status": "completed", "stdout": "SYNTAX OK"}
    assert not failed(called(ended, error="SYNTAX OK"))
    assert not failed(called(json.dumps(ended), error="SYNTAX OK\n"))
    assert failed(called(ended, error="the answer could not be sent"))
    assert failed(called(ended | {"exitCode": 1}, error="SYNTAX OK"))
    assert failed(called({"stdout": "SYNTAX OK"}, error="SYNTAX OK"))


@pytest.mark.parametrize(
    ("call", "error_text"),
    [
        (called("x", "timeout"), "timeout"),
        (called({"error": {"message": "full"}}), "full"),
        (called([{"type": "text", "text": "Error: full"}]), "Error: full"),
        (called({"isError": True, "content": [{"text": "no"}]}), "no"),
        (called({"success": False}), ""),
    ],
)
def test_the_error_text_of_a_failed_call_is_found(call: ToolCall, error_text: str) -> None:
    assert error_of(call) == error_text
    assert failure_of(call) == (error_text or "failed")


def test_a_call_that_worked_has_no_error() -> None:
    assert failure_of(called({"rows": []})) is None


def test_not_found_errors_are_absences() -> None:
    assert reports_not_found(called("Error: user not found"))
    assert reports_not_found(called({"error": "no such order"}))
    assert not reports_not_found(called("Error: timeout"))
    assert not reports_not_found(called("exec failed: bash: python: command not found"))
    assert not reports_not_found(called("Unknown tool: get_lines"))


def test_deeply_nested_results_are_no_errors() -> None:
    deep: Any = "Error: x"
    for _ in range(2000):
        deep = [deep]
    assert not failed(called(deep))
    assert error_of(called(deep)) == ""


def test_error_lines_in_a_log_are_no_certain_failure() -> None:
    log = "ERROR 2026-08-28 10:00:01 connection refused\nINFO 2026-08-28 10:00:05 reconnected"
    assert sign_in_text(log) is FailureSign.UNSURE
    assert sign_in_text("ERROR 1045: access denied") is FailureSign.FAILED


def test_an_unknown_subagent_is_an_error() -> None:
    assert sign_in_text('Subagent "reviewr" not found. Available subagents: reviewer') is FailureSign.FAILED


def test_failed_edits_and_missing_grants_are_failures() -> None:
    assert sign_in_text("Failed to replace, found 2 places") is FailureSign.FAILED
    assert sign_in_text("No grant for calendar.write") is FailureSign.FAILED
    assert sign_in_text("No grants were paid for roofs in May") is FailureSign.NOTHING


def test_a_sender_in_brackets_before_an_error_is_ignored() -> None:
    assert sign_in_text("[runner] failed to send: mailbox full") is FailureSign.FAILED
    assert sign_in_text("[error] the calendar is locked") is FailureSign.FAILED
    assert sign_in_text("[3] Failed states: a reading list") is FailureSign.NOTHING


def test_an_exit_code_in_the_last_line_sets_the_failure_sign() -> None:
    assert sign_in_text("hub: could not open the ticket\nexit code: 1") is FailureSign.FAILED
    assert sign_in_text("2 lines differ\n[Command finished with exit code 1]") is FailureSign.UNSURE
    assert sign_in_text("ready\nProcess exited with exit code 137") is FailureSign.FAILED
    assert sign_in_text("hub: could not open the ticket") is FailureSign.NOTHING
    assert sign_in_text("3 tickets\nexit code: 0") is FailureSign.NOTHING


def test_a_program_name_before_an_error_on_stderr_is_ignored() -> None:
    assert failed(called({"exit_code": 1, "stdout": "", "stderr": "hub: could not open the ticket"}))
    assert not failed(called({"exit_code": 1, "stdout": "", "stderr": "hub: 2 lines differ"}))


def test_an_error_reply_printed_by_a_command_is_a_failure() -> None:
    reply = json.dumps({"ok": False, "error": "token_revoked"})
    assert failed(called({"stdout": reply, "stderr": "", "exit_code": 0}))
    assert not failed(called({"stdout": json.dumps({"ok": True, "ts": "17"}), "stderr": "", "exit_code": 0}))


def test_a_change_of_a_missing_object_is_a_failure() -> None:
    missing = "The seat map of berth 12 was not found"
    assert failed(ToolCall("press_button", result="Button 12 not available - the page has changed", has_result=True))
    assert failed(ToolCall("update_berth", result=missing, has_result=True))
    assert not failed(ToolCall("get_berth", result=missing, has_result=True))
    assert not failed(ToolCall("run_shell", result=missing, has_result=True))
