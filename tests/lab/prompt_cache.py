"""Measures the cacheable share of judge prompts per agent.

    python tests/lab/prompt_cache.py [--set tau2-policy] [--half even]

Compares each session's prompt with the agent's earlier prompts. Providers cache from 1,024 tokens.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import takewhile

from _sessions import HALVES, SETS, sessions

from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.prompt import messages
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.judge.shorten import tokens
from pandaeval_collector.scoring.metrics.session._correctness import WHOLE
from pandaeval_collector.scoring.metrics.trace._facts import step_counts

_LEAST = 1_024


def alike(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="tau2-policy")
    parser.add_argument("--half", choices=HALVES, default="even")
    given = parser.parse_args()
    earlier: dict[str, list[str]] = defaultdict(list)
    every = cacheable = again = 0
    for _, _, traces in sessions(given.set, given.half):
        whole = conversation([redacted(trace) for trace in traces], "").trace
        packed = pack(whole, b"s" * 32)
        prompt = "\n\n".join(message["content"] for message in messages(packed, WHOLE, step_counts(whole)))
        agent = " ".join(whole.agents)
        common = max((tokens(prompt[: alike(prompt, other)]) for other in earlier[agent]), default=0)
        common *= common >= _LEAST
        every, cacheable, again = every + tokens(prompt), cacheable + common, again + (common > 0)
        earlier[agent].append(prompt)
    count = sum(map(len, earlier.values()))
    print(f"{count} sessions of {given.set} ({given.half}), {len(earlier)} agents")
    print(f"prompt tokens: {every}, of which {cacheable} can be cached ({cacheable / every:.1%}), in {again} sessions")


if __name__ == "__main__":
    main()
