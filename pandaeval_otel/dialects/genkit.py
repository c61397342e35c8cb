"""Reads Genkit: ``genkit:*``. Flows, models and tools are actions with a subtype; other spans are steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pandaeval_otel.dialects._kit import (
    ByKind,
    Messages,
    Object,
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
    one_message,
    run_kind,
    tool_definitions,
    usage_in,
)
from pandaeval_otel.model import Captured, Kind, Reasoning

_GO_TOOL = "tool.v2"
"""The subtype of tools in Go, whose results are wrapped."""
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
    name = "genkit"
    priority = 75
    roots = frozenset({_TYPE, _SUBTYPE})
    scopes = ("genkit-tracer",)
    any_keys = keys(session_ids="genkit:sessionId")
    tool_keys = keys(tool_name=_NAME, arguments=_INPUT)

    def kind_of(self) -> Kind | None:
        word = self.get(_TYPE)
        if type(word) is not str:
            return None
        if word == "action" or word not in _RUNS:
            word = str(self.get(_SUBTYPE) or word)
        if word in _RUNS:
            return run_kind(not self.span.parent_id)
        return _KINDS.get(word, Kind.STEP)

    def read_any(self) -> None:
        if self.get("genkit:state") == _FAILED:
            self.error = error_of(self.span) or _FAILED

    def read_workflow(self) -> None:
        given, made = self.parsed(_INPUT), self.parsed(_OUTPUT)
        if self.attributes[_TYPE] not in _RUNS and str(self.get(_SUBTYPE)) not in _RUNS:
            self.agent_name = self.name_in(_NAME)
        history = as_dict(given).get("messages")
        self.input = _messages(history, "user") if type(history) is list else asked(given)[0]
        self.output = _answer(made) or answered(made)[0]

    read_agent = read_workflow

    def read_llm(self) -> None:
        request, response = as_dict(self.parsed(_INPUT)), as_dict(self.parsed(_OUTPUT))
        # "googleai/gemini-x": the plugin, then the provider's own name.
        name = self.name_in(_NAME)
        self.request_model = name.partition("/")[2] or name
        self.input = _messages(request.get("messages"), "user")
        self.tools = tool_definitions(request.get("tools"))
        self.output = _answer(response)
        spent = as_dict(response.get("usage"))
        usage = usage_in(spent, "inputTokens", "outputTokens", "cachedContentTokens", thought="thoughtsTokens")
        if usage and (count(spent.get("totalTokens")) or 0) >= usage.input + usage.output + usage.reasoning:
            usage = replace(usage, output=usage.output + usage.reasoning)  # Gemini counts thoughts beside the answer
        self.usage = usage
        raw = response.get("raw")
        if type(raw) is dict:
            self.response_id, self.response_model = identifier(raw.get("id")), identifier(raw.get("model"))
            self.output = _with_thoughts(self.output, raw)

    def read_tool(self) -> None:
        made = self.parsed(_OUTPUT)
        if self.get(_SUBTYPE) == _GO_TOOL and type(made) is dict and made.keys() == {"output"}:
            made = made["output"]
        self.result = None if hidden(made) and _OUTPUT not in self.attributes else Captured(made)

    def read_retrieval(self) -> None:
        given = self.parsed(_INPUT)
        self.input = asked(given.get("query") if type(given) is dict else given)[0]
        self.documents = documents_in(self.get(_OUTPUT), "documents")


DIALECT = Genkit


def _answer(made: Any) -> Messages | None:
    answer = as_dict(made)
    candidates = answer.get("candidates")
    if type(answer.get("message")) is not dict and isinstance(candidates, (list, tuple)) and candidates:
        answer = as_dict(candidates[0])
    found = _messages([answer.get("message")], "assistant")
    return found and one_message(found[0].role, *found[0].parts, reason=identifier(answer.get("finishReason")))


def _with_thoughts(output: Messages | None, raw: Object) -> Messages | None:
    if not output or any(isinstance(part, Reasoning) for part in output[0].parts):
        return output
    response = model_output(raw)[0] or ()
    thoughts = [part for message in response for part in message.parts if isinstance(part, Reasoning)]
    return one_message(output[0].role, *thoughts, *output[0].parts, reason=output[0].finish_reason)


def _messages(items: Any, role: str) -> Messages | None:
    if not isinstance(items, (list, tuple)):
        return None
    messages = [item for item in items if type(item) is dict]
    if messages:
        return messages_of(messages, role)
    return None
