"""Reads Gemini CLI: ``gen_ai.input.messages`` and ``gen_ai.output.messages`` with the objects of its own code."""

from __future__ import annotations

from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    CUT,
    ByKind,
    Reading,
    Switch,
    answered,
    as_dict,
    asked,
    dicts_in,
    give_error,
    hidden,
    parsed,
    parts_in,
    read_messages,
)
from pandaeval_otel.model import Captured, Kind, ToolResponse

_CUT = "...[TRUNCATED: original length "


class GeminiCLI(ByKind):
    name = "gemini_cli"
    priority = 70
    scopes = ("gemini-cli",)
    content_switch = Switch(
        {
            "gemini-cli": "set telemetry.traces to true in .gemini/settings.json "
            "(GEMINI_TELEMETRY_TRACES_ENABLED=true)",
            "qwen-code": "set telemetry.includeSensitiveSpanAttributes to true in .qwen/settings.json",
        }
    )

    def read_span(self) -> Reading | None:
        operation = self.get(semconv.OPERATION)
        given, cut_in = self._content(semconv.INPUT_MESSAGES)
        made, cut_out = self._content(semconv.OUTPUT_MESSAGES)
        self.notes = CUT if cut_in or cut_out else ()
        if operation == "tool_call":
            self.kind = Kind.TOOL
            self.tool_call_id = self.name_in("gen_ai.tool.call_id")
            self._read_tool(parsed(given), parsed(made))
        elif operation == "schedule_tool_calls":
            self.kind = Kind.OTHER  # the calls are below it, and the model's next call has them in its history
        elif operation == "agent_call":
            self.kind = Kind.AGENT
            # The part of a subagent's result that is for the model rather than for the screen.
            result = parsed(made)
            self.input = asked(given)[0]
            self.output = answered(result.get("llmContent", result) if type(result) is dict else result)[0]
        else:
            self.input = read_messages(given, "user")[0] if cut_in else None
            self.output = read_messages(made, "assistant")[0] if cut_out else None
        return self.stated()

    def _content(self, key: str) -> tuple[Any, bool]:
        value = self.get(key)
        if type(value) is str and value.endswith("]") and _CUT in value[-80:]:
            return value[: value.rindex(_CUT)], True
        return value, False

    def _read_tool(self, request: Any, call: Any) -> None:
        arguments = as_dict(request).get("args")
        if not hidden(arguments):
            self.arguments = Captured(parsed(arguments))
        response = as_dict(call).get("response")
        if type(response) is not dict:
            return
        blocks = dicts_in(response.get("responseParts"))
        results = [part.result for block in blocks for part in parts_in(block) if isinstance(part, ToolResponse)]
        shown = results[0] if results else response.get("resultDisplay")
        if shown is not None:
            self.result = Captured(shown)
        error = response.get("error")
        if error or call.get("status") == "error":
            message = error.get("message") if type(error) is dict else error
            give_error(self, message or shown)


DIALECT = GeminiCLI
