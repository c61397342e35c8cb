"""Reads Haystack 2 and 3: pipelines, components and agents under ``haystack.*``."""

from __future__ import annotations

from pandaeval_otel.dialects._kit import (
    CUT,
    ByKind,
    Object,
    Switch,
    answered,
    as_dict,
    as_list,
    asked,
    dicts_in,
    documents_in,
    give_error,
    identifier,
    keys,
    kinds,
    messages_of,
    parsed,
    put_output,
    read_sides,
    said_by_user,
    split_run,
    system_of,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind

_KINDS = kinds(
    workflow=("haystack.pipeline.run", "haystack.async_pipeline.run"),
    agent="haystack.agent.run",
    llm="haystack.agent.step.llm",
    tool="haystack.agent.step.tool",
)
_SPENT, _MADE = ("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")
_CACHED, _THOUGHT = "prompt_tokens_details.cached_tokens", "completion_tokens_details.reasoning_tokens"
_COMPONENTS = kinds(llm="Generator", retrieval="Retriever", embedding="Embedder")
"""Kinds of components by the ends of their classes' names."""
_PLACES = ("haystack.agent.step.llm", "haystack.agent", "haystack.component")
_INPUTS = (*(f"{place}.input" for place in _PLACES), "haystack.pipeline.input_data")
_OUTPUTS = (*(f"{place}.output" for place in _PLACES), "haystack.pipeline.output_data")


class Haystack(ByKind):
    name = "haystack"
    priority = 75
    roots = frozenset({"haystack"})
    names = ("haystack.",)
    content_switch = Switch({"haystack": "set HAYSTACK_CONTENT_TRACING_ENABLED=true"})
    agent_keys = keys(tools="haystack.agent.tools")
    retrieval_keys = keys(run_input=_INPUTS)
    tool_keys = keys(
        tool_name="haystack.tool.name",
        arguments="haystack.agent.step.tool.input",
        result="haystack.agent.step.tool.output",
    )

    def kind_of(self) -> Kind | None:
        if self.span.name != "haystack.component.run":
            if self.span.name.startswith("haystack."):
                return _KINDS.get(self.span.name, Kind.STEP)
            return None
        component = str(self.get("haystack.component.type") or "")
        return next((kind for suffix, kind in _COMPONENTS.items() if component.endswith(suffix)), Kind.STEP)

    def read_workflow(self) -> None:
        read_sides(self, self.first(*_INPUTS), self.first(*_OUTPUTS))

    def read_llm(self) -> None:
        given, made = parsed(self.first(*_INPUTS)), parsed(self.first(*_OUTPUTS))
        if type(given) is dict:
            self.input = messages_of(given.get("messages"), "user") or said_by_user(given.get("prompt"))
            self.tools = tool_definitions(given.get("tools"))
        elif given is not None:
            self.input, self.notes = messages_of(given, "user"), CUT
        if type(made) is dict:
            self.output = messages_of(made.get("replies"), "assistant")
            self._read_meta(made)
        elif made is not None:
            self.output, self.notes = messages_of(made, "assistant"), CUT

    def read_tool(self) -> None:
        if self.get("haystack.tool.error") in (True, "true", "True"):
            value = self.result and self.result.value
            give_error(self, value.get("error") if type(value) is dict else value)

    def read_agent(self) -> None:
        given, made = parsed(self.first(*_INPUTS)), parsed(self.first(*_OUTPUTS))
        self.input = messages_of(given.get("messages"), "user") if type(given) is dict else asked(given)[0]
        if type(made) is not dict:
            put_output(self, answered(made))
            return
        whole = messages_of(made.get("messages"), "assistant")
        if whole:
            question, self.output = split_run(whole)
            self.system = system_of(question)
        if not self.output and made.get("last_message") is not None:
            self.output = messages_of([made["last_message"]], "assistant")

    def read_retrieval(self) -> None:
        self.documents = documents_in(as_dict(parsed(self.first(*_OUTPUTS))), "documents")

    def _read_meta(self, made: Object) -> None:
        metas = as_list(made.get("meta")) or [reply.get("meta") for reply in dicts_in(made.get("replies"))]
        meta = next((meta for meta in metas if type(meta) is dict), {})
        self.response_model = identifier(meta.get("model"))
        usage = meta.get("usage")
        if type(usage) is not dict:
            return
        flat = dict(usage)
        for name, details in usage.items():
            flat.update((f"{name}.{key}", value) for key, value in as_dict(details).items())
        self.usage = usage_in(flat, _SPENT, _MADE, _CACHED, thought=_THOUGHT)


DIALECT = Haystack
