"""Finds tool calls that a model wrote as text, and that did not run."""

from __future__ import annotations

import re
from collections.abc import Collection

from pandaeval_collector.analysis.rules._failures import as_object
from pandaeval_collector.analysis.rules._verbs import ends_run
from pandaeval_collector.analysis.rules.grounding.claims import arguments
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import Kind, Trace

_RAN = (Kind.AGENT, Kind.WORKFLOW, Kind.TOOL)
_LONGEST = 20_000
_WORD = re.compile(r"[\w.-]+")
_OPENS = lazily(
    r"<\W{0,3}(?:tool|function)[_\u2581]?(?:calls?|use)|<function=|\[TOOL_CALLS\]|<invoke name="
    r"|\bAction: ?[\w.-]+\s+Action Input:"
)
"""Markup of calls of Hermes, Qwen, Mistral, DeepSeek, ReAct and others."""
_RUNS = frozenset({"call", "exec", "execute", "function", "invoke", "run", "tool", "use"})
"""Words that models put around a tool's name in tags of their own making (``<execute_bash>``)."""
_PARTS = re.compile(r"[a-z0-9]+")
_FENCED = lazily(r"```\w*\s((?:(?!```)[\s\S])*)```")
_ARGUMENTS = frozenset({"arguments", "parameters", "args", "input"})
_BESIDE = frozenset({"name", "id", "type"})


def written_call(trace: Trace, answer: str) -> str:
    """Return the tool that an answer calls in its last words, else ``""``.

    A model call by itself does not count: its caller may read calls out of text.
    """
    if not any(span.kind in _RAN for span in trace.spans):
        return ""
    waiting = {call.name for call in trace.tool_calls if not call.has_result and call.error is None}
    if (asked := as_object(answer)) is not None and waiting.intersection(str(leaf) for _, leaf in arguments(asked)):
        return ""  # the application reports a call that waits, for example for a person
    names = [*[tool.name for tool in trace.tools], *[call.name for call in trace.tool_calls]]
    return _named(answer.strip(), [name for name in names if not ends_run(name) and "final" not in name.lower()])


def _named(text: str, names: Collection[str]) -> str:
    if len(text) <= _LONGEST and (fenced := _FENCED.fullmatch(text)) is not None:
        text = fenced[1].strip()
    if len(text) > _LONGEST or text[-1:] not in ("}", "]", ">"):
        return ""
    words: set[str] = set()
    found, last = as_object(text), text.rpartition("```")[2]
    if found is not None and not _ARGUMENTS.isdisjoint(found) and found.keys() <= _ARGUMENTS | _BESIDE:
        words = {str(found.get("name"))}
    elif (opened := _OPENS.search(last)) is not None:
        words = {*_WORD.findall(last, opened.start())}
    elif (tag := _closing_tag(last)) and f"<{tag}" in last:
        words = {name for name in names if _names(tag, name)}
    return next((name for name in names if name in words), "")


def _closing_tag(text: str) -> str:
    begin = text.rfind("</")
    return text[begin + 2 : -1] if begin >= 0 and text.endswith(">") else ""


def _names(tag: str, tool: str) -> bool:
    """Return whether a tag has the tool's name, also with words such as ``run`` around it."""
    around, own = ({*_PARTS.findall(name.lower())} for name in (tag, tool))
    return own <= around and around - own <= _RUNS
