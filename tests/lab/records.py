"""Measures the judge's records of a set's sessions.

    python tests/lab/records.py [--set mcp-pairs] [--half even] [--budget 32000] [--least-calls 15]

Prints complete records, tokens, and the share of deciding values: values that a result shows first and a later
argument
or answer uses.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterator

from _sessions import HALVES, SETS, sessions

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.redact import redacted
from pandaeval_otel.model import Trace

_VALUE = re.compile(r"\b(?=[\w-]*\d)[\w-]{4,40}\b")
_BLOCK = re.compile(r"^call (\d+): .*?(?=^<</[0-9a-f]{12}>>$|^call \d+: )", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(r"\nresult: (?:\(the same as that of call (\d+)\))?")


def deciding(trace: Trace) -> Iterator[tuple[int, set[str]]]:
    values = [set(_VALUE.findall(as_text(call.result))) if call.has_result else set() for call in trace.tool_calls]
    given = [set(_VALUE.findall(as_text(call.arguments))) for call in trace.tool_calls]
    answer = set(_VALUE.findall(" ".join(turn.assistant or "" for turn in trace.turns)))
    known = set(_VALUE.findall(" ".join(turn.user or "" for turn in trace.turns)))
    for at, found in enumerate(values):
        known |= given[at]
        if decides := (found & answer.union(*given[at + 1 :])) - known:
            yield at + 1, decides
        known |= found


def results(text: str) -> dict[int, set[str]]:
    """Return the values in each result of a record."""
    found: dict[int, set[str]] = {}
    for block in _BLOCK.finditer(text):
        result = _RESULT.search(block[0])
        if result:
            found[int(block[1])] = found.get(int(result[1] or 0)) or set(_VALUE.findall(block[0][result.end() :]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="mcp-pairs")
    parser.add_argument("--half", choices=HALVES, default="even")
    parser.add_argument("--budget", type=int, default=32_000)
    parser.add_argument("--least-calls", type=int, default=15, help="sessions with fewer calls are left out")
    given = parser.parse_args()
    sizes, complete, unjudged, held, values = [], 0, 0, 0, 0
    for _, _, traces in sessions(given.set, given.half):
        whole = conversation([redacted(trace) for trace in traces], "").trace
        if len(whole.tool_calls) < given.least_calls:
            continue
        packed = pack(whole, b"s" * 32, given.budget)
        sizes.append(packed.tokens)
        complete += not packed.truncated
        unjudged += packed.shown < 0.5
        shown = results(packed.text)
        for number, decides in deciding(whole):
            held, values = held + len(decides & shown.get(number, set())), values + len(decides)
    if not sizes:
        parser.error("no session has so many calls")
    print(f"{len(sizes)} sessions of {given.set} ({given.half}) with {given.least_calls} calls or more")
    print(f"records: {complete} complete, {unjudged} with less than half shown")
    print(f"tokens: median {statistics.median(sizes):.0f}, largest {max(sizes)}, in all {sum(sizes)}")
    print(f"deciding values: {held} of {values} shown ({held / max(values, 1):.1%})")


if __name__ == "__main__":
    main()
