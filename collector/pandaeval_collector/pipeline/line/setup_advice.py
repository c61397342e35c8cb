"""Logs each setup problem once per service, with a fix."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache

from pandaeval_otel.dialects import dialects
from pandaeval_otel.model import Kind, Text, ToolResponse, Trace
from pandaeval_otel.normal.unread import MARK

_log = logging.getLogger(__name__)
_MAX_REMEMBERED = 1000
_CONVENTIONS = "opentelemetry."
"""Prefix of the scopes whose setting is named if no other setting is known."""
_HINTS = {
    "content": "service {service!r} sends spans without message content, so "
    "most metrics cannot run; to capture content, {cure}",
    "unread": "the answers of service {service!r} are not read: {cure}; `pandaeval inspect` shows how its traces are "
    "read, and CONTRIBUTING.md how to report them",
    "session": "the traces of service {service!r} have no session ID, so conversations cannot be scored; put "
    "gen_ai.conversation.id (or session.id) on their spans, in Python: with pandaeval_otel.using_session(...)",
    "root": "each model call of service {service!r} is a separate trace, so only the last call of a run is scored; "
    "open a span around the work of the agent, in Python: with pandaeval_otel.agent_turn(...)",
    "judge": "no judge is configured, so only metrics without a model run; to run the others, set judge.model "
    "(PANDAEVAL_JUDGE__MODEL)",
}
"""Hints by the missing part."""


def lacking(trace: Trace) -> dict[str, str]:
    """Return a trace's setup problems.

    ``content``: no content. ``unread``: text without a dialect. ``session``: no session id. ``root``: the run is split
    into traces.
    """
    lacks: dict[str, str] = {}
    unread = next((note for note in trace.notes if MARK in note), "")
    if unread:
        lacks["unread"] = unread
    elif _is_bare(trace):
        # The scopes of all spans, first the spans that could have content.
        speaking = (Kind.LLM, Kind.AGENT, Kind.WORKFLOW)
        scopes = [span.scope for span in sorted(trace.spans, key=lambda span: span.kind not in speaking)]
        lacks["content"] = cure((*scopes, *trace.dialects))
    if trace.session_id is None and not trace.continues:
        lacks["session"] = ""
    if len(trace.spans) == 1 and trace.spans[0].kind is Kind.LLM:
        # A call without tools and tool results may be a whole application.
        parts = (part for message in trace.spans[0].input or () for part in message.parts)
        if trace.ends_in_tool_call or any(isinstance(part, ToolResponse) for part in parts):
            lacks["root"] = ""
    return lacks


def _is_bare(trace: Trace) -> bool:
    messages = (message for span in trace.spans for message in (*(span.input or ()), *(span.output or ())))
    texts = (part for message in messages for part in message.parts if isinstance(part, Text))
    return trace.input is None and trace.output is None and next(texts, None) is None


class Hints:
    """Collects and logs setup problems. Single-threaded."""

    def __init__(self, has_judge: bool) -> None:
        self._has_judge = has_judge
        self._told: set[tuple[str, str]] = set()

    def look(self, traces: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        for service, lacks in traces:
            for kind, text in lacks.items():
                self._tell(service, kind, text)
            if not self._has_judge:
                self._tell("", "judge", "")

    def _tell(self, service: str, kind: str, text: str) -> None:
        if (service, kind) not in self._told and len(self._told) < _MAX_REMEMBERED:
            self._told.add((service, kind))
            _log.warning("%s", _HINTS[kind].format(service=service, cure=text))


def cure(names: Iterable[str]) -> str:
    """Return how to enable content for the first known scope or dialect."""
    return next(
        text
        for name in (*names, _CONVENTIONS)
        for beginning, text in _switches()
        if name == beginning or name.startswith(beginning if beginning.endswith(".") else f"{beginning}.")
    )


@cache
def _switches() -> list[tuple[str, str]]:
    return [pair for dialect in dialects() for pair in getattr(dialect, "content_switch", {}).items()]
