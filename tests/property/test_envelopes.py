"""Unwrapping tool results never raises and is idempotent."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, strategies as st

from pandaeval_otel.dialects._tool_values import may_say_failed, unwrapped

WORDS = [
    *("content", "result", "output", "kwargs", "lc", "type", "data", "status", "error", "isError", "is_error", "value"),
    *("raw_output", "blocks", "tool_name", "tool_output", "tool_call_id", "update", "messages", "response", "text"),
]
TEXTS = ["error", "tool", "tool-result", "json", "text", "ToolMessage(content='x', status='error')", "content='x'"]
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(TEXTS) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(values)
@example({"text": "error", "type": []})
def test_unwrapping_a_value_twice_changes_nothing(value: Any) -> None:
    inner, failed = unwrapped(value)
    assert unwrapped(inner)[0] == inner
    assert not failed or may_say_failed(value)


@given(st.text(alphabet="ToolMessage()[]{}='\",: contextError_", max_size=60))
def test_unwrapping_any_text_never_raises_and_is_idempotent(text: str) -> None:
    inner, _ = unwrapped(text)
    assert unwrapped(inner)[0] == inner
