"""Recognizes a forced function call as an answer, by the LangChain parser that read its arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pandaeval_otel.model import Kind, Span
from pandaeval_otel.normal.speech import as_answer

_PARSERS = re.compile(r"\b(?:Json|Pydantic|Structured)\w*Parser\b")
"""Parsers of structured output, not parsers of tool calls such as ``ToolsAgentOutputParser``."""


def with_parsed_answers(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans, with some tool calls as answers.

    A call is an answer if a parser ran after the model call and no tool of that name ran.
    """
    parsers = [span for span in spans if span.error is None and "Parser" in span.name and _PARSERS.search(span.name)]
    if not parsers:
        return spans
    ran = {span.tool_name for span in spans if span.kind is Kind.TOOL}
    found = {span.span_id: span for span in spans}
    for parser in parsers:
        before = [span for span in spans if span.kind is Kind.LLM and span.parent_id == parser.parent_id]
        ended = [span for span in before if span.end_ns <= parser.start_ns]
        call = max(ended, key=lambda span: span.end_ns, default=None)
        output = call.output if call is not None else None
        if call is not None and output and ran.isdisjoint(request.name for request in output[-1].tool_requests):
            found[call.span_id] = replace(call, output=as_answer(output))
    return [*found.values()]
