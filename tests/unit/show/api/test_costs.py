"""Costs of runs and verdicts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pandaeval_collector.base.prices import usd_of
from pandaeval_collector.judge.call import JudgeConfig, ModelAnswer, ModelCall
from pandaeval_collector.pipeline.line.listing import cost_of
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.show.api.work import Work
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Kind, Usage
from pandaeval_otel.model.raw import RawSpan
from support.api import ReadInterfaces
from support.embedder import WordEmbedder
from support.scripted_judge import ScriptedCaller

SESSION = Path(__file__).parents[3] / "golden" / "captures" / "langgraph_genai" / "good_session.otlp.jsonl"


class _Paid(ScriptedCaller):
    async def complete(self, call: ModelCall) -> ModelAnswer:
        answer = await super().complete(call)
        return ModelAnswer(answer.text, 90, 10, 0.25)


def call(id_: str, model: str, usage: Usage | None = None) -> Any:
    usage = Usage(1_000_000, 0) if usage is None else usage
    return SimpleNamespace(span_id=id_, kind=Kind.LLM, usage=usage, response_model=model, request_model="")


def raw(id_: str, **attributes: Any) -> RawSpan:
    return RawSpan("t", id_, attributes=attributes)


def cost(calls: list[Any], *spans: RawSpan) -> dict[str, Any]:
    return cost_of(spans, SimpleNamespace(spans=calls))  # type: ignore[arg-type]


def test_cached_tokens_have_their_own_price() -> None:
    assert usd_of(Usage(1_000_000, 0), "gpt-4.1") == pytest.approx(2.0)
    assert usd_of(Usage(1_000_000, 0, cache_read=1_000_000), "gpt-4.1") == pytest.approx(0.5)
    assert usd_of(Usage(0, 1_000_000), "openai/gpt-4.1") == pytest.approx(8.0)
    assert usd_of(Usage(10, 10), "no-such-model") is None


def test_a_cost_stated_by_a_span_replaces_the_computed_cost() -> None:
    calls = [call("a", "gpt-4.1"), call("b", "gpt-4.1")]
    assert cost(calls) == {"usd": pytest.approx(4.0)}
    assert cost(calls, raw("a", **{"gen_ai.usage.cost": 0.5})) == {"usd": pytest.approx(2.5)}
    assert cost(calls, raw("agent", **{"operation.cost": 0.75})) == {"usd": pytest.approx(0.75)}, "for the whole run"


def test_a_model_without_a_price_is_listed_as_unpriced() -> None:
    assert cost([call("a", "gpt-4.1"), call("b", "mine")]) == {"usd": pytest.approx(2.0), "unpriced": ["mine"]}
    assert cost([call("b", "mine")]) == {"unpriced": ["mine"]}
    assert cost([]) == {}


def test_prices_are_read_without_importing_litellm() -> None:
    program = """
import sys
from pandaeval_collector.base.prices import usd_of
from pandaeval_otel.model import Usage
assert usd_of(Usage(1, 1), "gpt-4.1")
assert "litellm" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_costs_are_summed_by_session_agent_user_and_day() -> None:
    evaluator = Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings("openai/m", detail="none")))
    with TraceFiles() as files, contextlib.ExitStack() as held:
        files.add_all(requests([str(SESSION)]))
        with ReplayJudge(files.store, evaluator, JudgeConfig(("openai/m",)), caller=_Paid({})) as asked:
            agents = {each.unit.agent for each in replay(files, evaluator, asked)}
        lookouts = ReadInterfaces(files.store.path, Work(files.store), ())
        held.callback(lookouts.close)
        client = TestClient(Starlette(routes=lookouts.routes), base_url="http://localhost")
        for by in ("agent", "user", "session", "day"):
            [row] = client.get("/api/v1/costs", params={"by": by, "window": "all"}).json()["costs"]
            assert (row["runs"], row["judge_tokens"], row["judge_usd"], row["judge_unpriced"]) == (4, 100, 0.25, 0)
            assert row["input_tokens"] > 0
            assert row["unpriced"] == 0
            assert row["cost_usd"] > 0
            if by == "agent":
                assert row["name"] in agents
