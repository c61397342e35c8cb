"""Reads Genkit: ``genkit:*`` on every span. Flows, models and tools are actions with a subtype; all else is a step.

``generate`` holds a model call, its tools, and the next ``generate`` with their results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.dialects._common import documents_in, error_of, one_session, run_kind, tool_definitions, usage_in
from pandaeval_otel.dialects._messages import Messages, messages_of
from pandaeval_otel.dialects._by_kind import ByKind
from pandaeval_otel.dialects._reading import Attributes, Reading
from pandaeval_otel.dialects._runs import answered, asked, model_output
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import count, hidden, identifier, parsed
from pandaeval_otel.model import Captured, Kind, Message, Reasoning
from pandaeval_otel.model.raw import RawSpan

_TYPE, _SUBTYPE, _NAME = "genkit:type", "genkit:metadata:subtype", "genkit:name"
_INPUT, _OUTPUT = "genkit:input", "genkit:output"
_FAILED = "error"
_KINDS = {
    "flow": Kind.WORKFLOW,
    "agent": Kind.AGENT,
    **dict.fromkeys(("model", "background-model"), Kind.LLM),
    **dict.fromkeys(("tool", "tool.v2"), Kind.TOOL),
    "retriever": Kind.RETRIEVAL,
    "embedder": Kind.EMBEDDING,
    "evaluator": Kind.EVALUATION,
}
_RUNS = frozenset({"util", "generate", "helper", "dotprompt", "prompt", "executable-prompt"})
"""Types that are the run itself if no flow is around them."""


class Genkit(ByKind):
    """Reads ``genkit:*``."""

    name = "genkit"
    priority = 75
    roots = frozenset({_TYPE, _SUBTYPE})
    scopes = ("genkit-tracer",)

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        word = attributes.get(_TYPE)
        if type(word) is not str:
            return None
        if word == "action" or word not in _RUNS:
            word = str(attributes.get(_SUBTYPE) or word)
        return run_kind(not span.parent_id) if word in _RUNS else _KINDS.get(word, Kind.STEP)

    def read_any(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.session_ids = one_session(attributes.get("genkit:sessionId"))
        if attributes.get("genkit:state") == _FAILED:
            reading.error = error_of(span) or _FAILED

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given, made = parsed(attributes.get(_INPUT)), parsed(attributes.get(_OUTPUT))
        if attributes[_TYPE] not in _RUNS and str(attributes.get(_SUBTYPE)) not in _RUNS:
            reading.agent_name = identifier(attributes.get(_NAME))
        if type(given) is dict and type(given.get("messages")) is list:
            reading.input = _messages(given["messages"], "user")
        else:
            reading.input = asked(given)[0]
        answer = _answer(made)
        reading.output = (answer,) if answer else answered(made)[0]

    read_agent = read_workflow

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given, made = parsed(attributes.get(_INPUT)), parsed(attributes.get(_OUTPUT))
        # "googleai/gemini-x": the plugin, then the provider's own name.
        name = identifier(attributes.get(_NAME))
        reading.request_model = name.partition("/")[2] or name
        if type(given) is dict:
            reading.input = _messages(given.get("messages"), "user")
            reading.tools = tool_definitions(given.get("tools"))
        if type(made) is not dict:
            return
        answer = _answer(made)
        reading.output = (answer,) if answer else None
        spent = made.get("usage")
        usage = usage_in(spent, "inputTokens", "outputTokens", "cachedContentTokens", thought="thoughtsTokens")
        in_all = count(spent.get("totalTokens")) if type(spent) is dict else None
        if usage and (in_all or 0) >= usage.input + usage.output + usage.reasoning:
            usage = replace(usage, output=usage.output + usage.reasoning)  # Gemini counts thoughts beside the answer
        reading.usage = usage
        raw = made.get("raw")
        if type(raw) is dict:
            reading.response_id, reading.response_model = identifier(raw.get("id")), identifier(raw.get("model"))
            if answer and not any(isinstance(part, Reasoning) for part in answer.parts):
                # The provider's raw response has the thoughts, which not every plugin passes on.
                told = [part for message in model_output(raw)[0] or () for part in message.parts]
                thoughts = [part for part in told if isinstance(part, Reasoning)]
                reading.output = (Message(answer.role, (*thoughts, *answer.parts), answer.finish_reason),)

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        made = parsed(attributes.get(_OUTPUT))
        reading.tool_name = identifier(attributes.get(_NAME))
        reading.arguments = tool_arguments(parsed(attributes.get(_INPUT)))
        reading.result = None if hidden(made) and _OUTPUT not in attributes else Captured(made)

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given = parsed(attributes.get(_INPUT))
        reading.input = asked(given.get("query") if type(given) is dict else given)[0]
        reading.documents = documents_in(attributes.get(_OUTPUT), "documents")


DIALECT = Genkit()


def _answer(made: Any) -> Message | None:
    """Reads ``{"message": …, "finishReason": …}``, which older releases write as the first of ``candidates``."""
    if type(made) is not dict:
        return None
    candidates = made.get("candidates")
    if type(made.get("message")) is not dict and isinstance(candidates, (list, tuple)) and candidates:
        made = candidates[0] if type(candidates[0]) is dict else {}
    found = _messages([made.get("message")], "assistant")
    reason = identifier(made.get("finishReason"))
    return Message(found[0].role, found[0].parts, reason) if found else None


def _messages(items: Any, role: str) -> Messages | None:
    found = [item for item in items if type(item) is dict] if isinstance(items, (list, tuple)) else []
    return messages_of(found, role) if found else None
