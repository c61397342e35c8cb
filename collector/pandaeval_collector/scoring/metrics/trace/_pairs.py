"""Pairs a turn's message with its answer, as far as both name a subject; a message that names none goes with the turn
before it."""

from __future__ import annotations

from dataclasses import dataclass

from pandaeval_collector.analysis.embedding.plain import plain
from pandaeval_collector.analysis.stats.topic import have_subjects
from pandaeval_collector.base.untrusted.silence import say_something
from pandaeval_otel.model import Kind, Message, Trace, Turn

MOST_BEFORE = 1000
"""Characters of each text before that are read: of a message the first, of an answer the last."""


@dataclass(slots=True)
class Pair:
    """What was asked and what was answered, as texts for an embedder. ``with_before``: the turn before stands in front
    of the message."""

    asked: str
    answered: str
    with_before: bool = False


def spoken(turn: Turn) -> bool:
    """Whether both sides of a turn say anything."""
    return say_something(turn.user, turn.assistant)


def pairs(trace: Trace) -> list[Pair]:
    """The trace's turns in order, without those in which a side says nothing, or names no subject."""
    found = []
    for place, turn in enumerate(trace.turns):
        if spoken(turn):
            pair = _pair(trace, place, plain(turn.user or ""), plain(turn.assistant or ""))
            if pair is not None:
                found.append(pair)
    return found


def _pair(trace: Trace, place: int, message: str, answer: str) -> Pair | None:
    names, says = have_subjects(message, answer)
    if not says:
        return None
    if names:
        return Pair(message, answer)
    before = _turn_before(trace, place)
    return Pair(f"{before}\n{message}", answer, True) if before else None


def _turn_before(trace: Trace, place: int) -> str:
    """Message and answer of the turn before, "" where none was captured: of this trace, else of the history that its
    first model call was given."""
    if place:
        turn = trace.turns[place - 1]
        return _joined(turn.user or "", turn.assistant or "")
    for span in trace.spans:
        if span.input and span.kind is not Kind.TOOL:
            return _last_turn(span.input)
    return ""


def _last_turn(messages: tuple[Message, ...]) -> str:
    """The last message of the user that an answer follows, and the last of those answers, before the user's newest."""
    asked = answered = ""
    newest = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
    for message in messages[:newest]:
        if message.role == "user" and message.text:
            asked, answered = message.text, ""
        elif message.role == "assistant" and message.text:
            answered = message.text
    return _joined(asked, answered)


def _joined(asked: str, answered: str) -> str:
    return "\n".join(text for text in (plain(asked)[:MOST_BEFORE], plain(answered)[-MOST_BEFORE:]) if text)
