"""All judged trace metrics through the judge's process and the real litellm: what they cost, and what they share."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from pandaeval_collector.evaluator import Evaluator, JudgeSettings, Settings
from pandaeval_collector.judge.client import Setup, WorkerProcess
from pandaeval_collector.judge.desk import Desk, Judge
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.score import Score
from support.asked import GOOD, Memory, said
from support.embedder import WordEmbedder
from support.judge import JudgeServer, Say
from support.judged import call, trace

MODEL = "openai/gpt-4o-mini"
MOST_CALLS = 9
RUN = trace(calls=[call(1), call(2, "book")], reasoning=("First I search, then I book, then I tell.",))


def _behave(number: int, body: dict[str, Any]) -> Say:
    return Say(said(body["messages"], body["response_format"]["json_schema"]["name"], GOOD))


async def test_all_seven_cost_nine_calls_that_begin_with_the_same_bytes() -> None:
    _, questions = Evaluator(WordEmbedder(), Settings(judge=JudgeSettings(MODEL))).judged(RUN)
    assert len(questions) == 7
    with JudgeServer(_behave) as server:
        setup = Setup((MODEL,), server.url, "JUDGE_KEY", timeout=20.0, retries=0)
        process = WorkerProcess(setup, {**os.environ, "JUDGE_KEY": "sk-test"})
        desk, packed = Desk(process, Memory()), pack(RUN, b"s" * 32)
        judges = {question.metric.name: Judge(desk, packed, MODEL) for question in questions}
        try:
            asked = [each.metric.ask(RUN, judges[each.metric.name]) for each in questions if each.metric.ask]
            findings = await asyncio.gather(*asked)
        finally:
            await process.close()
    assert all(isinstance(found, Score) for found in findings), findings
    assert len(server.requests) == sum(judge.spent.calls for judge in judges.values()) == MOST_CALLS
    prefixes = {(body["messages"][0]["content"], body["messages"][1]["content"]) for _, body in server.requests}
    assert len(prefixes) == 1
    assert packed.nonce in prefixes.pop()[1]
