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
def test_workflow_span_names_set_kinds_only_in_their_own_scope(name: str, kind: Kind) -> None:
    assert seen({"workflow.id": "w1"}, SCOPE, name=name).kind is kind
    assert seen({"workflow.id": "w1"}, "app", name=name).kind is Kind.OTHER


def test_a_workflow_error_event_sets_the_error() -> None:
    failed = event("workflow.error", **{"error.type": "ValueError", "error.message": "no wind"})
    assert seen({}, SCOPE, [failed], name="workflow.run").error == "no wind"
    assert seen({}, SCOPE, [event("workflow.error")], name="workflow.run").error == "workflow error"


@pytest.mark.parametrize("key", ["gen_ai.conversation.id", "session.id"])
def test_a_previous_response_id_is_no_session(key: str) -> None:
    span = seen({"gen_ai.operation.name": "chat", key: "resp_5c34d53f"}, SCOPE)
    assert span.session_ids == ()


def test_a_service_thread_id_is_the_session() -> None:
    span = seen({"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "thread_7"}, SCOPE)
    assert span.session_ids == ((2, "thread_7"),)
