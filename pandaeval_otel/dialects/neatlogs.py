"""Reads Neatlogs: OpenInference's attributes under ``neatlogs.``."""

from __future__ import annotations

from pandaeval_otel.dialects.traceai import TraceAI

_KIND = "neatlogs.span.kind"
_USAGE = "neatlogs.llm.token_count"


class Neatlogs(TraceAI):
    name = "neatlogs"
    roots = frozenset({"neatlogs"})
    marks = frozenset({_KIND})
    scopes = ("neatlogs",)
    renamed = {  # noqa: RUF012 - a constant, as declared
        _KIND: "openinference.span.kind",
        f"{_USAGE}.cache_read": "llm.token_count.prompt_details.cache_read",
        f"{_USAGE}.reasoning": "llm.token_count.completion_details.reasoning",
        "neatlogs.llm.response_id": "gen_ai.response.id",
    }
    prefixes = {  # noqa: RUF012 - a constant, as declared
        "neatlogs.llm.tool_calls.": "llm.output_messages.0.message.tool_calls.",
        "neatlogs.": "",
    }


DIALECT = Neatlogs
