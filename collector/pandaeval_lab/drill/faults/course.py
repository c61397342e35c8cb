"""Faults of the family ``course``: the run goes wrong as a whole."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from pandaeval_collector.analysis.rules._code_runs import code_runs, observed, written
from pandaeval_lab.drill.edits import AnswerEdit, CustomEdit, repeated, text_change
from pandaeval_lab.drill.fault import NotApplicableError, Subject, family
from pandaeval_lab.drill.faults._places import chosen, chosen_argument, with_arguments
from pandaeval_lab.drill.raw import RawTrace
from pandaeval_otel.model import Kind, ToolCall, Trace

_ASSIGNED = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*=(?!=)", re.MULTILINE)
_ERROR = (
    "Error:\nCode execution failed at line '{line}' due to: ConnectionError: the service did not answer\n"
    "Now let's retry: take care not to repeat previous errors!"
)
_ERRORS = (
    "Traceback (most recent call last):\n"
    '  File "/app/agent.py", line 88, in run\n'
    "    reply = result['text']\n"
    "KeyError: 'text'",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests', 'type': 'requests'}}",
    "TypeError: Cannot read properties of undefined (reading 'content')",
    "Agent stopped due to max iterations.",
)
_APOLOGIES = (
    "I apologize, but I encountered an error: Recursion limit of 25 reached without hitting a stop condition.",
    "I'm sorry, but I ran into an issue: Error code: 429 - rate limit reached. Please try again later.",
    "Sorry, an unexpected error occurred: 'NoneType' object has no attribute 'get'",
)
_STOPS = frozenset({"stop", "end_turn", "completed", "STOP"})
"""Finish reasons of a whole answer."""
_WORDS = ("please", "now", "again", "details", "full", "all", "info")


def apology_for_error(subject: Subject, rng: Random) -> AnswerEdit:
    """The user gets an apology with an error text as answer."""
    text = rng.choice(_APOLOGIES) if subject.answer else ""
    return AnswerEdit(text, text)


def crash(subject: Subject, rng: Random) -> CustomEdit:
    """The run ends in an error, without an answer."""
    without = text_change(subject.answer, "")
    error = rng.choice(("ConnectionError: reset by peer", "TimeoutError: the model did not answer"))

    def change(raw: RawTrace, trace: Trace) -> None:
        raw.rewrite(without)
        end = max(span.end_time_unix_nano for span in raw.spans())
        for span in raw.spans():
            if span.span_id.hex() in raw.touched or span.end_time_unix_nano == end:
                span.status.code = 2  # type: ignore[assignment]
                span.status.message = error
                raw.touched.add(span.span_id.hex())

    return CustomEdit(change, lambda before, after: after.error is not None and not after.output, error)


def earlier_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer is an earlier one of the session, word for word."""
    found = [
        trace.output for trace in subject.earlier if (trace.output or "").strip() not in ("", subject.answer.strip())
    ]
    if not found:
        raise NotApplicableError("the session has no other answer before")
    text = rng.choice(found) or ""
    return AnswerEdit(text, f"an earlier answer again: {text[:60]}")


def empty_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The run ends with an empty answer."""
    return AnswerEdit(subject.answer[:0], "answer emptied")


def exact_loop(subject: Subject, rng: Random) -> CustomEdit:
    """The same call is made 3 to 8 times, with the same result."""
    index = chosen(subject, rng, "call with arguments", with_arguments)
    rounds = rng.randint(3, 8)
    what = f"{subject.trace.tool_calls[index].name} made {rounds} times with the same arguments and result"
    return repeated(subject.trace, [index], rounds - 1, what)


def failing_code(subject: Subject, rng: Random) -> CustomEdit:
    """Code that fails is run 3 to 6 times, edited where nothing depends on it."""
    steps = []
    for span in subject.trace.spans:
        if span.kind is Kind.LLM and span.output and span.input:
            codes, seen = written(span.output), observed(span.input)
            if codes and codes[0].strip() and seen:
                steps.append((span, codes[0], seen))
    if not steps:
        raise NotApplicableError("no model wrote code after it had observed what other code did")
    span, code, seen = rng.choice(steps)
    times = rng.randint(3, 6)
    error = _ERROR.format(line=code.strip().splitlines()[0])

    def again(number: int, held: Any) -> Any:
        made = text_change(seen, error)(held)
        if number == times:
            return made
        return text_change(code, _edited(code, number))(made)

    def change(raw: RawTrace, trace: Trace) -> None:
        raw.repeat({span.span_id}, times, again)
        raw.rewrite(text_change(code, _edited(code, 0)), only={span.span_id})

    def test(before: Trace, after: Trace) -> bool:
        runs = code_runs(after)
        failed = sum(run.result.startswith("Error:") and error in run.result for run in runs)
        return failed == times and after.output == before.output

    return CustomEdit(change, test, f"code run {times} times with the same error")


def _edited(code: str, number: int) -> str:
    name = _ASSIGNED.search(code)
    renamed = re.sub(rf"(?<!['\"])\b{name[1]}\b(?!['\"])", f"{name[1]}_{number}", code) if name and number else code
    return f'print("attempt {number + 1}")\n{renamed}'


def cut_answer(subject: Subject, rng: Random) -> CustomEdit:
    """The answer was cut off at the model's token limit."""
    half = half_answer(subject, rng)
    shorter = text_change(subject.answer, half.text)
    speaking = {
        span.span_id
        for span in subject.trace.spans
        if span.output and any(subject.answer.strip() == message.text.strip() for message in span.output)
    }
    if not speaking:
        raise NotApplicableError("no span shows the answer")

    def change(raw: RawTrace, trace: Trace) -> None:
        raw.rewrite(shorter)
        raw.rewrite(lambda held: "length" if isinstance(held, str) and held in _STOPS else held, only=speaking)

    return CustomEdit(change, lambda before, after: bool(after.truncated) and half.stands(before, after), half.what)


def half_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer breaks off in the middle."""
    words = subject.answer.split(" ")
    if len(words) < 8:
        raise NotApplicableError("the answer is too short to break off")
    kept = words[: rng.randint(len(words) // 3, len(words) // 2)]
    text = " ".join(kept).rstrip(" .!?:;,")
    return AnswerEdit(text, f"broken off after {len(kept)} of {len(words)} words")


def other_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer is that of a run of another session."""
    others = [each for each in subject.others if each.strip() and each.strip() != subject.answer.strip()]
    if not others:
        raise NotApplicableError("no other session has an answer")
    text = rng.choice(others)
    return AnswerEdit(text, f"answer of another session: {text[:60]}")


def ping_pong(subject: Subject, rng: Random) -> CustomEdit:
    """Two calls take turns 3 to 6 times, with the same results."""
    calls = subject.trace.tool_calls
    pairs = [at for at in range(len(calls) - 1) if calls[at].name != calls[at + 1].name]
    if not pairs:
        raise NotApplicableError("no two tools are called one after the other")
    at, rounds = rng.choice(pairs), rng.randint(3, 6)
    what = f"{calls[at].name} and {calls[at + 1].name} take turns {rounds} times"
    return repeated(subject.trace, [at, at + 1], rounds - 1, what)


def raw_error_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer becomes a raw error text."""
    text = rng.choice(_ERRORS) if subject.answer else ""
    return AnswerEdit(text, text.splitlines()[-1])


def reworded_loop(subject: Subject, rng: Random) -> CustomEdit:
    """The same call is made 3 to 8 times in other words, with the same result."""

    def fits(call: ToolCall, key: str) -> bool:
        return isinstance(call.arguments[key], str) and " " in call.arguments[key].strip()

    index, call, key = chosen_argument(subject, rng, "call with words as argument", fits)
    rounds = rng.randint(3, 8)

    def reword(arguments: dict[str, Any], number: int) -> dict[str, Any]:
        return {**arguments, key: f"{arguments[key]} {_WORDS[number - 1]}"}

    return repeated(subject.trace, [index], rounds - 1, f"{call.name} made {rounds} times in other words", reword)


FAULTS = family(
    "course",
    apology_for_error,
    crash,
    cut_answer,
    earlier_answer,
    empty_answer,
    exact_loop,
    failing_code,
    half_answer,
    other_answer,
    ping_pong,
    raw_error_answer,
    reworded_loop,
)
