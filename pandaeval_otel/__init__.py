"""pandaeval_otel knows what happened: it turns GenAI spans of any instrumentation into traces and sessions.

``__all__`` is what applications and dialects of other packages import; these names stay, the rooms behind them may
move. Each is imported when it is first asked for: the collector, which uses this package too, loads neither the SDK nor
gRPC.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandaeval_otel.dialects import Dialect as Dialect
    from pandaeval_otel.dialects import Reading as Reading
    from pandaeval_otel.dialects import readers as readers
    from pandaeval_otel.model import NOT_CAPTURED as NOT_CAPTURED
    from pandaeval_otel.model import Captured as Captured
    from pandaeval_otel.model import Kind as Kind
    from pandaeval_otel.model import Media as Media
    from pandaeval_otel.model import Message as Message
    from pandaeval_otel.model import OtherPart as OtherPart
    from pandaeval_otel.model import Part as Part
    from pandaeval_otel.model import Reasoning as Reasoning
    from pandaeval_otel.model import Session as Session
    from pandaeval_otel.model import Span as Span
    from pandaeval_otel.model import Text as Text
    from pandaeval_otel.model import ToolCall as ToolCall
    from pandaeval_otel.model import ToolDefinition as ToolDefinition
    from pandaeval_otel.model import ToolRequest as ToolRequest
    from pandaeval_otel.model import ToolResponse as ToolResponse
    from pandaeval_otel.model import Trace as Trace
    from pandaeval_otel.model import Trigger as Trigger
    from pandaeval_otel.model import Turn as Turn
    from pandaeval_otel.model import Usage as Usage
    from pandaeval_otel.model.raw import RawEvent as RawEvent
    from pandaeval_otel.model.raw import RawLink as RawLink
    from pandaeval_otel.model.raw import RawLog as RawLog
    from pandaeval_otel.model.raw import RawSpan as RawSpan
    from pandaeval_otel.model.raw import Resource as Resource
    from pandaeval_otel.model.raw import Scope as Scope
    from pandaeval_otel.processor.context import agent_turn as agent_turn
    from pandaeval_otel.processor.context import session_end as session_end
    from pandaeval_otel.processor.context import using_case as using_case
    from pandaeval_otel.processor.context import using_session as using_session
    from pandaeval_otel.processor.context import using_user as using_user
    from pandaeval_otel.processor.processors import PandaEvalLogProcessor as PandaEvalLogProcessor
    from pandaeval_otel.processor.processors import PandaEvalSpanProcessor as PandaEvalSpanProcessor
    from pandaeval_otel.processor.results import wait_for_result as wait_for_result
    from pandaeval_otel.processor.results import watch_results as watch_results

_NAMES = {
    "dialects": "Dialect Reading readers",
    "model": "Captured Kind Media Message NOT_CAPTURED OtherPart Part Reasoning Session Span Text ToolCall "
    "ToolDefinition ToolRequest ToolResponse Trace Trigger Turn Usage",
    "model.raw": "RawEvent RawLink RawLog RawSpan Resource Scope",
    "processor.context": "agent_turn session_end using_case using_session using_user",
    "processor.processors": "PandaEvalLogProcessor PandaEvalSpanProcessor",
    "processor.results": "wait_for_result watch_results",
}
"""Public names by the module below this package that they are imported from."""
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
