"""Code that a model writes and has run, step by step, seen as calls of a tool."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from pandaeval_collector.analysis.rules._canonical import masked_error, statements
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, Trace

NAME = "code"
_BLOCK = re.compile(
    r"(?:```(?:py|python|js|javascript|bash|sh|sql)\s*\n|<code>)(.{1,20000}?)(?:```|</code>)", re.DOTALL
)
_OBSERVED = re.compile(r"(?:call id: \S+\s+)?(?:observations?|execution logs|output|result|error)\s*:", re.IGNORECASE)


def code_runs(trace: Trace) -> tuple[ToolCall, ...]:
    """Finds the code in each model answer that was run, with what the agent's next model call was told of it. Leaves
    out code if tools were called before that next call: their calls tell more."""
    models = [span for span in trace.spans if span.kind is Kind.LLM and span.output]
    parts = (part for span in models for message in span.output or () for part in message.parts)
    if not any(isinstance(part, Text) and ("```" in part.text or "<code>" in part.text) for part in parts):
        return ()  # as mostly
    agents: dict[str, list[Span]] = {}
    for span in models:
        agents.setdefault(span.agent_name, []).append(span)
    starts = sorted(call.start_ns for call in trace.tool_calls)
    runs = []
    for model, after in (pair for of_agent in agents.values() for pair in pairwise(of_agent)):
        code = "\n".join(map(statements, written(model.output or ())))
        if not code or bisect_left(starts, model.end_ns) < bisect_left(starts, after.start_ns):
            continue
        seen = observed(after.input or ())
        if seen is not None:
            at = (model.span_id, model.agent_name, model.end_ns, model.end_ns)
            runs.append(ToolCall(NAME, "", {"code": code}, seen, None, *at, has_arguments=True, has_result=True))
    return tuple(sorted(runs, key=attrgetter("start_ns")))


def written(output: Sequence[Message]) -> list[str]:
    """Returns the blocks of code in a model's answer."""
    text = "\n".join(message.text for message in output if not message.tool_requests)
    return _BLOCK.findall(text) if "```" in text or "<code>" in text else []


def observed(messages: Sequence[Message]) -> str | None:
    """Returns the last message of a model's input if it reports the output of code, else ``None``."""
    if not messages:
        return None
    last = messages[-1]
    for response in last.tool_responses:
        if isinstance(response.result, str) and _OBSERVED.match(response.result):
            return response.result
    return last.text if last.role in ("user", "tool") and _OBSERVED.match(last.text) else None


# When two pieces of code that a model wrote ask for the same, but for cosmetics, and when they broke alike.
LONGEST = 20_000
"""Characters; longer code is not compared."""
_SAME = 0.7
"""The share of all names that two pieces of code must have in common."""
_FEW = 6
"""With fewer names the pieces have to have the same ones: a single other name asks for another thing."""
_CONTENT = 80
"""A literal of more characters is content (a file, a patch) and compared by its words."""
_TOKEN = re.compile(
    r"(?P<text>\"\"\"[\s\S]*?\"\"\"|\"(?:[^\"\\\n]|\\.)*\")|(?P<comment>#[^\n]*)|(?P<number>\b\d[\w.]*)|(?P<name>[^\W\d]\w*)"
)
_ASIDE = re.compile(
    r"^[ \t]*(?:(?:print|console\.log|logg(?:er|ing)\.\w+|echo)\b[^()\n]*\(?[^()\n]*\)?[ \t]*;?|(?:import|from)\b.*)$",
    re.MULTILINE,
)
"""A line that asks for nothing: a message that calls nothing, an import."""
_WORD = re.compile(r"\w+")
_CAUSE = re.compile(r"(?<![\w.])[\w.]*(?:Error|Exception|Interrupt|Timeout)\b[ \t]*:[ \t]*\S[^\n]*")
_PLACE = re.compile(r"\bline \d+|\b0x[0-9a-fA-F]+", re.IGNORECASE)
_ERROR_END = 4_000
_FRAME = re.compile(
    r"=(?:observations?|execution logs|last output from code snippet|output|result|none|null|ok|done)?\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CodeSketch:
    """The essentials of a piece of code. ``asked``: its numbers and short texts; ``names``: its names, and the words of
    long texts. Comments, imports and messages that it prints are left out."""

    asked: frozenset[str]
    names: frozenset[str]


def code_sketch(statements: str) -> CodeSketch:
    """Sketches code without comments (:func:`pandaeval_collector.analysis.rules._canonical.statements`)."""
    asked: set[str] = set()
    names: set[str] = set()
    for token in _TOKEN.finditer(_ASIDE.sub("", statements)):
        text = token.group()
        if token.lastgroup == "comment":
            continue
        if token.lastgroup == "name":
            names.add(text)
        elif len(text) > _CONTENT:
            names.update(_WORD.findall(text))
        else:
            asked.add(text.strip('"'))
    return CodeSketch(frozenset(asked), frozenset(names))


def code_alike(one: CodeSketch, other: CodeSketch) -> bool:
    """Returns whether two pieces of code ask for the same: equal numbers and texts, and mostly the same names."""
    if one.asked != other.asked or not one.names or not other.names:
        return False
    if min(len(one.names), len(other.names)) < _FEW:
        return one.names == other.names
    return len(one.names & other.names) >= _SAME * len(one.names | other.names)


def error_cause(text: str) -> str:
    """Returns what broke, from the text of an error: the last line that names its kind, else all; without ids, times
    and line numbers."""
    end = text[-_ERROR_END:]
    causes = _CAUSE.findall(end)
    return _PLACE.sub("*", masked_error(causes[-1] if causes else end) or "").strip()


def shows_something(said: Sequence[str]) -> bool:
    """Returns whether the output of code holds more than a frame: code that prints nothing may do something else each
    time."""
    return not all(map(_FRAME.fullmatch, said))
