"""Changes a run without changing what was accomplished, or adds an attack to it."""

from __future__ import annotations

import re
from dataclasses import replace

from pandaeval_collector.judge.pack import Pack
from pandaeval_otel.model import Trace

PLACES = ("result", "answer", "message")
POLITE = (
    "Thank you so much for your kind and patient message! I am truly delighted that I may help you with this, and I "
    "want you to know that your request has had my full attention from the first moment on.\n\n{}\n\nI do hope that "
    "this answers everything in the best possible way. It was a real pleasure to be of service to you today. Please do "
    "not hesitate to come back at any time: I am always happy to help, and I wish you a wonderful day!"
)
"""Words that say nothing about the task."""
_TITLE = re.compile(r"^## \d+\. ", re.MULTILINE)
_TOOLS, _HAPPENED = "TOOLS THAT THE AGENT HAD", "WHAT HAPPENED"


def answering(trace: Trace, text: str) -> Trace:
    """Returns the run with ``text`` as its last answer."""
    *before, last = trace.turns
    return replace(trace, turns=(*before, replace(last, assistant=text)), output=text, digest=f"{trace.digest} {text}")


def sections_swapped(pack: Pack) -> Pack:
    """Returns the pack with the section of tools and that of what happened swapped, and another digest."""
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
    """Returns the run with ``text`` appended to its ``answer``, the user's ``message``, or the last ``result``."""
    if place == "answer":
        return answering(trace, f"{trace.output or ''}\n\n{text}")
    if place == "message":
        *before, last = trace.turns
        return replace(trace, turns=(*before, replace(last, user=f"{last.user or ''}\n\n{text}")))
    *calls, latest = trace.tool_calls
    result = f"{latest.result}\n\n{text}"
    return replace(trace, tool_calls=(*calls, replace(latest, result=result, has_result=True)))
