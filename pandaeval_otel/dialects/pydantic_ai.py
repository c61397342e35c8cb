"""Reads Pydantic AI formats 1 to 6: ``pydantic_ai.*`` and the bare names that preceded them.

Attribute names reveal the format. The conventions' dialect reads shared fields.
"""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base._json import as_text
from pandaeval_otel.base.recent import Recent
from pandaeval_otel.dialects._kit import (
    CUT,
    ByKind,
    Messages,
    Switch,
    count,
    hidden,
    keys,
    messages_in_event_list,
    messages_of,
    one_message,
    parsed,
    read_messages,
    split_run,
    system_of,
    tool_definitions,
    usage_in,
    with_answer,
    without_carriers,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Text, ToolDefinition

_AGENT_NAME, _MODEL_NAME = "agent_name", "model_name"
_MESSAGES, _MESSAGES_AS_EVENTS, _NEW = (
    "pydantic_ai.all_messages",
    "all_messages_events",
    "pydantic_ai.new_message_index",
)
_EVENTS, _PARAMETERS = "events", "model_request_parameters"
_USAGE = (
    "gen_ai.aggregated_usage.input_tokens",
    "gen_ai.aggregated_usage.output_tokens",
    "gen_ai.aggregated_usage.cache_read.input_tokens",
    "gen_ai.aggregated_usage.cache_creation.input_tokens",
    "gen_ai.aggregated_usage.details.reasoning_tokens",
)
_CARRIER = "final_result"
"""Name of the output tool; for several output types the type's name follows."""


class PydanticAI(ByKind):
    name = "pydantic_ai"
    priority = 80
    roots = frozenset({"pydantic_ai", _MESSAGES_AS_EVENTS, _PARAMETERS})
    scopes = ("pydantic-ai",)
    content_switch = Switch({"pydantic-ai": "instrument with InstrumentationSettings(include_content=True)"})
    agent_keys = keys(agent_name=_AGENT_NAME, request_model=_MODEL_NAME)
    tool_keys = keys(arguments="tool_arguments", result="tool_response")

    def kind_of(self) -> Kind | None:
        if _AGENT_NAME in self.attributes and _MODEL_NAME in self.attributes:
            return Kind.AGENT
        tool = self.get(semconv.TOOL_NAME)
        if tool is not None:
            title = self.get("logfire.msg") or self.span.name
            if _is_carrier(tool) or str(title).startswith("running output function"):
                return Kind.STEP
            return Kind.TOOL
        if _PARAMETERS in self.attributes or _EVENTS in self.attributes:
            return Kind.LLM
        if "tools" in self.attributes and self.span.name.startswith("running "):
            return Kind.STEP
        return None

    def read_agent(self) -> None:
        self.usage = usage_in(self.attributes, *_USAGE)
        messages, cut = self._transcript()
        result = self.get("final_result")
        answer = result if type(result) is str and not hidden(result) else None
        earlier = count(self.get(_NEW)) or 0
        if cut:
            self.notes = CUT
            # A transcript that was cut short has the question if this is the first run, and the cut came after it.
            first = next((index for index, message in enumerate(messages) if message.role == "assistant"), 0)
            if not earlier:
                self.input = messages[:first] or None
            if answer is not None:
                # A result as long as the transcript was cut as well.
                whole = self.get(_MESSAGES)
                limit = len(whole) if type(whole) is str else 0
                self.output = one_message("assistant", Text(answer), *[NOT_CAPTURED] * (0 < limit <= len(answer)))
            return
        question, made = split_run(messages, earlier)
        self.input = question or None
        self.system = system_of(question)
        # A run without a result failed or was deferred: its intermediate words are no answer.
        if answer is not None:
            self.output = with_answer(without_carriers(made, _is_carrier), answer)

    def read_llm(self) -> None:
        value = self.get(_PARAMETERS)
        self.tools, carriers = _offer(value if type(value) is str else as_text(value))
        if _EVENTS in self.attributes:
            self.input, self.output = messages_in_event_list(self.attributes[_EVENTS])
        elif carriers:
            self.output = messages_of(self.get(semconv.OUTPUT_MESSAGES), "assistant")
        if self.output and carriers:
            self.output = without_carriers(self.output, carriers.__contains__)

    def _transcript(self) -> tuple[Messages, bool]:
        whole = self.get(_MESSAGES)
        if isinstance(whole, (list, tuple)):
            return messages_of([parsed(item) for item in whole], "user") or (), False
        if _MESSAGES in self.attributes:
            messages, cut = read_messages(whole, "user")
            return messages or (), cut
        return messages_in_event_list(self.get(_MESSAGES_AS_EVENTS))[0] or (), False


DIALECT = PydanticAI


def _is_carrier(name: Any) -> bool:
    return type(name) is str and (name == _CARRIER or name.startswith(f"{_CARRIER}_"))


@Recent
def _offer(text: str) -> tuple[tuple[ToolDefinition, ...] | None, frozenset[str]]:
    found = parsed(text)
    if type(found) is not dict:
        return None, frozenset()
    carriers = tool_definitions(found.get("output_tools")) or ()
    tools = tool_definitions(found.get("function_tools")) if "function_tools" in found else None
    return tools, frozenset(tool.name for tool in carriers)
