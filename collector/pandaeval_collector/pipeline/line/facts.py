"""What a decided trace leaves behind for its session, beside its answer; and how that is stored."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import UnionType
from typing import Any, NotRequired, TypedDict, get_args, get_origin, get_type_hints

import orjson

_ALWAYS = object()
_FITS = 1 << 31


class SignalFacts(TypedDict):
    """The result of one of a trace's metrics for its session, as it is stored (see
    :class:`pandaeval_collector.scoring.metric.SessionSignal`)."""

    outcome: str
    value: float | None
    why: str | None
    said: NotRequired[str]
    lost: NotRequired[str]
    open: NotRequired[str]
    older: NotRequired[bool]


@dataclass(slots=True)
class TraceFacts:
    """The facts about a decided trace that its session needs. ``span_id``: of the root; ``captured``: whether there is
    an output; ``said``: whether the output says something; ``embedder``: by which one the answer can be compared,
    ``None`` where there is nothing to compare. ``evidence``: by metric, the digest of the trace and the others of its
    session with which it was evaluated last; ``None``: it was not compared yet. ``responses``, ``continues``: as in
    :class:`pandaeval_otel.model.Trace`. ``chained``: no span names the session, which follows from responses.
    ``pending``: the trace ended in a tool call, or a guardrail ended it. ``done``: the tools that change something, and
    did in this trace, and the calls of other traces that it answers. ``turns``: the number of turns in the trace;
    ``judged``: whether traces like it are judged at all. ``rootless``: the root was not seen to end. ``held``: the size
    of what the trace leaves for the grounding of later ones, at the end of the answer; ``unsettled``: the metrics that
    are evaluated with what earlier traces left. ``asked_again``: the user asked for a repeat of what was said;
    ``asked``: the content words of the question. ``utility``: it stands
    beside the conversation, so no session has it."""

    agent: str
    service: str
    environment: str | None
    span_id: str
    response_id: str
    sampled: bool
    fragment: bool
    digest: str
    revision: int
    crashed: bool
    captured: bool
    said: bool
    embedder: str | None
    signals: dict[str, SignalFacts]
    evidence: dict[str, str] | None = None
    responses: tuple[str, ...] = ()
    continues: str = ""
    chained: bool = False
    pending: bool = False
    done: tuple[str, ...] = ()
    turns: int = 1
    judged: bool = False
    rootless: bool = False
    held: int = 0
    unsettled: tuple[str, ...] = ()
    asked_again: bool = False
    asked: str = ""
    utility: bool = False

    @property
    def linked(self) -> bool:
        """Whether a session can follow from the responses that the trace gave or continues."""
        return bool(self.responses or self.continues)

    def pack(self) -> bytes:
        """Packs the facts as they are stored: those that every trace has, and what is not as it mostly is."""
        return orjson.dumps({name: value for name, usual in _stored() if (value := getattr(self, name)) != usual})


@cache
def _stored() -> list[tuple[str, Any]]:
    """Returns each fact with the value that is not stored. Sessions that were not compared yet are found by
    ``evidence``."""
    return [
        (fact.name, _ALWAYS if fact.default is MISSING or fact.name == "evidence" else fact.default)
        for fact in fields(TraceFacts)
    ]


@cache
def _types(facts: type) -> dict[str, tuple[type, ...]]:
    """Returns the classes that each field of ``facts`` may have."""
    return {name: _kinds(hint) for name, hint in get_type_hints(facts).items()}


def unpack(packed: bytes) -> TraceFacts:
    """Unpacks what :meth:`TraceFacts.pack` packed. Facts that are not known here, as a newer collector may send, are
    left out. Raises ``ValueError`` for what is no JSON, and ``TypeError`` where facts are missing that every trace
    has."""
    facts = {name: value for name, value in orjson.loads(packed).items() if name in _types(TraceFacts)}
    for name in ("responses", "done", "unsettled"):
        if name in facts:
            facts[name] = tuple(facts[name])
    return TraceFacts(**facts)


def _kinds(hint: Any) -> tuple[type, ...]:
    """Returns the classes that values of a type have."""
    if isinstance(hint, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _kinds(each))
    return (int, float) if hint is float else (get_origin(hint) or hint,)


def check(facts: TraceFacts) -> None:
    """Raises ``ValueError`` for facts that no collector writes: those that come from elsewhere are looked at before
    they are stored, as a session with one that cannot be read has no scores. Keys of signals that are not known here,
    as a newer version may write, are no error."""
    for name, kinds in _types(TraceFacts).items():
        value = getattr(facts, name)
        if not isinstance(value, kinds) or (type(value) is int and not 0 <= value < _FITS):
            raise ValueError(f"{name} is {value!r:.100}")
        if isinstance(value, tuple) and not all(isinstance(text, str) for text in value):
            raise ValueError(f"{name} holds more than texts")
    for name, signal in facts.signals.items():
        held: Any = signal
        if not isinstance(held, dict) or not {"outcome", "value", "why"} <= held.keys():
            raise ValueError(f"{name} lacks what each has")
        for key, kinds in _types(SignalFacts).items():
            if key in held and not isinstance(held[key], kinds):
                raise ValueError(f"{key} of {name} is {held[key]!r:.100}")
        if not 0.0 <= (signal.get("value") or 0.0) <= 1.0:
            raise ValueError(f"value of {name} is {signal.get('value')}")
