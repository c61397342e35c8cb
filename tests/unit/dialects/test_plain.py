"""Attributes of any span."""

from __future__ import annotations

from tests.unit.dialects.composed import seen


def test_names_of_other_vendors() -> None:
    found = seen({"mirascope.ops.session.id": "talk-1", "upsonic.agent.name": "desk"}, name="run")
    assert (found.session_ids, found.agent_name) == (((4, "talk-1"),), "desk")
