"""Measures calls and prompt tokens of judging a trace, against sending the whole trace.

    python tests/lab/bench/judge_tokens.py [--sample N] [--only SET]

Covers golden captures and ``../shared``. Tokens are counted offline with o200k_base. *Whole trace*: compact JSON, sent
11 times. *Schema*: tokens of the JSON schemas. Prices are litellm's list.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]
_LITELLM = Path(
    (find_spec("litellm") or sys.exit("litellm is needed: pip install . './collector[judge]'")).origin or ""
).parent
os.environ["TIKTOKEN_CACHE_DIR"] = str(_LITELLM / "litellm_core_utils" / "tokenizers")

import tiktoken  # noqa: E402

from pandaeval_collector.judge.call import (  # noqa: E402
    ModelAnswer,
    ModelCall,
)
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError  # noqa: E402
from pandaeval_collector.judge.pack import pack  # noqa: E402
from pandaeval_collector.judge.redact import redacted  # noqa: E402
from pandaeval_collector.pipeline.line.stored_traces import closing_of, stored  # noqa: E402
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings  # noqa: E402
from pandaeval_lab.cli._inputs import requests  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402
from pandaeval_otel.model.raw import RawSpan  # noqa: E402
from pandaeval_otel.normal.trace import is_genai  # noqa: E402
from support.embedder import WordEmbedder  # noqa: E402
from support.scripted_judge import GOOD, Memory, scripted_reply  # noqa: E402

SENT = 11
ANSWER_TOKENS = 120
"""Typical tokens of a verdict."""
HIDDEN_TOKENS = 500
"""Typical hidden tokens of a reasoning model."""
MODELS: Mapping[str, tuple[int, bool]] = {
    "gpt-5-nano": (1024, True),
    "gpt-4o-mini": (1024, False),
    "gpt-5-mini": (1024, True),
    "gpt-5.1": (1024, False),
    "gemini/gemini-2.5-flash-lite": (1024, False),
    "gemini/gemini-2.5-flash": (1024, True),
    "claude-haiku-4-5": (4096, False),
    "claude-sonnet-4-6": (2048, False),
}
"""Minimum cached tokens, and whether the model reasons by default."""
_ENCODING = tiktoken.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(_ENCODING.encode(text, disallowed_special=()))


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of a trace's prompts.

    ``prefix``: longest beginning. ``again``: repeated tokens. ``same``: shared beginning. ``schema``: extra tokens.
    """

    calls: int
    prompt: int
    prefix: int
    again: int
    whole: int
    same: bool
    schema: int


class _Counting:
    """Gives valid verdicts and records questions."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Any]] = []
        self.schemas: list[str] = []

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        self.asked.append(call.messages)
        self.schemas.append(json.dumps(call.response_format, separators=(",", ":")))
        return ModelAnswer(scripted_reply(call.messages, str(call.response_format["json_schema"]["name"]), GOOD), 1, 1)


async def _ask_all(desk: JudgeClient, trace: Trace, model: str) -> None:
    """Ask every default question about a trace."""
    packed = pack(redacted(trace), b"s" * 32)
    by = Evaluator(WordEmbedder(), EvaluatorSettings(judge=JudgeSettings(model)))
    _, questions = by.judged.questions(trace)
    for question in questions:
        assert question.metric.ask is not None
        together = by.judged.together(questions, question)
        try:
            await question.metric.ask(trace, Judge(desk, packed, model, together=together))
        except NoVerdictError as error:
            print(f"{trace.trace_id}: {question.metric.name}: {error}", file=sys.stderr)


async def _cost(trace: Trace, whole: str) -> Cost:
    counting = _Counting()
    await _ask_all(JudgeClient(counting, Memory()), trace, "m")
    heads = ["".join(message["content"] for message in asked[:2]) for asked in counting.asked]
    begun = {head: tokens(head) for head in set(heads)}
    rest = sum(tokens(message["content"]) for asked in counting.asked for message in asked[2:])
    longest = max(heads, key=len, default="")
    prefix = begun.get(longest, 0)
    again = sum(begun[head] for head in heads) - prefix
    prompt = sum(begun[head] for head in heads) + rest
    same = all(longest.startswith(head) for head in heads)
    schema = sum(map(tokens, counting.schemas))
    return Cost(len(heads), prompt, prefix, again, SENT * tokens(whole), same, schema)


def _traces(path: Path, most: int) -> Iterator[tuple[Trace, str]]:
    with TraceFiles() as run:
        for request in requests([str(path)]):
            run.add(request)
        for due in islice(chain.from_iterable(run.due()), most):
            found = stored(run.store.reads, due.chunks, closing_of(due))
            evidence, trace = found.evidence, found.trace
            if trace is not None and is_genai(trace):
                whole = {
                    "spans": [_plain(span) for span in evidence.spans],
                    "logs": [log.body for log in evidence.logs],
                }
                yield trace, json.dumps(whole, ensure_ascii=False, default=str)


def _plain(span: RawSpan) -> dict[str, Any]:
    events = [{"name": event.name, "attributes": dict(event.attributes)} for event in span.events]
    about = {"span_id": span.span_id, "parent_id": span.parent_id, "name": span.name, "status": span.status_message}
    times = {"start_ns": span.start_ns, "end_ns": span.end_ns}
    return {**about, **times, "attributes": dict(span.attributes), "events": events}


def _row(name: str, costs: Sequence[Cost]) -> str:
    judged = [cost for cost in costs if cost.calls]
    ours, whole = sum(cost.prompt for cost in judged), sum(cost.whole for cost in judged)
    fewer = [1 - cost.prompt / cost.whole for cost in judged]
    again = sum(cost.again for cost in judged) / ours
    numbers = (
        f"{len(costs)}",
        f"{statistics.mean(cost.calls for cost in judged):.1f}",
        f"{max(cost.calls for cost in judged)}",
        f"{ours / len(judged):,.0f}",
        f"{sum(cost.schema for cost in judged) / len(judged):,.0f}",
        f"{whole / len(judged):,.0f}",
        f"{1 - ours / whole:.0%}",
        f"{statistics.median(fewer):.0%}",
        f"{again:.0%}",
        "yes" if all(cost.same for cost in judged) else "NO",
    )
    return f"| {name} | {' | '.join(numbers)} |"


def _prices(costs: Sequence[Cost]) -> Iterator[str]:
    listed = json.loads((_LITELLM / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8"))
    judged = [cost for cost in costs if cost.calls]
    for model, (least, reasons) in MODELS.items():
        price = listed[model]
        into, out = price["input_cost_per_token"], price["output_cost_per_token"]
        read = price.get("cache_read_input_token_cost") or into
        write = price.get("cache_creation_input_token_cost") or into
        answer = (ANSWER_TOKENS + HIDDEN_TOKENS * reasons) * out
        before = statistics.mean((cost.prompt + cost.schema) * into + cost.calls * answer for cost in judged)
        plain = statistics.mean(cost.prompt * into + cost.calls * answer for cost in judged)
        cached = statistics.mean(_cached(cost, least, into, read, write) + cost.calls * answer for cost in judged)
        hit = sum(cost.prefix >= least for cost in judged) / len(judged)
        numbers = (f"{each * 1000:.2f}" for each in (before, plain, cached))
        yield f"| {model} | {' | '.join(numbers)} | {hit:.0%} | {HIDDEN_TOKENS if reasons else 0} |"


def _cached(cost: Cost, least: int, into: float, read: float, write: float) -> float:
    """Return dollars for a trace's prompts with caching."""
    if cost.prefix < least:
        return cost.prompt * into
    rest = cost.prompt - cost.prefix - cost.again
    return rest * into + cost.prefix * write + cost.again * read


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=150, help="traces per large file")
    parser.add_argument("--only", help="one of the sets")
    options = parser.parse_args()
    sample = options.sample
    shared = ROOT.parent / "shared"
    sets = {"golden captures": sorted((ROOT / "tests/golden/captures").glob("*/*.otlp.jsonl"))}
    if shared.is_dir():
        sets["all captures"] = sorted((shared / "captures").glob("*/*.otlp.jsonl"))
        sets |= {path.parent.name: [path] for path in sorted((shared / "data").glob("*/traces.jsonl.xz"))}
    if options.only:
        sets = {options.only: sets[options.only]}
    titles = ("traces of", "n", "calls", "most", "prompt tokens", "schema", "whole trace x 11", "fewer", "median")
    print(f"| {' | '.join(titles)} | cacheable | one prefix |")
    print("|" + "---|" * (len(titles) + 2))
    everything: list[Cost] = []
    for name, paths in sets.items():
        costs = [asyncio.run(_cost(trace, whole)) for path in paths for trace, whole in _traces(path, sample)]
        everything += costs
        print(_row(name, costs), flush=True)
    print(_row("all", everything))
    print(f"\nUS dollars per 1,000 traces; litellm {version('litellm')}'s list\n")
    print("| model | schema in each call | now, nothing cached | now, cached | traces cached | hidden tokens |")
    print("|---|---|---|---|---|---|")
    print("\n".join(_prices(everything)))


if __name__ == "__main__":
    main()
