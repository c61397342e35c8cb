"""What several rules ask about the tool calls of one trace, found out once."""

from __future__ import annotations

from functools import cached_property

from pandaeval_collector.analysis.rules._canonical import canonical_arguments
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._latest import once_a_trace
from pandaeval_otel.model import Trace


class KnownCalls:
    """Facts about ``trace.tool_calls``, in their order. Each is found out when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @cached_property
    def wrong(self) -> list[bool]:
        """Whether each call failed."""
        return [failed(call) for call in self._trace.tool_calls]

    @cached_property
    def spelled(self) -> list[str | None]:
        """The canonical arguments of each call, without regard to the defaults of definitions."""
        return [canonical_arguments(call.arguments) for call in self._trace.tool_calls]

    @cached_property
    def hints(self) -> dict[str, bool | None]:
        """Whether each defined tool only reads, by the definition that comes first."""
        hints: dict[str, bool | None] = {}
        for tool in self._trace.tools:
            hints.setdefault(tool.name, tool.read_only)
        return hints


@once_a_trace
def known_calls(trace: Trace) -> KnownCalls:
    """The facts of a trace, which nobody changes while they are in use."""
    return KnownCalls(trace)
