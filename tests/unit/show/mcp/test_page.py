"""docs/guides/coding-agents.md lists every tool and valid snippets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from pandaeval_collector.show.api.client import AsyncApiClient
from pandaeval_collector.show.mcp.server import server

_PAGE = (Path(__file__).parents[4] / "docs/guides/coding-agents.md").read_text(encoding="utf-8")


async def test_the_page_lists_exactly_the_existing_tools_and_all_are_read_only() -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        tools = await server(AsyncApiClient(client, "")).list_tools()
    assert set(re.findall(r"^\| `(\w+)` \|", _PAGE, re.MULTILINE)) == {tool.name for tool in tools}
    for tool in tools:
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.input_schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("incidents", {"hour": 1}, r"hour: unknown; there are severity, state, label, hours, [a-z, ]+"),
        ("compare_versions", {"a": {"version": 1}}, r"a\.version: unknown; there are since, [a-z_, ]+; b is required"),
        ("compare_versions", {"a": 3, "b": {}}, "a: must be an object"),
        ("compare_versions", {"a": {}, "b": {"min_usd": -1}}, "b.min_usd: must be greater than or equal to 0"),
        ("why_failed", {}, "trace_id is required"),
        ("find_traces", {"limit": 100}, "limit: must be less than or equal to 50"),
        ("find_traces", {"status": "bad"}, "status: must be 'error' or 'ok'"),
        ("find_traces", {"order": "bad"}, "order: must be 'worst' or 'newest'"),
        ("find_traces", {"attribute": ["x"]}, r"attribute\.0: write key=value, such as service\.version=1\.4"),
    ],
)
async def test_an_invalid_tool_argument_is_a_clear_error(tool: str, arguments: dict[str, Any], said: str) -> None:
    async with httpx.AsyncClient(timeout=60) as client:
        with pytest.raises(ToolError) as refused:
            await server(AsyncApiClient(client, "")).call_tool(tool, arguments)
    assert re.fullmatch(said, str(refused.value))


def test_the_snippets_are_valid_json() -> None:
    found = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", _PAGE, re.DOTALL)]
    assert len(found) == 4
    assert all("pandaeval" in next(iter(each.values())) for each in found)
