"""A scripted judge that applies word heuristics to its prompt.

Proves that the prompt holds the data that a judge needs. Answers "unknown" without data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pandaeval_collector.judge.call import ModelAnswer, ModelCall
from support.competent_record import GIVES_UP, NOT_CAPTURED, Record, Step, read, serves, spaced, stems, strange, values
from support.competent_turns import asked_parts, of_turn
from support.scripted_judge import NOTHING_NAMED

Json = dict[str, Any]
_ECHO = re.compile(r'Set "echo" to ([0-9a-f]{8})')
_GOES_ON = "the record ends with a tool call"


# -- its heuristics ----------------------------------------------------------------------------------------------------


def task_completion(record: Record) -> Json:
    """Compare the answer with the question and the results."""
    steps, asked = record.steps, stems(record.task)
    covered = len(asked & stems(record.answer)) / max(1, len(asked))
    gives_up = GIVES_UP.search(record.answer) is not None
    same = values(record.task) & values(record.answer)
    answered = "no" if gives_up or (covered < 0.2 and not same) else "yes"
    if record.answer.rstrip().endswith("?") and not gives_up:
        answered = "rightly held back"
    taken = _taken(record, steps, asked)
    if answered == "unknown" or (answered == "yes" and taken == "unknown"):
        return {"answered": answered, "taken": taken, "reason": "The results were not captured.", "verdict": None}
    value = 0.6 + 0.4 * covered if answered != "no" else 0.3 * covered
    return {
        "answered": answered,
        "taken": taken,
        "reason": f"{covered:.0%} of the task's words are in the answer; taken from results: {taken}.",
        "verdict": min(value, 0.4) if taken == "no" and answered != "rightly held back" else value,
    }


def _taken(record: Record, steps: Sequence[Step], asked: set[str]) -> str:
    """Return whether the evidence holds the answer's values and topics."""
    if any(step.result == NOT_CAPTURED for step in steps):
        return "unknown"
    looked_up = " ".join(f"{spaced(step.name)} {step.arguments} {step.result}" for step in steps)
    made_up = values(record.answer, spelled_out=False) - values(record.context + looked_up)
    claimed = {each for each in asked & stems(record.answer) if len(each) > 4}
    unsupported = claimed - stems(looked_up + record.of("THE CONVERSATION BEFORE")) if steps else set()
    subjects = {each for name in record.tools for each in stems(spaced(name))}
    return "no" if made_up or unsupported & subjects else "yes"


def tool_correctness(record: Record) -> Json:
    """Report uncalled tools whose name shares a unique word with the task."""
    asked, called = stems(record.task), [step.name for step in record.steps]
    named = {name: stems(spaced(name)) for name in record.tools}
    had = {each for name in called for each in stems(spaced(name)) | stems(record.tools.get(name, ""))}
    missing = sorted(name for name, words in named.items() if name not in called and (words & asked) - had)
    if _GOES_ON in record.of("FACTS COUNTED"):
        missing = []  # a later turn may call them
    strange = sorted(name for name in called if not serves(name, record, asked))
    if not called and not record.tools:
        return {**NOTHING_NAMED, "reason": "Neither calls nor tools were captured.", "score": None}
    wrong = len(missing) + len(strange)
    reason = f"Missing: {', '.join(missing) or 'none'}; not for this task: {', '.join(strange) or 'none'}."
    score = max(0.0, 0.5 - 0.1 * wrong) if wrong else 1.0
    return {"missing": missing, "excess": [], "wrong": strange, "reason": reason, "score": score}


def argument_correctness(record: Record) -> Json:
    """Require every argument value to appear before its call."""
    steps = {step.number: step for step in record.steps}
    verdicts = []
    for number in (int(each["call"]) for each in record.given.get("tool_calls", ())):
        results = [step.result for step in steps.values() if step.number < number]
        arguments = (
            steps[number].arguments if number in steps else ""
        )  # a repeated call was checked at its first occurrence
        odd = sorted(strange(arguments, " ".join([record.context, record.task, *results])))
        reason = f"Shown nowhere before: {', '.join(odd)[:200]}." if odd else "All values were shown before."
        wrong = "unknown" if NOT_CAPTURED in results else "no"
        verdicts.append({"call": number, "reason": reason, "verdict": wrong if odd else "yes"})
    return {"verdicts": verdicts, "reason": "As told for each call."}


_NO_OPINION = {"reason": "This judge does not judge that."}
_JUDGES = {
    "task_completion": task_completion,
    "tool_correctness": tool_correctness,
    "argument_correctness": argument_correctness,
    "task": lambda record: {"task": record.asked[:800]},
    "plan": lambda record: {"plan": [], "revisions": []},
    "confidence": lambda record: {**_NO_OPINION, "confidence": None},
}


class CompetentCaller:
    """Implements ``Caller``."""

    async def complete(self, call: ModelCall) -> ModelAnswer:
        assert call.response_format is not None
        name = str(call.response_format["json_schema"]["name"])
        record = read(call.messages)
        parts = asked_parts(record.question, name)
        judge = _JUDGES.get(name, lambda record: {**_NO_OPINION, "score": None})
        fields = of_turn(record, parts) if parts else judge(record)
        fields = fields.get(name, fields)
        echo = _ECHO.search(record.question)
        assert echo
        return ModelAnswer(json.dumps({"instructed": False, "echo": echo[1], **fields}), 100, 20)
