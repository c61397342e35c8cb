"""What judging costs: calls and prompt tokens of the seven judged metrics, and what sending the whole trace would.

    python tests/bench/judge_tokens.py [--sample N]

Over the golden captures, and over ``../shared`` where it is there. Tokens are counted with tiktoken's o200k_base from
litellm's own files, so that nothing is fetched. *Whole trace*: its spans with all attributes as compact JSON, without
any question, sent 11 times; that is how often a judge sees it that extracts and judges each metric by itself. Prices
are litellm's list at hand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]
_LITELLM = Path((find_spec("litellm") or sys.exit("litellm is needed: pip install '.[judge]'")).origin or "").parent
os.environ["TIKTOKEN_CACHE_DIR"] = str(_LITELLM / "litellm_core_utils" / "tokenizers")

import tiktoken  # noqa: E402
from pandaeval_collector.cli._reading import requests  # noqa: E402
from pandaeval_collector.filerun import FileRun  # noqa: E402
from pandaeval_collector.judge.call import Answer, Call  # noqa: E402
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError  # noqa: E402
from pandaeval_collector.judge.pack import pack  # noqa: E402
from pandaeval_collector.judge.redact import redacted  # noqa: E402
from pandaeval_collector.line.reading import closing_of, stored  # noqa: E402
from pandaeval_collector.metric import Texts, TraceContext, registry  # noqa: E402
from support.asked import GOOD, Memory, said  # noqa: E402

from pandaeval_otel.model import Trace  # noqa: E402
from pandaeval_otel.normal.trace import is_genai  # noqa: E402
from pandaeval_otel.raw import RawSpan  # noqa: E402

SENT = 11
ANSWER_TOKENS = 120
"""What a verdict takes, about; the scripted judge's are shorter."""
MODELS = (
    "gpt-5-nano",
    "gemini/gemini-2.5-flash-lite",
    "gpt-4o-mini",
    "gemini/gemini-3.1-flash-lite",
    "gpt-5-mini",
    "gemini/gemini-2.5-flash",
    "claude-haiku-4-5",
    "gpt-5.1",
    "claude-sonnet-4-6",
)
_ENCODING = tiktoken.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(_ENCODING.encode(text, disallowed_special=()))


@dataclass(frozen=True, slots=True)
class Cost:
    """``again``: prompt tokens with which an earlier call had begun as well; ``same``: whether all calls begin with the
    same words, some with fewer of them."""

    calls: int
    prompt: int
    again: int
    whole: int
    same: bool


class _Counting:
    """Answers every question with a verdict that holds, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Any]] = []

    async def complete(self, call: Call) -> Answer:
        assert call.response_format is not None
        self.asked.append(call.messages)
        return Answer(said(call.messages, str(call.response_format["json_schema"]["name"]), GOOD), 1, 1)


async def _cost(trace: Trace, whole: str) -> Cost:
    counting = _Counting()
    desk, packed = Desk(counting, Memory()), pack(redacted(trace), b"s" * 32)
    context = TraceContext(Texts({}, (), "none", None), 0.5)
    for metric in registry().values():
        if metric.kind != "llm" or metric.level != "trace" or metric.evaluate(trace, context) is not None:
            continue
        assert metric.ask is not None
        try:
            await metric.ask(trace, Judge(desk, packed, "m", asker=metric.key))
        except NoVerdictError as error:
            print(f"{trace.trace_id}: {metric.name}: {error}", file=sys.stderr)
    heads = ["".join(message["content"] for message in asked[:2]) for asked in counting.asked]
    begun = {head: tokens(head) for head in set(heads)}
    rest = sum(tokens(message["content"]) for asked in counting.asked for message in asked[2:])
    longest = max(heads, key=len, default="")
    again = sum(begun[head] for head in heads) - begun.get(longest, 0)
    prompt = sum(begun[head] for head in heads) + rest
    same = all(longest.startswith(head) for head in heads)
    return Cost(len(heads), prompt, again, SENT * tokens(whole), same)


def _traces(path: Path, most: int) -> Iterator[tuple[Trace, str]]:
    """Traces with their spans as JSON."""
    with FileRun(None) as run:
        for request in requests([str(path)]):
            run.add(request)
        run._flush()
        for due in islice(run._due(), most):
            found = stored(run._store, due.chunks, closing_of(due))
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
    calls = statistics.mean(cost.calls for cost in judged)
    prompt = statistics.mean(cost.prompt for cost in judged)
    again = statistics.mean(cost.again for cost in judged)
    for model in MODELS:
        price = listed[model]
        into, out = price["input_cost_per_token"], price["output_cost_per_token"]
        cached = price.get("cache_read_input_token_cost") or into
        answers = calls * ANSWER_TOKENS * out
        full, least = prompt * into + answers, (prompt - again) * into + again * cached + answers
        yield f"| {model} | {full * 1000:.2f} | {least * 1000:.2f} |"


def main() -> None:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=150, help="traces per large file")
    sample = parser.parse_args().sample
    shared = ROOT.parent / "shared"
    sets = {"golden captures": sorted((ROOT / "tests/golden/captures").glob("*/*.otlp.jsonl"))}
    if shared.is_dir():
        sets["all captures"] = sorted((shared / "captures").glob("*/*.otlp.jsonl"))
        sets |= {path.parent.name: [path] for path in sorted((shared / "data").glob("*/traces.jsonl.xz"))}
    print(
        "| traces of | n | calls | most | prompt tokens | whole trace x 11 | fewer | median | cacheable | one prefix |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    everything: list[Cost] = []
    for name, paths in sets.items():
        costs = [asyncio.run(_cost(trace, whole)) for path in paths for trace, whole in _traces(path, sample)]
        everything += costs
        print(_row(name, costs), flush=True)
    print(_row("all", everything))
    print(f"\nUS dollars per 1,000 traces; litellm {version('litellm')}'s list\n")
    print("| model | without caching | with the prefix cached |\n|---|---|---|")
    print("\n".join(_prices(everything)))


if __name__ == "__main__":
    main()
