"""Errors in a log are content of the log, and no failure of the call that reads it."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules._failures import FailureSign, failure_sign
from pandaeval_otel.model import ToolCall

_JAVA = "java.lang.OutOfMemoryError: Java heap space\n\tat com.shop.Cart.add(Cart.java:12)"
_PYTHON = "Traceback (most recent call last):\n  File \"pay.py\", line 3, in <module>\nKeyError: 'iban'"
_NODE = "Error: connect ECONNREFUSED 10.0.0.7:5432\n    at TCPConnectWrap.afterConnect (net.js:1157)"


@pytest.mark.parametrize("text", [_JAVA, _PYTHON, _NODE])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("kubectl_logs", {"pod": "cart-0"}),
        ("get_recent_errors", {"service": "cart"}),
        ("mcp__loki__query_logs", None),
        ("read_file", {"path": "/var/log/cart/current"}),
        ("read_file", {"path": "build/server.log.1"}),
        ("bash", {"command": "kubectl -n shop logs cart-0 --tail=50"}),
        ("bash", {"command": "tail -n 50 logs/server.log"}),
        ("shell", "journalctl -u cart"),
    ],
)
def test_errors_in_several_lines_of_a_log_are_no_certain_failure(name: str, arguments: Any, text: str) -> None:
    for result in (text, {"output": text}, [{"text": text}]):
        call = ToolCall(name, arguments=arguments, result=result)
        assert failure_sign(call) is FailureSign.UNSURE


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("kubectl_logs", {"pod": "cart-9"}, "Error: pod cart-9 not found"),
        ("kubectl_logs", {"pod": "cart-9"}, {"error": "cannot connect\nretry later"}),
        ("run_pipeline", {"target": "build.log"}, _PYTHON),
        ("bash", {"command": "python pay.py > pay.log; cat pay.log"}, _PYTHON),
        ("log_error", {"text": "no stock"}, _NODE),
        ("read_file", {"path": "src/pay.py"}, _PYTHON),
    ],
)
def test_a_failed_call_stays_failed_if_it_reads_no_log_or_names_one_error(
    name: str, arguments: Any, result: Any
) -> None:
    assert failure_sign(ToolCall(name, arguments=arguments, result=result)) is FailureSign.FAILED


def test_a_log_reader_with_an_error_status_failed() -> None:
    call = ToolCall("kubectl_logs", result=_JAVA, error="connection refused")
    assert failure_sign(call) is FailureSign.FAILED
