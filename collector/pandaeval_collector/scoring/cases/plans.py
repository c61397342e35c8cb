"""The tools that an agent said it would use, before it used any.

Read are, in this order: the attribute ``pandaeval.plan`` (a JSON list of tool names, or of objects with ``tool``); a
list of at least two numbered or bulleted lines in what the model thought or said before its first call, of which each
line counts for the first tool of the run that it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pandaeval_collector.scoring.cases.trial import PLAN, Trial
from pandaeval_otel.model import Kind, Reasoning, Text, Trace

_ITEM = re.compile(r"^\s*(?:[-*•]|\(?\d{1,3}[.):]|step\s+\d{1,3}\s*[.):-])\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_MOST = 20_000


def planned_tools(trial: Trial) -> list[str] | None:
    """The tools of the declared plan, in order; ``None``: no plan that names any was found."""
    stated = _stated(trial.stated(PLAN))
    if stated:
        return stated
    names = _known(trial)
    for text in _before_acting(trial.traces[0]):
        items = _ITEM.findall(text[:_MOST])
        found = [name for item in items if (name := _first(item, names)) is not None]
        if len(items) > 1 and found:
            return found
    return None


def _stated(plan: Any) -> list[str]:
    if not isinstance(plan, Sequence) or isinstance(plan, str):
        return []
    tools = (step.get("tool") if isinstance(step, dict) else step for step in plan)
    return [tool for tool in tools if isinstance(tool, str) and tool]


def _known(trial: Trial) -> list[str]:
    """Longest first: ``get_order_status`` is no ``get_order``."""
    names = {*trial.schemas, *(call.name for call in trial.all_calls), *(e.tool_name for e in trial.expected or ())}
    names |= {tool.name for trace in trial.traces for tool in trace.tools}
    return sorted((name for name in names if len(name) > 1), key=lambda name: (-len(name), name))


def _first(item: str, names: Sequence[str]) -> str | None:
    """The tool that a line names first."""
    found = ((match.start(), name) for name in names if (match := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", item)))
    return min(found, default=(0, None))[1]


def _before_acting(trace: Trace) -> Iterator[str]:
    """What the model thought and said up to its first call, in order."""
    first = min((call.start_ns for call in trace.tool_calls if call.start_ns), default=None)
    for span in trace.spans:
        if span.kind is not Kind.LLM or (first is not None and span.start_ns > first):
            continue
        for message in span.output or ():
            yield from (part.text for part in message.parts if isinstance(part, Reasoning | Text) and part.text)
