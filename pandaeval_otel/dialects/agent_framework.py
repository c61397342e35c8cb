"""Reads Microsoft Agent Framework's spans ``workflow.*``, ``executor.*``, ``edge_group.*`` and ``message.send``.

The agents' spans follow the conventions.
"""

from __future__ import annotations

from pandaeval_otel.dialects._kit import ByKind, Switch, error_of
from pandaeval_otel.model import Kind

_RUN = "workflow.run"
_STEPS = ("workflow.build", "executor.process", "edge_group.process", "message.send")


class AgentFramework(ByKind):
    name = "agent_framework"
    priority = 70
    scopes = ("agent_framework",)
    names = (_RUN, *_STEPS)
    content_switch = Switch({"agent_framework": "set ENABLE_SENSITIVE_DATA=true"})

    def kind_of(self) -> Kind | None:
        if not self.span.scope.name.startswith("agent_framework"):
            return None
        if self.span.name.startswith(_STEPS):
            return Kind.STEP
        if self.span.name.startswith(_RUN):
            return Kind.WORKFLOW
        return None

    def read_workflow(self) -> None:
        failed = next((event for event in self.span.events if event.name == "workflow.error"), None)
        if failed is not None:
            self.error = error_of(self.span) or str(failed.attributes.get("error.message") or "workflow error")


DIALECT = AgentFramework
