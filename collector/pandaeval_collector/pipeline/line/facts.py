"""What a decided trace leaves behind for its session, beside its answer; and how that is stored."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

_ALWAYS = object()
_Number = Annotated[int, Field(ge=0, lt=1 << 31)]
_Share = Annotated[float, Field(ge=0, le=1)]


class SignalFacts(TypedDict):
    """The result of one of a trace's metrics for its session, as it is stored (see
    :class:`pandaeval_collector.scoring.metric.SessionSignal`)."""

    outcome: str
    value: _Share | None
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
    revision: _Number
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
    turns: _Number = 1
    judged: bool = False
    rootless: bool = False
    held: _Number = 0
    unsettled: tuple[str, ...] = ()
    asked_again: bool = False
    asked: str = ""
    utility: bool = False

    @property
    def linked(self) -> bool:
        """Whether a session can follow from the responses that the trace gave or continues."""
        return bool(self.responses or self.continues)

    def pack(self) -> bytes:
        """Pack the facts as they are stored: those that every trace has, and what is not as it mostly is."""
        return orjson.dumps({name: value for name, usual in _stored() if (value := getattr(self, name)) != usual})


@cache
def _stored() -> list[tuple[str, Any]]:
    """Return each fact with the value that is not stored. Sessions that were not compared yet are found by
    ``evidence``."""
    return [
        (fact.name, _ALWAYS if fact.default is MISSING or fact.name == "evidence" else fact.default)
        for fact in fields(TraceFacts)
    ]


def unpack(packed: bytes) -> TraceFacts:
    """Unpack what :meth:`TraceFacts.pack` packed. Facts that are not known here, as a newer collector may send, are
    left out. Raises ``ValueError`` for what is no JSON, and ``TypeError`` where facts are missing that every trace
    has."""
    facts = {name: value for name, value in orjson.loads(packed).items() if name in TraceFacts.__slots__}
    for name in ("responses", "done", "unsettled"):
        if name in facts:
            facts[name] = tuple(facts[name])
    return TraceFacts(**facts)


@cache
def _checker() -> TypeAdapter[TraceFacts]:
    return TypeAdapter(TraceFacts)


def check(packed: bytes) -> None:
    """Raise ``ValueError`` for packed facts that no collector writes: a session with facts that cannot be read has no
    scores. Ignores unknown keys, as a newer version may write."""
    _checker().validate_json(packed, strict=True)
