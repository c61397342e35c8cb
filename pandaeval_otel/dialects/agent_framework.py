"""Reads the workflow spans of Microsoft Agent Framework. Its agents follow the conventions."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import Dialect, Logs, RawSpan, Reading, Switch, error_of
from pandaeval_otel.model import Kind

_RUN = "workflow.run"
_STEPS = ("workflow.build", "executor.process", "edge_group.process", "message.send")


class AgentFramework(Dialect):
    """Reads ``workflow.*``, ``executor.*`` and ``edge_group.*`` on the framework's own spans."""

    name = "agent_framework"
    priority = 70
    scopes = ("agent_framework",)
    names = (_RUN, *_STEPS)
    content_switch = Switch({"agent_framework": "set ENABLE_SENSITIVE_DATA=true"})

    def read(self, span: RawSpan, logs: Logs) -> Reading | None:
        if not span.scope.name.startswith("agent_framework"):
            return None
        if span.name.startswith(_STEPS):
            return Reading(kind=Kind.STEP)
        if not span.name.startswith(_RUN):
            return None
        reading = Reading(kind=Kind.WORKFLOW)
        failed = next((event for event in span.events if event.name == "workflow.error"), None)
        if failed is not None:
            said = str(failed.attributes.get("error.message") or "workflow error")
            reading.error = error_of(span) or said
        return reading


DIALECT = AgentFramework()
