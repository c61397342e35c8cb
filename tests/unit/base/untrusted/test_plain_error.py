"""Readable errors of every framework."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pandaeval_collector.base.untrusted.foreign import plain_error


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        ("connection lost", "connection lost"),
        ("connection\n  lost", "connection lost"),
        (
            "Error code: 400 - {'error': {'message': 'Message too long.', 'type': 'invalid_request_error'}}",
            "Error code: 400 - Message too long.",
        ),
        ('{"error": {"code": 400, "message": "Message too long."}}', "Message too long."),
        (
            "{'message': 'Error in agent run', 'data': {'error': 'Error code: 400 - too long'}}",
            "Error in agent run: Error code: 400 - too long",
        ),
        (
            "RuntimeError('timed out')Traceback (most recent call last):\n  File \"a.py\", line 1\nRuntimeError: x",
            "RuntimeError('timed out')",
        ),
        ('Traceback (most recent call last):\n  File "a.py"\nValueError: no such day\n', "ValueError: no such day"),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("cannot parse {not an object", "cannot parse {not an object"),
        ("cannot parse {'a': [1, 2]}", "cannot parse {'a': [1, 2]}"),
        ("{'message': 'boom', 'error': 'boom'}", "boom"),
        (
            "no seats\nError: no seats\n    at Desk.book (file:///srv/desk.mjs:4:2)\n    at async /srv/run.js:9:1",
            "no seats",
        ),
        (
            "a.NoStock: empty\n\tat shop.Run.go(Run.java:12)\nCaused by: b.Reset\n\t... 3 more",
            "a.NoStock: empty Caused by: b.Reset",
        ),
        ("no seats\n    at Desk.book (file:///srv/desk.mjs:4:2)\n    at async Des", "no seats"),
        ("we meet\n at noon (room 4)", "we meet at noon (room 4)"),
        ("", ""),
    ],
)
def test_an_error_is_reduced_to_its_readable_message(error: str, plain: str) -> None:
    assert plain_error(error) == plain


def test_long_and_deeply_nested_errors_are_shortened() -> None:
    assert len(plain_error("x" * 10_000)) == 301
    assert plain_error("{" * 3000 + "}" * 3000).startswith("{{{")
    assert len(plain_error("{'message': '" + "y" * 3000 + "'}")) == 301


@given(st.text(max_size=200) | st.dictionaries(st.text(max_size=8), st.integers() | st.text(), max_size=4).map(str))
def test_any_error_text_becomes_a_single_line(error: str) -> None:
    assert "\n" not in plain_error(error)
