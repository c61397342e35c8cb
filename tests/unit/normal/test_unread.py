"""A note names text attributes that no dialect reads."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_otel.model import Trace
from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.evidence import Evidence
from pandaeval_otel.normal.trace import build_trace
from tests.support.builders import MS

ASKED, SAID = "What does it cost?", "It costs 12 EUR."


def trace(*attributes: dict[str, Any], **fields: Any) -> Trace:
    spans = tuple(
        RawSpan("a" * 32, f"{at:016x}", f"{at - 1:016x}" * (at > 1), "s", at * MS, 99 * MS, attributes=of, **fields)
        for at, of in enumerate(attributes, 1)
    )
    found = build_trace(Evidence(spans, (), "d"))
    assert found is not None
    return found


def notes(*attributes: dict[str, Any], **fields: Any) -> list[str]:
    return [note for note in trace(*attributes, **fields).notes if "no dialect" in note]


@pytest.mark.parametrize(
    ("attributes", "keys"),
    [
        ({"acme.input": ASKED, "acme.output": SAID}, "acme.input, acme.output"),
        ({"acme.output": SAID, "acme.input": ASKED}, "acme.input, acme.output"),
        ({"vendor:request": ASKED}, "vendor:request"),
        ({"agent_message": SAID}, "agent_message"),
        ({"acme.llm.transcript": SAID, "acme.model": "gpt-x"}, "acme.llm.transcript"),
        ({"acme.prompt": ASKED, "http.request.body": ASKED}, "acme.prompt"),
    ],
)
def test_note_names_the_unread_keys(attributes: dict[str, Any], keys: str) -> None:
    assert notes(attributes) == [f"1 span carries text under keys that no dialect reads: {keys}"]


def test_note_counts_spans_and_shows_only_a_few_keys() -> None:
    many = {f"acme.{name}.text": ASKED for name in "abcdef"}
    (note,) = notes(many, {"acme.output": SAID})
    assert note.startswith("2 spans carry text under keys that no dialect reads: acme.a.text, ")
    assert note.endswith(", …")


CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": f'[{{"role": "user", "content": "{ASKED}"}}]',
    "gen_ai.output.messages": f'[{{"role": "assistant", "content": "{SAID}"}}]',
}


@pytest.mark.parametrize(
    "attributes",
    [
        {"http.request.body": ASKED, "db.query.text": "select a from b"},
        {"acme.output": "short"},
        {"acme.output": 12},
        {"acme.description": ASKED},
        {"url.query": "a = b and c"},
    ],
)
def test_attributes_without_agent_text_give_no_note(attributes: dict[str, Any]) -> None:
    assert notes(attributes) == []


def test_trace_with_question_and_answer_has_no_note() -> None:
    assert notes({**CHAT, "acme.output": SAID}) == []
    assert notes(CHAT, {"acme.output": SAID}) == []


def test_failed_run_has_no_note() -> None:
    assert notes({"gen_ai.operation.name": "invoke_agent", "acme.output": SAID}, status_code=2) == []
