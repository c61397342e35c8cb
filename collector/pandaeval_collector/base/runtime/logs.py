"""Log format of collector processes: one bounded line per record."""

from __future__ import annotations

import logging

from pandaeval_collector.base.untrusted.printable import one_printable_line

MAX_LINE_BYTES = 2048
_MAX_TRACEBACK_LINES = 200
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_INDENT = "    "
"""Prefix of each line of a traceback, so that no line looks like a log record."""


def set_up(level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(BoundedFormatter(_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])


def set_up_command() -> None:
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(BoundedFormatter("%(message)s"))


class BoundedFormatter(logging.Formatter):
    """Formats a record as a line with its traceback below, escaped and cut."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        lines = [bounded_line(self.formatMessage(record))]
        if record.exc_info:
            lines += _below(self.formatException(record.exc_info))
        if record.stack_info:
            lines += _below(self.formatStack(record.stack_info))
        return "\n".join(lines)


def bounded_line(text: str) -> str:
    """Return a printable line of at most ``MAX_LINE_BYTES`` bytes of UTF-8."""
    line = one_printable_line(text[:MAX_LINE_BYTES])
    encoded = line.encode()
    if len(text) <= MAX_LINE_BYTES and len(encoded) <= MAX_LINE_BYTES:
        return line
    end = f"… ({len(text)} characters)"
    return encoded[: MAX_LINE_BYTES - len(end.encode())].decode(errors="ignore") + end


def _below(text: str) -> list[str]:
    lines = text.split("\n")
    if len(lines) > _MAX_TRACEBACK_LINES:
        half = _MAX_TRACEBACK_LINES // 2
        lines = [*lines[:half], f"… ({len(lines) - 2 * half} lines)", *lines[-half:]]
    return [bounded_line(f"{_INDENT}{line}") for line in lines]
