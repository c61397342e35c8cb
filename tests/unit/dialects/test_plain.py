"""Attributes of any span."""

from __future__ import annotations

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import seen


def test_session_and_agent_name_of_other_vendors_are_read() -> None:
    found = seen({"mirascope.ops.session.id": "talk-1", "upsonic.agent.name": "desk"}, name="run")
    assert (found.session_ids, found.agent_name) == (((4, "talk-1"),), "desk")


def test_a_tool_call_under_an_applications_own_keys() -> None:
    found = seen({"harbour.tool.name": "berths", "harbour.tool.args": '{"port": 3}', "harbour.tool.result": "2 free"})
    assert (found.kind, found.tool_name, found.error) == (Kind.TOOL, "berths", None)
    assert (found.arguments, found.result) == (Captured({"port": 3}), Captured("2 free"))
    found = seen({"harbour.tool.name": "berths", "harbour.tool.status": "error"})
    assert (found.kind, found.error) == (Kind.TOOL, "tool error")
