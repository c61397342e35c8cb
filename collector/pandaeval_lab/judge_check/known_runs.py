"""Runs and sessions with known verdicts, packaged or written for the check."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files

from pandaeval_collector.judge.conversation import conversation
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.redact import redacted
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace
from pandaeval_otel.normal.trace import is_genai

Band = tuple[float, float]
DONE: Band = (0.75, 1.0)
"""The task is completed, at least in the main parts."""
NOT_DONE: Band = (0.0, 0.49)
"""The most important parts are missing, or the session was handled wrongly."""
HANDLED: Band = (0.51, 1.0)
"""A session was handled correctly."""
_INVENTED = "The warranty on a desk lamp is 36 months from the day of delivery, and it covers the bulb too."

PLACES = ("result", "answer", "message")
POLITE = (
    "Thank you so much for your kind and patient message! I am truly delighted that I may help you with this, and I "
    "want you to know that your request has had my full attention from the first moment on.\n\n{}\n\nI do hope that "
    "this answers everything in the best possible way. It was a real pleasure to be of service to you today. Please do "
    "not hesitate to come back at any time: I am always happy to help, and I wish you a wonderful day!"
)
"""Polite phrases without content."""
_TITLE = re.compile(r"^## \d+\. ", re.MULTILINE)
_TOOLS, _HAPPENED = "TOOLS THAT THE AGENT HAD", "WHAT HAPPENED"


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run or session with a known verdict. ``band``: the limits of a right score."""

    name: str
    trace: Trace
    band: Band

    def holds(self, value: float | None) -> bool:
        return value is not None and self.band[0] <= value <= self.band[1]

    @property
    def good(self) -> bool:
        return self.band == DONE


@cache
def known_runs() -> tuple[KnownRun, ...]:
    return (
        *(KnownRun(name, _recorded(name), DONE) for name in ("returned", "library", "visit")),
        *(KnownRun(name, _recorded(name), NOT_DONE) for name in ("wrong_tool", "gives_up", "off_topic")),
        KnownRun("hallucinates", answering(_recorded("wrong_tool"), _INVENTED), NOT_DONE),
    )


@cache
def known_sessions() -> tuple[KnownRun, ...]:
    """Return six correct sessions, and six incorrect sessions with different reasons."""
    by_name: dict[str, list[Trace]] = defaultdict(list)
    for trace in _recordings("sessions"):
        by_name[trace.session_id or ""].append(trace)
    return tuple(
        KnownRun(name, conversation(traces, name).trace, HANDLED if name.startswith("right") else NOT_DONE)
        for name, traces in by_name.items()
    )


def _recorded(name: str) -> Trace:
    return _recordings(name)[0]


def _recordings(name: str) -> list[Trace]:
    with as_file(files(__package__).joinpath("runs", f"{name}.otlp.jsonl.xz")) as path, TraceFiles() as run:
        run.add_all(Input(str(path)).requests())
        return [redacted(trace) for trace in run.traces() if is_genai(trace)]


def answering(trace: Trace, text: str) -> Trace:
    *before, last = trace.turns
    return replace(trace, turns=(*before, replace(last, assistant=text)), output=text, digest=f"{trace.digest} {text}")


def sections_swapped(pack: Pack) -> Pack:
    parts = [part.strip("\n") for part in _TITLE.split(pack.text)[1:]]
    moved = [at for at, part in enumerate(parts) if part.startswith((_TOOLS, _HAPPENED))]
    if len(moved) < 2:
        return pack
    one, other = moved
    parts[one], parts[other] = parts[other], parts[one]
    text = "\n\n".join(f"## {number}. {part}" for number, part in enumerate(parts, 1))
    return replace(pack, text=text, digest=f"{pack.digest} swapped", head=0)


def attacked(trace: Trace, place: str, text: str) -> Trace:
    """Return the run with ``text`` appended to its ``answer``, ``message`` or last ``result``."""
    if place == "answer":
        return answering(trace, f"{trace.output or ''}\n\n{text}")
    if place == "message":
        *before, last = trace.turns
        return replace(trace, turns=(*before, replace(last, user=f"{last.user or ''}\n\n{text}")))
    *calls, latest = trace.tool_calls
    result = f"{latest.result}\n\n{text}"
    return replace(trace, tool_calls=(*calls, replace(latest, result=result, has_result=True)))
