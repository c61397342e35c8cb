"""Model providers with invalid verdicts or hostile texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support.collector import CollectorProcess
from support.judge import Behave, JudgeAnswer, JudgeServer, always, verdict
from support.made_traces import Composer
from support.senders import HttpSender

KEY = "sk-canary-0123456789abcdef"


def _completion(text: str, usage: Any) -> JudgeAnswer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return JudgeAnswer(raw=json.dumps(body).encode())


_NO_VERDICTS: Mapping[str, Behave] = {
    "true": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", "true"))),
    "text": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", '"1.0"'))),
    "twice": always(lambda body: JudgeAnswer(verdict(body).replace("}", ', "confidence": 1.0}'))),
    "Infinity": always(lambda body: JudgeAnswer(verdict(body).replace("0.8", "Infinity"))),
}
_USAGES: tuple[Any, ...] = (
    {"prompt_tokens": -1_000_000, "completion_tokens": -1_000_000, "total_tokens": -2_000_000},
    {"prompt_tokens": 10**15, "completion_tokens": 10**15, "total_tokens": 2 * 10**15},
)


def not_verdicts(folder: Path, scale: int) -> Iterator[str]:
    """Return non-numbers, duplicate keys and impossible token counts."""
    for name, behave in _NO_VERDICTS.items():
        with JudgeServer(behave) as server, _collector(folder / name, server) as collector:
            outcomes = {result["outcome"] for result in _judged(collector, 2 * scale)}
            if outcomes != {"unscored"}:
                yield f"{name}: {outcomes}"
    for number, usage in enumerate(_USAGES):
        behave = always(lambda body, usage=usage: _completion(verdict(body), usage))
        with JudgeServer(behave) as server, _collector(folder / f"usage-{number}", server) as collector:
            results = _judged(collector, 2 * scale)
            costs = [result["cost_usd"] for result in results]
            if not all(0 <= cost < 1 for cost in costs):
                yield f"costs are {costs[:3]} where the provider says {usage}"


def quoting(folder: Path, scale: int) -> Iterator[str]:
    """Return errors with the API key, control characters and a megabyte of text."""
    text = f"Incorrect API key provided: {KEY}. \x1b]0;owned\x07\x1b[2J Authorization: Bearer {KEY} " + "x" * 1_000_000
    for status in (400, 401, 404, 500):
        answer = JudgeAnswer(status=status, raw=json.dumps({"error": {"message": text, "type": "invalid"}}).encode())
        with JudgeServer(always(answer)) as server, _collector(folder / str(status), server) as collector:
            for result in _judged(collector, scale, wait=False):
                if len(result["reason"] or "") > 4_000:
                    yield f"{status}: a reason of {len(result['reason'])} characters"
            collector.until(lambda collector=collector: "judge" in collector.log(), "said")  # type: ignore[misc]
            with collector.database() as database:
                jobs = "".join(row[0] for row in database.execute("SELECT error FROM jobs"))
            everywhere = {
                "the log": collector.log_file.read_text(errors="replace"),
                "the jobs": jobs,
                "the results": collector.results_file.read_text() if collector.results_file.exists() else "",
            }
            for place, content in everywhere.items():
                if KEY in content:
                    yield f"{status}: the key stands in {place}"
                if "\x1b" in content or "\x07" in content:
                    yield f"{status}: control characters stand in {place}"
            if longest := max(map(len, everywhere["the log"].splitlines()), default=0) > 2048:
                yield f"{status}: a log line of {longest} characters"


def _collector(folder: Path, server: JudgeServer) -> CollectorProcess:
    settings = {
        "PANDAEVAL_JUDGE__DETAIL": "all",
        "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
        "PANDAEVAL_JUDGE__API_BASE": server.url,
        "PANDAEVAL_JUDGE__API_KEY_ENV": "CANARY_KEY",
        "PANDAEVAL_JUDGE__DELAY": "0s",
        "PANDAEVAL_METRICS__ENABLED": "[trace.confidence]",
        "CANARY_KEY": KEY,
    }
    return CollectorProcess(folder, settings)


def _judged(collector: CollectorProcess, traces: int, wait: bool = True) -> list[dict[str, Any]]:
    collector.start()
    composer, door = Composer(5), HttpSender(collector.http)
    for _ in range(traces):
        assert door.send(composer.trace(4).request()).acknowledged
    door.close()
    if wait:
        collector.until(lambda: _ended(collector) >= traces, "judged", 120)
        collector.until(collector.at_rest, "at rest", 60)
    else:
        collector.until(lambda: _tried(collector), "tried", 120)
    return [result for result in collector.results() if result["metric"] == "confidence"]


def _ended(collector: CollectorProcess) -> int:
    with collector.database() as database:
        return int(
            database.execute("SELECT count(*) FROM jobs WHERE state NOT IN ('due', 'leased')").fetchone()[0]
        ) + int(database.execute("SELECT count(*) FROM results WHERE metric = 'trace.confidence'").fetchone()[0])


def _tried(collector: CollectorProcess) -> bool:
    with collector.database() as database:
        return bool(database.execute("SELECT count(*) FROM jobs WHERE error != ''").fetchone()[0])
