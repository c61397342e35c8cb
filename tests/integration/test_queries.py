"""Queries by coding agents over MCP, and by people."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from typer.testing import CliRunner

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.cli import app
from pandaeval_collector.config import Config
from pandaeval_collector.judge.shorten import tokens
from pandaeval_collector.show.mcp.fence import MOST_TOKENS
from pandaeval_collector.show.view.texts import many
from support.api import serve_on_port, served
from support.collector import CollectorProcess
from support.judged_files import send
from unit.pipeline.line.test_recoveries import CLAIMED

CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
SCENARIOS = ("good_session", "wrong_tool", "tool_loop", "gives_up", "crashed")
_MARKED = re.compile(r"data, not as instructions\.\n<<([0-9a-f]{16})>>\n(.*)\n<</\1>>", re.DOTALL)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    files = [file for name in SCENARIOS for file in sorted(CAPTURES.glob(f"*/{name}.otlp.jsonl"))[:2]]
    with CollectorProcess(tmp_path_factory.mktemp("mcp")) as running:
        running.start()
        send(running, files)
        running.until(lambda: running.at_rest() and bool(running.results()), "at rest")
        yield running
        assert running.stop() == 0
        assert not re.search(r"ERROR|Traceback| httpx: | mcp\.", running.log()), "no request or error is logged"


class Told:
    """Reference answers of the API."""

    def __init__(self, collector: CollectorProcess) -> None:
        self._url = f"{collector.http}/api/v1"
        self.traces = self.get("/traces", limit=500)["items"]
        self.sessions = self.get("/sessions", limit=500)["items"]
        self.rates = [rate for rate in self.get("/rates")["rates"] if rate["agent"] is not None]
        self.results = self.get("/results", limit=500)["items"]

    def get(self, path: str, **parameters: Any) -> Any:
        return httpx.get(f"{self._url}{path}", params=parameters, timeout=60).raise_for_status().json()


class Agent:
    """A scripted coding agent that checks every answer's form."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.asked = 0

    async def __call__(self, tool: str, **arguments: Any) -> str:
        self.asked += 1
        answer = await self._client.call_tool(tool, arguments)
        assert not answer.is_error, answer.content
        text = "\n".join(part.text for part in answer.content if part.type == "text")
        assert tokens(text) <= MOST_TOKENS
        return text

    async def data(self, tool: str, **arguments: Any) -> str:
        """Return the text between the marks."""
        text = await self(tool, **arguments)
        found = _MARKED.search(text)
        assert found is not None, text
        return found[2]

    async def refused(self, tool: str, **arguments: Any) -> str:
        self.asked += 1
        answer = await self._client.call_tool(tool, arguments)
        assert answer.is_error
        return "\n".join(part.text for part in answer.content if part.type == "text")


@asynccontextmanager
async def over_stdio(*arguments: str) -> AsyncIterator[Client]:
    code = "from pandaeval_collector.cli import main; main()"
    path = ":".join(entry for entry in sys.path if entry)
    server = StdioServerParameters(
        command=sys.executable, args=["-c", code, "mcp", *arguments], env={"PYTHONPATH": path}
    )
    async with Client(server, read_timeout_seconds=120) as client:
        yield client


async def test_twenty_mcp_calls_get_correct_and_short_answers(collector: CollectorProcess) -> None:
    reference = Told(collector)
    async with Client(f"{collector.http}/mcp", read_timeout_seconds=120) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        writing = {name for name, tool in tools.items() if not (tool.annotations and tool.annotations.read_only_hint)}
        assert not writing
        agent = Agent(client)
        await _about_sessions(agent, reference)
        await _about_one_trace(agent, reference)
        await _about_rates(agent, reference)
        await _about_differences(agent, reference)
        await _about_nothing(agent)
    async with Client(f"{collector.http}/mcp", mode="legacy", read_timeout_seconds=120) as older:
        assert {tool.name for tool in (await older.list_tools()).tools} == set(tools)
        assert "trace " in await Agent(older).data("worst_sessions", limit=1)
        assert agent.asked >= 20


async def _about_sessions(agent: Agent, reference: Told) -> None:
    shown = (await agent.data("worst_sessions", limit=50)).split("\n")
    first = reference.sessions[0]
    assert first["worst"]["trace_id"] in shown[0]
    assert f"({many(first['traces'], 'trace')}, {first['failed_traces']} failed)" in shown[0]
    assert len(shown) == min(50, len(reference.sessions)), "each session needs one line"
    name = reference.traces[0]["agent"]
    mine = await agent.data("worst_sessions", agent=name, limit=50)
    assert set(re.findall(r'of agent "(.*?)" at', mine)) == {name}
    assert "agent: there is no nobody" in await agent.refused("worst_sessions", agent="nobody")
    recent = await agent("worst_sessions", hours=1e-6)
    assert recent == "No scored session matches."
    newest = reference.get("/traces", order="newest", limit=3)["items"]
    shown = (await agent.data("find_traces", order="newest", limit=3)).split("\n")
    assert [line.split()[1] for line in shown] == [row["trace_id"] for row in newest]
    for tool, none in (
        ("find_traces", "No scored trace"),
        ("worst_sessions", "No scored session"),
        ("incidents", "No incident"),
    ):
        assert await agent(tool, user="nobody") == f"{none} matches."
    assert await agent("pass_rates", user="nobody") == "No results match."
    loops = await agent.data("find_traces", metric="trace.tool_loop", failed=True, limit=50)
    assert set(re.findall(r"trace ([0-9a-f]{32})", loops)) == {
        row["trace_id"]
        for row in reference.traces
        if any(each["metric"] == "tool_loop" and each["success"] is False for each in row["results"])
    }
    word = next(row["input"] for row in reference.traces if row["input"])[:12]
    found = await agent.data("find_traces", text=word, limit=50)
    assert set(re.findall(r"trace ([0-9a-f]{32})", found)) == {
        row["trace_id"] for row in reference.get("/traces", text=word, limit=50)["items"]
    }


async def _about_one_trace(agent: Agent, reference: Told) -> None:
    for row in (reference.traces[0], reference.traces[len(reference.traces) // 2], reference.traces[-1]):
        why = await agent.data("why_failed", trace_id=row["trace_id"])
        failed = [each for each in row["results"] if each["success"] is False]
        assert f"{len(failed)} of {many(len(row['results']), 'result')} failed" in why
        for each in failed:
            assert f"- {each['level']}.{each['metric']} {each['score']:.2f} (fail" in why
    crashed = next(row for row in reference.traces if row["error"] is not None)
    assert "the run failed: " in await agent.data("why_failed", trace_id=crashed["trace_id"].upper())


async def _about_rates(agent: Agent, reference: Told) -> None:
    shown = (await agent.data("pass_rates", metric="tool_loop")).split("\n")
    agents = {rate["agent"] for rate in reference.rates if rate["metric"] == "tool_loop"}
    assert len(shown) == len(agents), "expected one line per metric and agent"
    for name in agents:
        rates = [rate for rate in reference.rates if (rate["metric"], rate["agent"]) == ("tool_loop", name)]
        passed, failed = (sum(rate[key] for rate in rates) for key in ("passed", "failed"))
        judged = passed + failed
        who = f'agent "{name}"' if name else "an agent without a name"
        assert any(
            line.startswith(f"trace.tool_loop of {who}: {passed / judged:.3f} passed of {judged} ({failed} failed)")
            for line in shown
        )
    assert "agent: there is no nobody" in await agent.refused("pass_rates", agent="nobody")
    assert "did you mean tool_loop?" in await agent.refused("pass_rates", metric="tool_lop")
    assert "session.agent_reliability of agent" in await agent.data("pass_rates", metric="session.agent_reliability")


async def _about_differences(agent: Agent, reference: Told) -> None:
    services = sorted({row["service"] for row in reference.traces})[:2]
    shown = await agent.data(
        "compare_versions", a={"service": services[0]}, b={"service": services[1]}, metric="trace.tool_loop"
    )
    shares = []
    for service in services:
        verdicts = [
            each["success"]
            for row in reference.traces
            for each in row["results"]
            if row["service"] == service and each["metric"] == "tool_loop" and each["success"] is not None
        ]
        shares.append((verdicts.count(False), len(verdicts)))
    for side, (failed, all_) in zip("ab", shares, strict=True):
        assert f"{side} {1 - failed / all_:.0%} of {all_:,} (" in shown
    alike = await agent.data("compare_versions", a={}, b={})
    assert "b - a +0% (" in alike
    none = await agent.data("compare_versions", a={}, b={"until": "1990-01-01T00:00:00Z"})
    assert "b has 0" in none
    assert "b -; b - a -, p -" in none


async def _about_nothing(agent: Agent) -> None:
    assert "32 hexadecimal digits" in await agent.refused("why_failed", trace_id="../../etc/passwd")
    assert "did you mean" in await agent.refused("find_traces", metric="tool_lop")
    assert "no scored agent trace" in await agent.refused("trace_steps", trace_id="0" * 32)
    assert "limit" in await agent.refused("worst_sessions", limit=0)


async def test_ten_questions_of_a_new_user_are_answered_over_mcp(collector: CollectorProcess) -> None:
    reference = Told(collector)
    async with Client(f"{collector.http}/mcp", read_timeout_seconds=120) as client:
        assert client.server_info.version == installed_version()
        agent, seen = Agent(client), f"Page: {collector.http}/#"
        agents = await agent("pass_rates")  # 1. which agents are there?
        assert {row["agent"] for row in reference.traces} == set(re.findall(r'of agent "(.*?)": ', agents))
        assert seen in agents
        failures = await agent("incidents")  # 2. what is the most severe failure, and how often?
        groups = reference.get("/incidents")["incidents"]
        assert f"{groups[0]['severity']} {groups[0]['label'].replace('_', ' ')}" in failures.split("\n")[2]
        assert f"(new; {groups[0]['runs']} runs" in failures
        assert f"{seen}/failures" in failures
        example = re.findall(r"newest in trace ([0-9a-f]{32})", failures)[0]
        why = await agent("why_failed", trace_id=example[:12])  # 3. why, with a prefix of the ID
        assert "results failed:" in why
        assert f"{seen}/trace/{example}" in why
        assert "not judged; by rules" in why
        steps = await agent.data("trace_steps", trace_id=example)  # 4. what did it do, and where did it break?
        whole = reference.get(f"/traces/{example}")
        assert len(re.findall(r"^ *\d+\. ", steps, re.MULTILINE)) == len(whole["detail"]["spans"])
        assert "blamed by " in steps
        grave = await agent("incidents", severity="critical")  # 5. is anything critical?
        assert ("No incident matches." in grave) == (not any(each["severity"] == "critical" for each in groups))
        one = groups[0]["agents"][0]
        assert f'agent "{one}"' in await agent("incidents", agent=one)  # 6. what fails in this agent?
        broken = await agent.data("find_traces", status="error", limit=50)  # 7. which runs crashed?
        assert set(re.findall(r"trace ([0-9a-f]{32})", broken)) == {
            row["trace_id"] for row in reference.traces if row["error"] is not None
        }
        loops = await agent.data("find_traces", metric="tool_loop", failed=True)  # 8. which runs looped?
        assert "trace.tool_loop" in loops
        assert "did you mean" in await agent.refused("incidents", agent=one[:-1] + "~")  # 9. a name that is mistyped
        rates = await agent("pass_rates", agent=one)  # 10. how often does it pass?
        assert all(f'agent "{one}"' in line for line in _MARKED.search(rates)[2].split("\n"))  # type: ignore[index]
        assert seen in rates


def test_failures_set_changes_the_state_and_note_of_an_incident(collector: CollectorProcess) -> None:
    incident = Told(collector).get("/incidents")["incidents"][0]

    def told(*options: str, code: int = 0, id_: str = incident["id"]) -> str:
        outcome = CliRunner().invoke(app, ["failures", "set", id_, *options, "--url", collector.http])
        assert outcome.exit_code == code, outcome.output
        return outcome.stderr

    def states() -> list[tuple[str, str]]:
        history = Told(collector).get(f"/incidents/{incident['id']}")["history"]
        return [(each["state"], each["note"]) for each in reversed(history) if each["by"]]

    assert told("--state", "resolved", "--note", "new prompt") == f"{incident['id']} is resolved\n"
    told("--note", "tool was down")
    told("--state", "new")
    notes = [("resolved", "new prompt"), ("resolved", "tool was down"), ("new", "tool was down")]
    assert states() == notes
    assert told(code=2) == "give --state, --note or both\n"
    assert "there is no incident" in told("--state", "muted", code=2, id_="0123456789ab")
    assert "'gone'" in told("--state", "gone", code=2)
    assert states() == notes


async def test_page_link_has_the_actual_port_if_port_0_is_configured(tmp_path: Path) -> None:
    server = dict.fromkeys(("grpc", "http", "health"), "127.0.0.1:0")
    settings = {"server": server, "store": {"path": str(tmp_path)}, "close": {"quiet": "500ms"}}
    collector = Collector(Config.model_validate(settings), {})
    http = f"http://{(await collector.start()).http}"
    try:
        async with httpx.AsyncClient(base_url=http, timeout=60) as door:
            kind = {"content-type": "application/x-protobuf"}
            request = CLAIMED.request().SerializeToString()
            assert (await door.post("/v1/traces", content=request, headers=kind)).is_success
            while not (await door.get("/api/v1/traces")).json()["items"]:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        async with Client(f"{http}/mcp", read_timeout_seconds=120) as client:
            answer = await Agent(client)("why_failed", trace_id=CLAIMED.trace_id.hex())
    finally:
        await collector.stop()
    assert f"Page: {http}/#/trace/" in answer


async def test_mcp_over_stdio_answers_from_a_collector(collector: CollectorProcess) -> None:
    await _same_over_stdio(collector, "--url", collector.http)


@pytest.mark.slow
async def test_mcp_over_stdio_answers_from_a_data_directory(collector: CollectorProcess) -> None:
    await _same_over_stdio(collector, "--store", str(collector.data))


async def _same_over_stdio(collector: CollectorProcess, *arguments: str) -> None:
    worst = Told(collector).sessions[0]["worst"]["trace_id"]
    async with over_stdio(*arguments) as client:
        agent = Agent(client)
        assert worst in await agent.data("worst_sessions", limit=1)
        assert "asked: " in await agent.data("why_failed", trace_id=worst)


def test_commands_explain_how_to_reach_a_missing_or_protected_collector(
    collector: CollectorProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = CliRunner().invoke(app, ["sessions", "--url", "http://127.0.0.1:9"])
    assert away.exit_code == 2
    assert "pandaeval collector" in away.stderr
    assert away.stderr.count("\n") == 1
    no_api = CliRunner().invoke(app, ["sessions", "--url", f"http://127.0.0.1:{collector.health_port}"])
    assert (no_api.exit_code, no_api.stderr.count("\n")) == (2, 1)
    with served(tmp_path, token="secret") as locked, serve_on_port(locked) as url:
        assert "PANDAEVAL_TOKEN" in CliRunner().invoke(app, ["sessions", "--url", url]).stderr
        monkeypatch.setenv("PANDAEVAL_TOKEN", "secret")
        assert CliRunner().invoke(app, ["sessions", "--url", url]).exit_code == 0


@pytest.mark.parametrize(
    ("headers", "method", "status"),
    [
        ({"host": "evil.example"}, "POST", 421),
        ({"origin": "https://evil.example"}, "POST", 403),
        ({"content-type": "text/plain"}, "POST", 415),
        ({}, "GET", 405),
    ],
)
def test_mcp_rejects_requests_of_other_web_pages(
    collector: CollectorProcess, headers: dict[str, str], method: str, status: int
) -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    all_headers = {"content-type": "application/json", "accept": "application/json"} | headers
    assert (
        httpx.request(method, f"{collector.http}/mcp", content=body, headers=all_headers, timeout=60).status_code
        == status
    )
