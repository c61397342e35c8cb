"""pandaeval_otel knows what happened: it turns GenAI spans of any instrumentation into traces and sessions.

The names below are what an application uses. They are imported when first asked for, so that the collector, which uses
this package too, loads neither the SDK nor gRPC for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandaeval_otel.agents import agent_turn
    from pandaeval_otel.context import session_end, using_case, using_session, using_user
    from pandaeval_otel.log_processor import PandaEvalLogProcessor
    from pandaeval_otel.processor import PandaEvalSpanProcessor
    from pandaeval_otel.results import wait_for_result, watch_results

_WHERE = {
    "PandaEvalLogProcessor": "log_processor",
    "PandaEvalSpanProcessor": "processor",
    "agent_turn": "agents",
    "session_end": "context",
    "using_case": "context",
    "using_session": "context",
    "using_user": "context",
    "wait_for_result": "results",
    "watch_results": "results",
}
__all__ = [
    "PandaEvalLogProcessor",
    "PandaEvalSpanProcessor",
    "agent_turn",
    "session_end",
    "using_case",
    "using_session",
    "using_user",
    "wait_for_result",
    "watch_results",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
