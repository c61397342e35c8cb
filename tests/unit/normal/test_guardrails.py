"""Guardrails that stopped a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import STATUS_ERROR, RawEvent, RawLog, RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import build_trace

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
CHAT = {"gen_ai.operation.name": "chat"}
REFUSED = {"gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "No."}]}]'}
ASKED = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where?"}]}])}


def span(number: int, name: str, attributes: dict[str, Any], parent: int = 0, **more: Any) -> RawSpan:
    start, end = more.pop("start", number * 10), more.pop("end", number * 10 + 5)
    return RawSpan(
        "t", f"{number:x}", f"{parent:x}" if parent else "", name, 1, start, end, attributes=attributes, **more
    )


def run(*inner: RawSpan, logs: tuple[RawLog, ...] = (), **root: Any) -> Trace:
    whole = span(1, "invoke_agent desk", {**AGENT, **ASKED, **root.pop("attributes", {})}, end=500, **root)
    trace = build_trace(Evidence((whole, *inner), logs, "digest"))
    assert trace is not None
    return trace


def failed(message: str, *inner: RawSpan) -> Trace:
    return run(*inner, status_code=STATUS_ERROR, status_message=message)


def guard(attributes: dict[str, Any], name: str = "execute_guardrail pii", **more: Any) -> RawSpan:
    return span(2, name, attributes, 1, **more)


@pytest.mark.parametrize(
    ("trace", "named", "why"),
    [
        (run(guard({"riffer.guardrail.action": "block", "riffer.tripwire.reason": "personal"})), "pii", "personal"),
        (run(attributes={"riffer.tripwire.guardrail": "pii", "riffer.tripwire.reason": "personal"}), "pii", "personal"),
        (
            run(guard({"openinference.span.kind": "GUARDRAIL", "output.value": '{"triggered": true}'}, "check")),
            "check",
            "",
        ),
        (
            run(guard({"openinference.span.kind": "GUARDRAIL", "output.value": '{"passed": false}'}, "check")),
            "check",
            "",
        ),
        (run(guard({"guardrail_name": "pres", "guardrail_status": "guardrail_intervened"}, "guardrail")), "pres", ""),
        (
            run(
                guard(
                    {
                        "gen_ai.operation.name": "apply_guardrail",
                        "gen_ai.guardian.name": "shield",
                        "gen_ai.security.decision.type": "deny",
                        "gen_ai.security.decision.reason": "jailbreak",
                    },
                    "apply_guardrail shield",
                )
            ),
            "shield",
            "jailbreak",
        ),
        (run(events=(RawEvent("guardrail.blocked", 30, {"guardrail.name": "pii", "reason": "card"}),)), "pii", "card"),
        (
            run(logs=(RawLog("t", "1", "guardrail.decision", 30, None, {"name": "pii", "decision": "deny"}),)),
            "pii",
            "",
        ),
        (
            failed("InputGuardrailTripwireTriggered: Guardrail PIIGuardrail triggered tripwire"),
            "PIIGuardrail",
            "InputGuardrailTripwireTriggered: Guardrail PIIGuardrail triggered tripwire",
        ),
        (failed("Violated guardrail policy"), "policy", "Violated guardrail policy"),
        (
            run(span(3, "chat m", {**CHAT, "gen_ai.response.finish_reasons": ["guardrail_intervened"]}, 1)),
            "content filter of the provider",
            "guardrail_intervened",
        ),
    ],
)
def test_guardrail_block_is_read_from_each_source(trace: Trace, named: str, why: str) -> None:
    assert trace.blocked == (named, why)


def test_usage_policy_error_of_the_provider_blocks_the_run() -> None:
    trace = failed("Error code: 400 - your prompt was flagged as potentially violating our usage policy.")
    assert trace.blocked is not None


@pytest.mark.parametrize(
    "trace",
    [
        run(),
        failed("429: too many requests"),
        failed("GuardrailError: guardrail pii failed to run: connection refused"),
        run(guard({"riffer.guardrail.action": "allow"})),
        run(guard({"riffer.guardrail.action": "redact", "triggered": False})),
        run(guard({"openinference.span.kind": "GUARDRAIL", "output.value": '{"triggered": false}'}, "check")),
        run(guard({"guardrail.action": "block"}), span(4, "chat m", CHAT, 1)),  # the run continued
        failed(
            "boom",
            guard({"guardrail.action": "block"}, start=20, end=90),
            span(4, "chat m", CHAT, 1, status_code=STATUS_ERROR, status_message="500: overloaded"),
        ),
        run(attributes={"action": "block"}),  # not an attribute of a guardrail
        run(guard({"guardrail.action": "block"}), attributes=REFUSED),
    ],
)
def test_run_that_no_guardrail_stopped_is_not_blocked(trace: Trace) -> None:
    assert trace.blocked is None
