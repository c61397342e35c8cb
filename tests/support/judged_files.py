"""Files through ``pandaeval evaluate`` and a collector, with a scripted judge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.files import Request
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.scripted_judge import GOOD, scripted_reply

MODEL = "openai/gpt-4o-mini"
NAMES = {
    *("task_completion", "tool_correctness", "argument_correctness", "step_efficiency", "confidence"),
    *("plan_adherence", "plan_quality"),
}
_NOT_THERE = {"no_content", "incomplete_trace"}
Result = dict[str, Any]


def behave(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Return a valid verdict."""
    return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD))


def environ(server: JudgeServer) -> dict[str, str]:
    """Return settings that call this judge immediately."""
    judge = {"MODEL": MODEL, "API_BASE": server.url, "API_KEY_ENV": "JUDGE_KEY", "DELAY": "0s", "DETAIL": "all"}
    return {**{f"PANDAEVAL_JUDGE__{name}": value for name, value in judge.items()}, "JUDGE_KEY": "sk-test"}


def evaluated(files: Iterable[Path], monkeypatch: pytest.MonkeyPatch) -> tuple[list[Result], Counter[str]]:
    """Return all results, and the calls per record.

    Judged results may lack a score only if data is incomplete.
    """
    with JudgeServer(behave) as server:
        for name, value in environ(server).items():
            monkeypatch.setenv(name, value)
        outcome = CliRunner().invoke(app, ["evaluate", *map(str, files), "--format", "json"])
    assert outcome.exit_code == 0, outcome.output
    results = [json.loads(line) for line in outcome.stdout.splitlines()]
    unscored = [each for each in results if each["outcome"] == "unscored"]
    thin = {each["session_id"] for each in unscored if each["why"] in _NOT_THERE}
    for each in (each for each in unscored if each["evaluator"]["kind"] == "llm"):
        reason = f"{each['level']}.{each['metric']} of {each['trace_id']}: {each['why']}, {each['reason']}"
        thin_session = each["level"] == "session" and each["session_id"] in thin
        nothing_to_contradict = each["metric"] == "faithfulness"
        more = {"insufficient_evidence"} if thin_session or nothing_to_contradict else set()
        assert each["why"] in {*_NOT_THERE, *more}, reason
    about_traces = [body for _, body in server.requests if rubric_of(body) != "conversation"]
    begun = ["".join(message["content"] for message in body["messages"][2:3]) for body in about_traces]
    return results, about_each_record(begun)


def about_each_record(begun: Sequence[str]) -> Counter[str]:
    """Return the calls about each record, by the calls' beginnings."""
    whole: list[str] = []
    for head in sorted(set(begun), key=len, reverse=True):
        if not any(longer.startswith(head) for longer in whole):
            whole.append(head)
    return Counter(next(head for head in whole if head.startswith(each)) for each in begun)


def of_judges(results: Iterable[Result]) -> list[Result]:
    """Return a model's trace results. Only traces without a session also have ``correctness``: it is left out."""
    judged = (each for each in results if each["evaluator"]["kind"] == "llm" and each["level"] == "trace")
    return [each for each in judged if each["metric"] != "correctness"]


def send(collector: CollectorProcess, files: Sequence[Path]) -> None:
    with httpx.Client(headers={"content-type": "application/x-protobuf"}, timeout=60) as client:
        for request in requests([str(file) for file in files]):
            assert isinstance(request, Request)
            path = "logs" if request.logs else "traces"
            assert client.post(f"{collector.http}/v1/{path}", content=request.data).status_code == 200
