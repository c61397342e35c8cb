"""Reads the Vercel AI SDK: ``ai.*`` (3 to 6, and 7 with its legacy integration), and 7's additions to the conventions.

An outer ``generateText`` or ``streamText`` span contains a span per model or tool call. Its usage may be a sum.
"""

from __future__ import annotations

from dataclasses import replace

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    Switch,
    dicts_in,
    first,
    hidden,
    identifier,
    keys,
    messages_of,
    one_message,
    one_session,
    put_input,
    read_messages,
    read_metadata,
    request_of,
    system_of,
    system_text,
    text_part,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Kind, Message, Part, Reasoning, ToolRequest, ToolResponse

_SCOPE_7 = "gen_ai"
_RUNS = frozenset({"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject", "ai.streamUI"})
_CALLS = (".doGenerate", ".doStream")
_EMBEDS = ("ai.embed", "ai.embedMany")
_METADATA, _CONTEXT = "ai.telemetry.metadata.", "ai.settings.context."
_PROMPT, _MESSAGES, _TOOLS = "ai.prompt", "ai.prompt.messages", "ai.prompt.tools"
# Until release 3.4 answers stood below "ai.result".
_SPENT = ("ai.usage.inputTokens", "ai.usage.promptTokens", "ai.usage.tokens")
_MADE = ("ai.usage.outputTokens", "ai.usage.completionTokens")
_CACHE_READ = ("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens")
_CACHE_WRITE = ("ai.usage.inputTokenDetails.cacheWriteTokens",)
_THOUGHT = ("ai.usage.outputTokenDetails.reasoningTokens", "ai.usage.reasoningTokens")
_RUN_KEYS = keys(agent_name="ai.telemetry.functionId")
_MODEL_KEYS = keys(request_model="ai.model.id", response_model="ai.response.model")


class VercelAI(ByKind):
    name = "vercel_ai"
    priority = 75
    roots = frozenset({"ai"})
    scopes = (_SCOPE_7,)
    names = ("ai.",)
    content_switch = Switch(
        {"ai": "pass experimental_telemetry: { isEnabled: true, recordInputs: true, recordOutputs: true }"}
    )
    reads_any_kind = True
    llm_keys = keys(response_id="ai.response.id")
    tool_keys = keys(
        tool_name="ai.toolCall.name",
        tool_call_id="ai.toolCall.id",
        arguments="ai.toolCall.args",
        result="ai.toolCall.result",
    )

    def kind_of(self) -> Kind | None:
        operation = self.get("ai.operationId")
        if type(operation) is not str:
            # Release 7 states the conventions' operation; a span that lost its attributes still has its name.
            operation = self.span.name.partition(" ")[0] if semconv.OPERATION not in self.attributes else ""
        if not operation.startswith("ai."):
            return None
        if operation in _RUNS:
            return Kind.AGENT
        if operation == "ai.toolCall":
            return Kind.TOOL
        if operation.startswith(_EMBEDS):
            return Kind.EMBEDDING
        if operation.endswith(_CALLS):
            return Kind.LLM
        return Kind.STEP

    def read_any(self) -> None:
        for prefix in (_METADATA, _CONTEXT):
            read_metadata(self, self.attributes, prefix)
            self.session_ids = self.session_ids or one_session(self.get(f"{prefix}chatId"))
        if self.kind is None:
            return
        self.fill(_RUN_KEYS)
        if self.kind is not Kind.TOOL:
            self.fill(_MODEL_KEYS)
            self.usage = usage_in(self.attributes, _SPENT, _MADE, _CACHE_READ, _CACHE_WRITE, _THOUGHT)

    def read_unstated(self) -> None:
        if self.span.scope.name == _SCOPE_7 and self.get(semconv.OPERATION) == "invoke_agent":
            self.output = _in_order(messages_of(self.get(semconv.OUTPUT_MESSAGES), "assistant"))

    def read_agent(self) -> None:
        # {"system": …, "prompt": text or messages} or {"system": …, "messages": […]}
        prompt = None if _MESSAGES in self.attributes else self.parsed(_PROMPT)
        if type(prompt) is dict:
            messages = first(prompt, ("messages", "prompt"))
            self.system = system_text(prompt.get("system"))
            self.input = messages_of(messages, "user") if messages != "" else ()
        else:
            put_input(self, read_messages(self.first(_MESSAGES, _PROMPT), "user"))
        self.system = self.system or system_of(self.input)
        self.output = self._answer()
        self.tools = tool_definitions(self.get(_TOOLS))

    read_llm = read_agent

    def _answer(self) -> Messages | None:
        thought = self.get("ai.response.reasoning")
        text = self.first("ai.response.text", "ai.result.text")
        structured = self.first("ai.response.object", "ai.result.object")
        calls = self.first("ai.response.toolCalls", "ai.result.toolCalls")
        parts: list[Part] = []
        if type(thought) is str and thought and not hidden(thought):
            parts.append(Reasoning(thought))
        if type(text) is str and not hidden(text) and (text or calls is None):
            parts.append(text_part(text))
        if type(structured) is str and not hidden(structured):
            parts.append(text_part(structured))
        requests = [request_of(call) for call in dicts_in(calls)]
        reason = identifier(self.first("ai.response.finishReason", "ai.finishReason"))
        if reason == "stop" and parts:
            # The model waits for none of these calls: its provider ran them, before the words.
            return one_message(
                "assistant", *[replace(request, hosted=True) for request in requests], *parts, reason=reason
            )
        return one_message("assistant", *parts, *requests, reason=reason)


DIALECT = VercelAI


def _in_order(output: Messages | None) -> Messages | None:
    if not output or len(output) != 1 or "tool" in output[0].finish_reason or not output[0].text:
        return None
    calls = output[0].tool_requests
    if not calls:
        return None
    answer = [part for part in output[0].parts if type(part) not in (ToolRequest, ToolResponse)]
    results = one_message("tool", *output[0].tool_responses) or ()
    return (Message("assistant", calls), *results, Message("assistant", tuple(answer), output[0].finish_reason))
