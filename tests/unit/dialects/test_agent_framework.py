"""Microsoft Agent Framework."""

from __future__ import annotations

import pytest

from pandaeval_otel.model import Kind
from tests.unit.dialects.composed import event, seen

SCOPE = "agent_framework"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("workflow.run", Kind.WORKFLOW),
        ("workflow.build", Kind.STEP),
        ("executor.process writer", Kind.STEP),
        ("edge_group.process SingleEdgeGroup", Kind.STEP),
        ("message.send", Kind.STEP),
    ],
)
def test_spans_of_workflows(name: str, kind: Kind) -> None:
    assert seen({"workflow.id": "w1"}, SCOPE, name=name).kind is kind
    assert seen({"workflow.id": "w1"}, "app", name=name).kind is Kind.OTHER


def test_a_failed_workflow_tells_it_as_an_event() -> None:
    failed = event("workflow.error", **{"error.type": "ValueError", "error.message": "no wind"})
    assert seen({}, SCOPE, [failed], name="workflow.run").error == "no wind"
    assert seen({}, SCOPE, [event("workflow.error")], name="workflow.run").error == "workflow error"


@pytest.mark.parametrize("key", ["gen_ai.conversation.id", "session.id"])
def test_the_previous_response_is_no_session(key: str) -> None:
    span = seen({"gen_ai.operation.name": "chat", key: "resp_5c34d53f"}, SCOPE)
    assert span.session_ids == ()


def test_a_thread_of_the_service_is_one() -> None:
    span = seen({"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "thread_7"}, SCOPE)
    assert span.session_ids == ((2, "thread_7"),)
