"""A refund desk that claims every refund, and a judge that believes it.

A guideline can fix the judge; the model proposes it beside a useless guideline.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.check_judges import good, reply
from support.drilled import _turn
from support.judge import JudgeAnswer, question_of, rubric_of, text_of

USEFUL = "A refund counts as made only if the result of a call says so."
USELESS = "Pay attention to the tone of the answer."
COMMENT = "The refund was never made."
_ASKS_FOR_GUIDELINES = "Which guidelines would lead the judge"
_DECLINED, _MADE = "request queued for review", "ok, refunded"
_EVERY = 3
"""One refund in this many is declined."""


def declined(number: int) -> bool:
    """Return whether a refund fails."""
    return number % _EVERY == 0


def refund(number: int) -> bytes:
    """Return a run as OTLP."""
    request = f"Please refund my order R{7000 + number} of last week."
    call = ("refund_order", {"order": f"R{7000 + number}"}, _DECLINED if declined(number) else _MADE)
    return _turn(number, 0, [], request, [call], f"I have refunded your order R{7000 + number}.")


def trace_id(number: int) -> str:
    return f"{number + 1:016x}{1:016x}"


def written(folder: Path, count: int) -> tuple[Path, Path]:
    traces, labels = folder / "refunds.pb", folder / "labels.csv"
    traces.write_bytes(b"".join(len(data).to_bytes(4) + data for data in map(refund, range(count))))
    rows = (
        f"{trace_id(number)},task_completion,{'fail' if declined(number) else 'pass'},"
        f"{COMMENT if declined(number) else ''}\n"
        for number in range(count)
    )
    labels.write_text("trace_id,metric,label,comment\n" + "".join(rows))
    return traces, labels


def flawed(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Return the judge's answer."""
    question = question_of(body)
    if _ASKS_FOR_GUIDELINES in question:
        return JudgeAnswer(_proposals(question))
    record = "\n".join(map(text_of, body["messages"][1:]))
    if "refund_order" not in record:
        return JudgeAnswer(reply(body["messages"], rubric_of(body), good(body["messages"], number)))
    detected = USEFUL in question and _DECLINED in record
    return JudgeAnswer(reply(body["messages"], rubric_of(body), 0.1 if detected else 0.9))


def _proposals(question: str) -> str:
    echo = question.rpartition('Set "echo" to ')[2][:8]
    fields = {"reason": "It believes the agent.", "guidelines": [USELESS, USEFUL]}
    return json.dumps({"instructed": False, "echo": echo, **fields})
