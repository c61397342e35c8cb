"""docs/guides/coding-agents.md lists every tool and valid snippets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.mcp.server import server

_PAGE = (Path(__file__).parents[4] / "docs/guides/coding-agents.md").read_text(encoding="utf-8")


async def test_every_tool_is_told_and_none_that_is_not_there() -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        tools = await server(Asker(client, "")).list_tools()
    assert set(re.findall(r"^\| `(\w+)` \|", _PAGE, re.MULTILINE)) == {tool.name for tool in tools}
    for tool in tools:
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False


async def test_an_argument_that_a_tool_does_not_have_is_refused() -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        with pytest.raises(ToolError, match=r"hour\n.*not permitted"):
            await server(Asker(client, "")).call_tool("incidents", {"hour": 1})


def test_the_snippets_are_json() -> None:
    found = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", _PAGE, re.DOTALL)]
    assert len(found) == 4
    assert all("pandaeval" in next(iter(each.values())) for each in found)
