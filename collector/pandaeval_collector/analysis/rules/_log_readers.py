"""Recognises calls that read a log, whose text contains errors of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pandaeval_collector.analysis.rules._verbs import READ, Nature, nature, runs_code, words_of
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import ToolCall

_LOGS = frozenset(
    """
    log logs logging syslog journal dmesg stderr traceback tracebacks stacktrace stacktraces error errors exception
    exceptions crash crashes
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Words in names of tools that return log text, such as ``kubectl_logs`` and ``get_recent_errors``."""
_READERS = READ | {"open", "load"}
_LOG_FILE = lazily(r"/var/log/|\.(?:log|err)(?:\.\d{1,4})?(?:\.gz)?\Z")
_COMMAND = lazily(
    r"\s*(?:sudo )?(?:journalctl\b|dmesg\b|(?:kubectl|oc|docker|podman|heroku|pm2)\b[^\n|;&]{0,200}\blogs?\b"
    r"|(?:cat|tail|head|less|more|zcat|grep|zgrep|rg)\b[^\n|;&]{0,300}(?:/var/log/|\.(?:log|err)\b))"
)
_MOST_ARGUMENTS, _LONGEST = 20, 2_000


def reads_log(call: ToolCall) -> bool:
    """Return whether the call reads a log, by the tool's name, the file's path or the command."""
    if runs_code(call.name):
        return any(_COMMAND.match(text) for text in _texts(call.arguments))
    words = words_of(call.name)
    if nature(call.name) is not Nature.READING:
        return False
    if not _LOGS.isdisjoint(words):
        return True
    return not _READERS.isdisjoint(words) and any(_LOG_FILE.search(text) for text in _texts(call.arguments))


def _texts(arguments: Any) -> Iterator[str]:
    values = list(arguments.values())[:_MOST_ARGUMENTS] if isinstance(arguments, dict) else [arguments]
    for value in values:
        if isinstance(value, str):
            yield value[:_LONGEST]
