"""Reads Haystack (2 and 3): pipelines, components, agents and their steps, under ``haystack.*``."""

from __future__ import annotations

from collections.abc import Mapping

from pandaeval_otel.dialects._common import (
    CUT,
    captured,
    documents_in,
    said_by_user,
    system_of,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.dialects._messages import messages_of
from pandaeval_otel.dialects._reading import Attributes, ByKind, Reading
from pandaeval_otel.dialects._runs import answered, asked, read_sides, split_run
from pandaeval_otel.dialects._tool_values import tool_arguments
from pandaeval_otel.dialects._values import as_list, first, identifier, parsed
from pandaeval_otel.model import Kind
from pandaeval_otel.model.raw import RawSpan

_KINDS = {
    **dict.fromkeys(("haystack.pipeline.run", "haystack.async_pipeline.run"), Kind.WORKFLOW),
    "haystack.agent.run": Kind.AGENT,
    "haystack.agent.step.llm": Kind.LLM,
    "haystack.agent.step.tool": Kind.TOOL,
}
_SPENT, _MADE = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
_CACHED, _THOUGHT = "prompt_tokens_details.cached_tokens", "completion_tokens_details.reasoning_tokens"
_COMPONENTS = {"Generator": Kind.LLM, "Retriever": Kind.RETRIEVAL, "Embedder": Kind.EMBEDDING}
"""Kinds of components by the ends of their classes' names."""
_PLACES = ("haystack.agent.step.llm", "haystack.agent", "haystack.component")
_INPUTS = (*(f"{place}.input" for place in _PLACES), "haystack.pipeline.input_data")
_OUTPUTS = (*(f"{place}.output" for place in _PLACES), "haystack.pipeline.output_data")


class Haystack(ByKind):
    """Reads ``haystack.*``."""

    name = "haystack"
    priority = 75
    roots = frozenset({"haystack"})
    names = ("haystack.",)
    content_switch: Mapping[str, str] = {"haystack": "set HAYSTACK_CONTENT_TRACING_ENABLED=true"}

    def kind_of(self, span: RawSpan, attributes: Attributes) -> Kind | None:
        if span.name != "haystack.component.run":
            return _KINDS.get(span.name, Kind.STEP) if span.name.startswith("haystack.") else None
        component = str(attributes.get("haystack.component.type") or "")
        return next((kind for suffix, kind in _COMPONENTS.items() if component.endswith(suffix)), Kind.STEP)

    def read_workflow(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        read_sides(reading, first(attributes, _INPUTS), first(attributes, _OUTPUTS))

    def read_llm(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        given, made = parsed(first(attributes, _INPUTS)), parsed(first(attributes, _OUTPUTS))
        if type(given) is dict:
            reading.input = messages_of(given.get("messages"), "user") or said_by_user(given.get("prompt"))
            reading.tools = tool_definitions(given.get("tools"))
        elif given is not None:
            reading.input, reading.notes = messages_of(given, "user"), CUT
        if type(made) is dict:
            reading.output = messages_of(made.get("replies"), "assistant")
            metas = as_list(made.get("meta")) or [
                reply.get("meta") for reply in as_list(made.get("replies")) if type(reply) is dict
            ]
            meta = next((meta for meta in metas if type(meta) is dict), {})
            reading.response_model = identifier(meta.get("model"))
            usage = meta.get("usage")
            if type(usage) is dict:
                details = {name: inner for name, inner in usage.items() if type(inner) is dict}
                flat = {f"{name}.{key}": value for name, inner in details.items() for key, value in inner.items()}
                reading.usage = usage_in({**usage, **flat}, _SPENT, _MADE, _CACHED, thought=_THOUGHT)
        elif made is not None:
            reading.output, reading.notes = messages_of(made, "assistant"), CUT

    def read_tool(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tool_name = identifier(attributes.get("haystack.tool.name"))
        reading.arguments = tool_arguments(attributes.get("haystack.agent.step.tool.input"))
        reading.result = captured(attributes.get("haystack.agent.step.tool.output"))
        if attributes.get("haystack.tool.error") in (True, "true", "True"):
            value = reading.result.value if reading.result else None
            said = value.get("error") if type(value) is dict else value
            reading.error = str(said or "tool error")

    def read_agent(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.tools = tool_definitions(attributes.get("haystack.agent.tools"))
        given, made = parsed(first(attributes, _INPUTS)), parsed(first(attributes, _OUTPUTS))
        reading.input = messages_of(given.get("messages"), "user") if type(given) is dict else asked(given)[0]
        if type(made) is not dict:
            reading.output, cut = answered(made)
            reading.notes = CUT if cut else ()
            return
        whole = messages_of(made.get("messages"), "assistant")
        if whole:
            question, reading.output = split_run(whole)
            reading.system = system_of(question)
        if not reading.output and made.get("last_message") is not None:
            reading.output = messages_of([made["last_message"]], "assistant")

    def read_retrieval(self, reading: Reading, span: RawSpan, attributes: Attributes) -> None:
        reading.input = asked(first(attributes, _INPUTS))[0]
        found = parsed(first(attributes, _OUTPUTS))
        reading.documents = documents_in(found, "documents") if type(found) is dict else ()


DIALECT = Haystack()
