"""Reads Genkit: ``genkit:*`` on every span. Flows, models and tools are actions with a subtype; all else is a step.

``generate`` holds a model call, its tools, and the next ``generate`` with their results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    Messages,
    Object,
    RawSpan,
    Reading,
    answered,
    as_dict,
    asked,
    count,
    documents_in,
    error_of,
    hidden,
    identifier,
    keys,
    kinds,
    messages_of,
    model_output,
    parsed,
    run_kind,
    spoken,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Captured, Kind, Reasoning

_TYPE, _SUBTYPE, _NAME = "genkit:type", "genkit:metadata:subtype", "genkit:name"
_INPUT, _OUTPUT = "genkit:input", "genkit:output"
_FAILED = "error"
_KINDS = kinds(
    workflow="flow",
    agent="agent",
    llm=("model", "background-model"),
    tool=("tool", "tool.v2"),
    retrieval="retriever",
    embedding="embedder",
    evaluation="evaluator",
)
_RUNS = frozenset({"util", "generate", "helper", "dotprompt", "prompt", "executable-prompt"})
"""Types that are the run itself if no flow is around them."""


class Genkit(ByKind):
    """Reads ``genkit:*``."""

    name = "genkit"
    priority = 75
    roots = frozenset({_TYPE, _SUBTYPE})
    scopes = ("genkit-tracer",)
    any_keys = keys(session_ids="genkit:sessionId")
    tool_keys = keys(tool_name=_NAME, arguments=_INPUT)

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word = attributes.get(_TYPE)
        if type(word) is not str:
            return None
        if word == "action" or word not in _RUNS:
            word = str(attributes.get(_SUBTYPE) or word)
        if word in _RUNS:
            return run_kind(not span.parent_id)
        return _KINDS.get(word, Kind.STEP)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        if attributes.get("genkit:state") == _FAILED:
            reading.error = error_of(span) or _FAILED

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given, made = parsed(attributes.get(_INPUT)), parsed(attributes.get(_OUTPUT))
        if attributes[_TYPE] not in _RUNS and str(attributes.get(_SUBTYPE)) not in _RUNS:
            reading.agent_name = identifier(attributes.get(_NAME))
        history = as_dict(given).get("messages")
        reading.input = _messages(history, "user") if type(history) is list else asked(given)[0]
        reading.output = _answer(made) or answered(made)[0]

    read_agent = read_workflow

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        request, response = as_dict(parsed(attributes.get(_INPUT))), as_dict(parsed(attributes.get(_OUTPUT)))
        # "googleai/gemini-x": the plugin, then the provider's own name.
        name = identifier(attributes.get(_NAME))
        reading.request_model = name.partition("/")[2] or name
        reading.input = _messages(request.get("messages"), "user")
        reading.tools = tool_definitions(request.get("tools"))
        reading.output = _answer(response)
        spent = as_dict(response.get("usage"))
        usage = usage_in(spent, "inputTokens", "outputTokens", "cachedContentTokens", thought="thoughtsTokens")
        if usage and (count(spent.get("totalTokens")) or 0) >= usage.input + usage.output + usage.reasoning:
            usage = replace(usage, output=usage.output + usage.reasoning)  # Gemini counts thoughts beside the answer
        reading.usage = usage
        raw = response.get("raw")
        if type(raw) is dict:
            reading.response_id, reading.response_model = identifier(raw.get("id")), identifier(raw.get("model"))
            reading.output = _with_thoughts(reading.output, raw)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        made = parsed(attributes.get(_OUTPUT))
        reading.result = None if hidden(made) and _OUTPUT not in attributes else Captured(made)

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given = parsed(attributes.get(_INPUT))
        reading.input = asked(given.get("query") if type(given) is dict else given)[0]
        reading.documents = documents_in(attributes.get(_OUTPUT), "documents")


DIALECT = Genkit()


def _answer(made: Any) -> Messages | None:
    """Reads ``{"message": …, "finishReason": …}``, which older releases write as the first of ``candidates``."""
    answer = as_dict(made)
    candidates = answer.get("candidates")
    if type(answer.get("message")) is not dict and isinstance(candidates, (list, tuple)) and candidates:
        answer = as_dict(candidates[0])
    found = _messages([answer.get("message")], "assistant")
    return found and spoken(found[0].role, *found[0].parts, reason=identifier(answer.get("finishReason")))


def _with_thoughts(output: Messages | None, raw: Object) -> Messages | None:
    """Returns ``output`` with the thoughts of the provider's raw response, which not every plugin passes on."""
    if not output or any(isinstance(part, Reasoning) for part in output[0].parts):
        return output
    response = model_output(raw)[0] or ()
    thoughts = [part for message in response for part in message.parts if isinstance(part, Reasoning)]
    return spoken(output[0].role, *thoughts, *output[0].parts, reason=output[0].finish_reason)


def _messages(items: Any, role: str) -> Messages | None:
    if not isinstance(items, (list, tuple)):
        return None
    messages = [item for item in items if type(item) is dict]
    if messages:
        return messages_of(messages, role)
    return None
