"""Faults of the family ``course``: the run as a whole fails."""

from __future__ import annotations

from random import Random

from pandaeval_lab.drill.edits import AnswerEdit, CustomEdit, repeated, text_change
from pandaeval_lab.drill.fault import NotApplicableError, Subject, family
from pandaeval_lab.drill.faults._places import chosen, with_arguments
from pandaeval_lab.drill.raw import RawTrace
from pandaeval_otel.model import Trace

_ERRORS = (
    "Traceback (most recent call last):\n"
    '  File "/app/agent.py", line 88, in run\n'
    "    reply = result['text']\n"
    "KeyError: 'text'",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests', 'type': 'requests'}}",
    "TypeError: Cannot read properties of undefined (reading 'content')",
    "Agent stopped due to max iterations.",
)


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


def empty_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The run ends with an empty answer."""
    return AnswerEdit(subject.answer[:0], "answer emptied")


def exact_loop(subject: Subject, rng: Random) -> CustomEdit:
    """The same call is made 3 to 8 times, with the same result."""
    index = chosen(subject, rng, "call with arguments", with_arguments)
    rounds = rng.randint(3, 8)
    what = f"{subject.trace.tool_calls[index].name} made {rounds} times with the same arguments and result"
    return repeated(subject.trace, index, rounds - 1, what)


def half_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer ends in the middle."""
    words = subject.answer.split(" ")
    if len(words) < 8:
        raise NotApplicableError("the answer is too short to break off")
    kept = words[: rng.randint(len(words) // 3, len(words) // 2)]
    text = " ".join(kept).rstrip(" .!?:;,")
    return AnswerEdit(text, f"broken off after {len(kept)} of {len(words)} words")


def other_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer is the answer of a run in another session."""
    others = [each for each in subject.others if each.strip() and each.strip() != subject.answer.strip()]
    if not others:
        raise NotApplicableError("no other session has an answer")
    text = rng.choice(others)
    return AnswerEdit(text, f"answer of another session: {text[:60]}")


def raw_error_answer(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer becomes a raw error text."""
    text = rng.choice(_ERRORS) if subject.answer else ""
    return AnswerEdit(text, text.splitlines()[-1])


FAULTS = family("course", crash, empty_answer, exact_loop, half_answer, other_answer, raw_error_answer)
