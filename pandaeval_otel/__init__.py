"""Turn GenAI spans of any instrumentation into traces and sessions.

``__all__`` is the stable API, imported on first use.
"""

from typing import TYPE_CHECKING

from pandaeval_otel.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from pandaeval_otel.dialects import Dialect, Reading, readers
    from pandaeval_otel.model import (
        NOT_CAPTURED,
        Captured,
        Kind,
        Media,
        Message,
        OtherPart,
        Part,
        Reasoning,
        Session,
        Span,
        Text,
        ToolCall,
        ToolDefinition,
        ToolRequest,
        ToolResponse,
        Trace,
        Trigger,
        Turn,
        Usage,
    )
    from pandaeval_otel.model.raw import RawEvent, RawLink, RawLog, RawSpan, Resource, Scope
    from pandaeval_otel.processor.context import agent_turn, session_end, using_case, using_session, using_user
    from pandaeval_otel.processor.log_events import PandaEvalLogProcessor
    from pandaeval_otel.processor.processors import PandaEvalSpanProcessor
    from pandaeval_otel.processor.results import wait_for_result, watch_results

__all__ = [
    "NOT_CAPTURED",
    "Captured",
    "Dialect",
    "Kind",
    "Media",
    "Message",
    "OtherPart",
    "PandaEvalLogProcessor",
    "PandaEvalSpanProcessor",
    "Part",
    "RawEvent",
    "RawLink",
    "RawLog",
    "RawSpan",
    "Reading",
    "Reasoning",
    "Resource",
    "Scope",
    "Session",
    "Span",
    "Text",
    "ToolCall",
    "ToolDefinition",
    "ToolRequest",
    "ToolResponse",
    "Trace",
    "Trigger",
    "Turn",
    "Usage",
    "agent_turn",
    "readers",
    "session_end",
    "using_case",
    "using_session",
    "using_user",
    "wait_for_result",
    "watch_results",
]

_NAMES = {
    "dialects": "Dialect Reading readers",
    "model": "Captured Kind Media Message NOT_CAPTURED OtherPart Part Reasoning Session Span Text ToolCall "
    "ToolDefinition ToolRequest ToolResponse Trace Trigger Turn Usage",
    "model.raw": "RawEvent RawLink RawLog RawSpan Resource Scope",
    "processor.context": "agent_turn session_end using_case using_session using_user",
    "processor.log_events": "PandaEvalLogProcessor",
    "processor.processors": "PandaEvalSpanProcessor",
    "processor.results": "wait_for_result watch_results",
}
"""Public names, by the module below this package that defines them."""
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
