"""Finds text that no dialect reads, a sign of an unknown instrumentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pandaeval_otel.model import Span, Trace
from pandaeval_otel.model.raw import RawSpan

MARK = "under keys that no dialect reads"
"""Part of every note about unread text."""
_OF_CONTENT = re.compile(
    r"(?:^|[._:\-])(?:input|output|prompt|completion|message|content|request|response|question|answer|query|result|"
    r"argument|text|transcript|reply|conversation|history|value)s?\Z|message",
    re.IGNORECASE,
)
"""Finds keys that end like the names of questions or answers."""
_OTHERS = frozenset(
    {
        *("http", "url", "db", "net", "network", "server", "client", "messaging", "rpc", "exception", "code", "thread"),
        *("process", "host", "telemetry", "service", "faas", "cloud", "aws", "k8s", "graphql", "user_agent", "peer"),
        *("pandaeval", "otel", "log", "error", "sql", "redis", "mongodb", "grpc", "span", "browser", "session"),
    }
)
"""First segments of keys that belong to other conventions."""
_FEWEST, _SHOWN = 12, 4
"""Minimum characters of a text, and maximum keys in the note."""


def unread(trace: Trace, raws: Iterable[RawSpan]) -> str:
    """Return a note on unread text; ``""`` if the trace has a question and answer, or failed."""
    answered = trace.output is not None or trace.ends_in_tool_call
    if trace.error is not None or (trace.input is not None and answered):
        return ""
    bare = {span.span_id for span in trace.spans if not _told(span)}
    known = _known(trace.spans)
    keys = set[str]()
    count = 0
    for raw in raws:
        if raw.span_id not in bare:
            continue
        found = [key for key, value in raw.attributes.items() if _is_content(key, value) and value not in known]
        if found:
            count += 1
            keys.update(found)
    if not count:
        return ""
    more = ", …" if len(keys) > _SHOWN else ""
    carry = "span carries" if count == 1 else "spans carry"
    return f"{count} {carry} text {MARK}: {', '.join(sorted(keys)[:_SHOWN])}{more}"


def _told(span: Span) -> bool:
    return bool(span.input or span.output or span.arguments or span.result or span.documents)


def _known(spans: Sequence[Span]) -> set[str]:
    messages = (message for span in spans for message in (*(span.input or ()), *(span.output or ())))
    return {message.text for message in messages}


def _is_content(key: str, value: Any) -> bool:
    if type(value) is not str or len(value) < _FEWEST or " " not in value.strip():
        return False
    return key.partition(".")[0] not in _OTHERS and _OF_CONTENT.search(key) is not None
