"""Errors by which a tool says that its arguments did not have the shape it asks for: facts, not opinions."""

from __future__ import annotations

import re

from pandaeval_otel.model import ToolCall

_PLAIN = re.compile(
    r"-32602\b"  # JSON-RPC's number for invalid params, which MCP servers answer
    r"|\binvalid (?:tool |function |input )?(?:arguments?|params|parameters)\b"
    r"|\b(?:arguments?|tool input|input) (?:did|does|do) not match (?:the |its )?(?:\w+ )?schema\b"
    r"|\bjsonschema\b.{0,80}\bvalidationerror\b"
    r"|\bgot an unexpected keyword argument\b"
    r"|\bmissing \d+ required (?:positional|keyword-only) arguments?\b",
    re.IGNORECASE | re.DOTALL,
)
_TITLED = re.compile(r"\b\d+ validation errors? for (?:call\[)?([\w.\- ]{1,120})", re.IGNORECASE)
_LOOKED_AT = 4000


def refused(call: ToolCall) -> bool:
    """Whether the call failed because its arguments do not fit the tool's schema.

    A validation error of pydantic counts only if it names the tool (``1 validation error for BookFerryInput``): a tool
    may as well have failed to read what another service answered, which is not the arguments' fault.
    """
    if not call.error:
        return False
    error = call.error[:_LOOKED_AT]
    name = _bare(call.name)
    titles = (_bare(found[1]) for found in _TITLED.finditer(error))
    return _PLAIN.search(error) is not None or (bool(name) and any(title.startswith(name) for title in titles))


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()
