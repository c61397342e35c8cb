"""API, MCP, commands and report show equal results."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.cli import app
from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.show.api.app import read_only_app
from pandaeval_collector.show.api.client import AsyncApiClient
from pandaeval_collector.show.mcp.server import server
from pandaeval_collector.show.view.results import signal_of
from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.series import SeriesLabels
from support.reports import parsed
from support.results import CODE, result

FINDINGS: dict[str, tuple[Finding, float | None, str]] = {
    "coherence": (Score(0.756, "on topic"), 0.5, "0.76 (pass)"),
    "brevity": (Score(0.25, "long"), 0.5, "0.25 (fail)"),
    "tool_loop": (Score(0.125, "the same call again", label="loop"), 0.5, "0.12 (fail, loop)"),
    "response": (Score(1.0, "asked back", label="clarified"), 0.5, "1.00 (pass, clarified)"),
    "loop_detection": (Assumed("a single turn"), 0.5, "1.00 (assumed)"),
    "grounding": (Unscored(Why.NO_CONTENT, "nothing was captured"), 0.5, "unscored (no_content)"),
    "blame": (Score(0.9, "the second call", label="tool"), None, "0.90 (tool)"),
}
"""By metric: its finding, its threshold, and the view of every surface."""
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SHOWN = re.compile(r"trace\.(\w+) ((?:[\d.]+|unscored) \([^)]*\)): ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a data directory with a result of each kind."""
    folder = tmp_path_factory.mktemp("store")
    store, emitter = Store(folder, "off"), Emitter(labels=SeriesLabels())
    id_, at = bytes.fromhex(TRACE_ID), 1_772_366_400_000
    facts = {"id": TRACE_ID, "at": at, "us": 1, "agent": "helper", "service": "shop", "spans": 1, "llm": 0, "tools": 0}
    made = [
        result(name, finding, id=name, threshold=threshold, evaluator=CODE)
        for name, (finding, threshold, _) in FINDINGS.items()
    ]
    rows = [ResultRow(each.id, TRACE_ID, f"trace.{each.metric}", 1, each.to_json()) for each in made]
    for row, each in zip(rows, made, strict=True):
        row.success, row.signal, row.verdict = each.success, signal_of(each.to_dict()), each.verdict
    changes = WriteSet(
        traces=[DecidedTrace(id_, 1, True, "d", frozenset(), [], 0)],
        session_traces=[SessionTraceRow(id_, "session-1", at, at, b"{}")],
        listed=[ListedRow(id_, at, "helper", "shop", "", "", False, orjson.dumps(facts))],
        results=rows,
        touched={"session-1"},
    )
    emitter.add(made, (), changes)
    store.commit(changes).result()
    yield folder
    store.close()


def _shown(text: str) -> dict[str, str]:
    """Return the results shown in a text, by metric."""
    return dict(SHOWN.findall(text))


def _words(results: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    names = ("outcome", "score", "success", "label", "why")
    return {each["metric"].removeprefix("trace."): tuple(each.get(name) for name in names) for each in results}


async def _printed(*arguments: str | Path) -> str:
    words, wide = [str(each) for each in arguments], {"COLUMNS": "300"}
    done = await asyncio.to_thread(CliRunner().invoke, app, words, env=wide)
    assert done.exit_code == 0, done.output
    return done.output


async def test_api_mcp_commands_and_report_show_equal_results(folder: Path, tmp_path: Path) -> None:
    expected = {metric: shown for metric, (_, _, shown) in FINDINGS.items()}
    with read_only_app(folder) as api:
        asker = AsyncApiClient.within(api)
        row = await asker.get(f"/traces/{TRACE_ID}")
        listed = (await asker.get("/results"))["items"]
        why = str(await server(asker).call_tool("why_failed", {"trace_id": TRACE_ID}))
        line = str(await server(asker).call_tool("find_traces", {}))
        await asker.close()
    assert _shown(why) == expected
    assert _shown(await _printed("traces", "show", TRACE_ID, "--store", folder)) == expected
    table = await _printed("traces", "--store", folder)
    assert _shown(line) == _shown(table) == {"tool_loop": expected["tool_loop"]}, "only the worst result"
    written = tmp_path / "report.html"
    await _printed("report", "--store", folder, "--output", written)
    [trace] = parsed(written.read_text()).index["traces"]
    assert {each["metric"].removeprefix("trace."): each["word"] for each in trace["results"]} == {
        metric: shown.partition("(")[2][:-1] for metric, shown in expected.items()
    }
    assert _words(trace["results"]) == _words(row["results"]) == _words(listed)


async def test_api_and_mcp_show_equal_pass_rates(folder: Path) -> None:
    with read_only_app(folder) as api:
        asker = AsyncApiClient.within(api)
        rates = (await asker.get("/rates"))["rates"]
        lines = str(await server(asker).call_tool("pass_rates", {}))
        await asker.close()
    counts = ("metric", "scored", "assumed", "passed", "failed", "unscored", "unclear", "disputed")
    of_agent, of_all = (
        sorted([rate[name] for name in counts] for rate in rates if rate["agent"] == agent)
        for agent in ("helper", None)
    )
    assert of_agent == of_all
    told_of = [rate for rate in rates if rate["agent"] == "helper"]
    for rate in told_of:
        judged = rate["passed"] + rate["failed"]
        share = f"{rate['passed'] / judged:.3f}" if judged else "-"
        expected = f"{share} passed of {judged} ({rate['failed']} failed)" if judged else "no verdicts"
        assert f"trace.{rate['metric']} of agent" in lines
        assert re.search(rf"trace\.{rate['metric']} of agent \S+: {re.escape(expected)}", lines.replace('\\"', '"'))
    assert sum(rate["failed"] for rate in told_of) == 2
