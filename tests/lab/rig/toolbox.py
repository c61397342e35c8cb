"""A desk's tools for agents outside Python."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

from tests.lab.rig.desks import DESKS
from tests.lab.rig.scenarios import Scenario
from tests.support.script import Reply


def schemas(desk: str) -> list[dict[str, Any]]:
    """Return name, description and JSON schema of each tool."""
    return [_schema(tool) for tool in DESKS[desk].tools]


def _schema(tool: Callable[..., str]) -> dict[str, Any]:
    names = list(inspect.signature(tool).parameters)
    properties = {name: {"type": "string"} for name in names}
    return {
        "name": tool.__name__,
        "description": (inspect.getdoc(tool) or "").partition("\n")[0],
        "parameters": {"type": "object", "properties": properties, "required": names},
    }


def results(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """Map ``name arguments-as-compact-JSON`` to ``{"result": …}`` or ``{"error": …}``."""
    tools = {tool.__name__: tool for tool in DESKS[scenario.desk].tools}
    replies = [r for e in scenario.dialogue.exchanges for r in e.replies if isinstance(r, Reply)]
    return {
        f"{call.name} {json.dumps(dict(call.arguments), separators=(',', ':'), ensure_ascii=False)}": _result(
            tools[call.name], dict(call.arguments)
        )
        for reply in replies
        for call in reply.calls
    }


def _result(tool: Callable[..., str], arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": json.loads(tool(**arguments))}
    except RuntimeError as error:
        return {"error": str(error)}
