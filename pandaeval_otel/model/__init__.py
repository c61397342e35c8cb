"""The field's terms as types: spans, messages, tool calls, traces, turns and sessions.

Imports base.
"""

from pandaeval_otel.model.message import (
    NOT_CAPTURED,
    Media,
    Message,
    OtherPart,
    Part,
    Reasoning,
    Text,
    ToolRequest,
    ToolResponse,
)
from pandaeval_otel.model.span import Captured, Kind, Span, ToolDefinition, Usage
from pandaeval_otel.model.trace import OtherResult, Session, ToolCall, Trace, Trigger, Turn

__all__ = ["NOT_CAPTURED", "Captured", "Kind", "Media", "Message", "OtherPart", "Part", "Reasoning", "Session"]
__all__ += ["Span", "Text", "ToolCall", "ToolDefinition", "ToolRequest", "ToolResponse", "Trace", "Trigger", "Turn"]
__all__ += ["OtherResult", "Usage"]
