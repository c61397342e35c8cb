"""A run in other words or in another order. None of these changes what was accomplished."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from pandaeval_collector.judge.pack import Pack
from pandaeval_otel.model import ToolCall, Trace

_POLITE = (
    "Thank you so much for your kind and patient message! I am truly delighted that I may help you with this, and I "
    "want you to know that your request has had my full attention from the first moment on.\n\n{}\n\nI do hope that "
    "this answers everything in the best possible way. It was a real pleasure to be of service to you today. Please do "
    "not hesitate to come back at any time: I am always happy to help, and I wish you a wonderful day!"
)
"""Words that say nothing about the task."""
_TITLE = re.compile(r"^## \d+\. ", re.MULTILINE)
_TOOLS, _HAPPENED = "TOOLS THAT THE AGENT HAD", "WHAT HAPPENED"


def answering(trace: Trace, text: str) -> Trace:
    """The run with another last answer."""
    *before, last = trace.turns
    return replace(trace, turns=(*before, replace(last, assistant=text)), output=text, digest=f"{trace.digest} {text}")


def padded(trace: Trace) -> Trace:
    """The run with its answer in the midst of empty politeness."""
    return answering(trace, _POLITE.format(trace.output or ""))


def tools_reversed(trace: Trace) -> Trace:
    """The run with its tools named in the other order."""
    return replace(trace, tools=trace.tools[::-1])


def parallel_swapped(trace: Trace) -> Trace | None:
    """The run with the first two calls that were made side by side in the other order, ``None`` without such calls."""
    calls = list(trace.tool_calls)
    for index, (one, other) in enumerate(pairwise(calls)):
        if one.start_ns < other.end_ns and other.start_ns < one.end_ns:
            calls[index : index + 2] = [_at(other, one), _at(one, other)]
            return replace(trace, tool_calls=tuple(calls))
    return None


def sections_swapped(pack: Pack) -> Pack:
    """The pack with the tools after what happened. Its digest is another, as its text is."""
    titles = list(_TITLE.finditer(pack.text))
    ends = [*(title.start() for title in titles[1:]), len(pack.text)]
    parts = [pack.text[title.end() : end].strip("\n") for title, end in zip(titles, ends, strict=True)]
    tools = next((part for part in parts if part.startswith(_TOOLS)), None)
    happened = next((part for part in parts if part.startswith(_HAPPENED)), None)
    if tools is None or happened is None:
        return pack
    one, other = parts.index(tools), parts.index(happened)
    parts[one], parts[other] = parts[other], parts[one]
    text = "\n\n".join(f"## {number}. {part}" for number, part in enumerate(parts, 1))
    return replace(pack, text=text, digest=f"{pack.digest} swapped")


def attacked(trace: Trace, place: str, text: str) -> Trace:
    """The run with a text of an attacker's behind the ``answer``, the user's ``message``, or the last ``result``."""
    if place == "answer":
        return answering(trace, f"{trace.output or ''}\n\n{text}")
    if place == "message":
        *before, last = trace.turns
        return replace(trace, turns=(*before, replace(last, user=f"{last.user or ''}\n\n{text}")))
    *calls, latest = trace.tool_calls
    result = f"{latest.result}\n\n{text}"
    return replace(trace, tool_calls=(*calls, replace(latest, result=result, has_result=True)))


PLACES = ("result", "answer", "message")


def _at(call: ToolCall, place: ToolCall) -> ToolCall:
    return replace(call, start_ns=place.start_ns, end_ns=place.end_ns)
