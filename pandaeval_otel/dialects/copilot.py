"""Reads GitHub Copilot's command line, which follows the conventions but for the blocks before the user's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import without_context
from pandaeval_otel.dialects._messages import read_messages
from pandaeval_otel.dialects._reading import Dialect, Reading
from pandaeval_otel.model.raw import RawLog, RawSpan


class Copilot(Dialect):
    """Reads the input of spans with ``github.copilot.*``."""

    name = "copilot"
    priority = 70
    roots = frozenset({"github"})
    content_switch: Mapping[str, str] = {
        "github.copilot": "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
    }

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        given = without_context(read_messages(span.attributes.get(semconv.INPUT_MESSAGES), "user")[0])
        return Reading(input=given) if given else None


DIALECT = Copilot()
