"""A decided trace's stored data for its session, without the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, NotRequired

import orjson
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from pandaeval_otel.model import Trace

_ALWAYS = object()
_UNKNOWN_SERVICE = "unknown_service"
_MOST, _MOST_CHARS = 32, 200
"""Maximum services and links read from a trace, and characters of a service."""
_Number = Annotated[int, Field(ge=0, lt=1 << 31)]
_Share = Annotated[float, Field(ge=0, le=1)]


class SignalFacts(TypedDict):
    outcome: str
    value: _Share | None
    why: str | None
    said: NotRequired[str]
    lost: NotRequired[str]
    open: NotRequired[str]
    older: NotRequired[bool]
    dismissed: NotRequired[bool]


@dataclass(slots=True)
class TraceFacts:
    """Facts about a decided trace for its session.

    ``captured``: has an output. ``said``: it has content. ``evidence``: digest of the last read traces by metric.
    ``responses``, ``continues``: see :class:`pandaeval_otel.model.Trace`. ``chained``: the session follows from
    responses. ``pending``: ended in a tool call or guardrail. ``done``: changing tools, and answered calls of other
    traces. ``rootless``: the root did not end. ``held``: size of the grounding data. ``unsettled``: metrics evaluated
    with earlier traces. ``tried``: a call failed. ``asked``: content words of the question. ``utility``: utility call
    without session. ``services``: known services of the spans, if other than ``service``. ``links``: traces that the
    spans link to.
    """

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
    tried: bool = False
    asked_again: bool = False
    asked: str = ""
    utility: bool = False
    services: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def linked(self) -> bool:
        return bool(self.responses or self.continues)

    @property
    def is_dismissed(self) -> bool:
        """Whether a person dismissed the finding of ``response``."""
        signal = self.signals.get("response")
        return signal is not None and signal.get("dismissed", False)

    @property
    def all_services(self) -> tuple[str, ...]:
        """The known services of the spans."""
        return self.services or known_services([self.service])

    def pack(self) -> bytes:
        return orjson.dumps({name: value for name, usual in _stored() if (value := getattr(self, name)) != usual})


def known_services(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first services in alphabetical order, without the SDKs' name for an unknown service."""
    known = {name[:_MOST_CHARS] for name in names if name and not name.startswith(_UNKNOWN_SERVICE)}
    return tuple(sorted(known))[:_MOST]


@cache
def _stored() -> list[tuple[str, Any]]:
    return [
        (fact.name, _ALWAYS if fact.default is MISSING or fact.name == "evidence" else fact.default)
        for fact in fields(TraceFacts)
    ]


def unpack(packed: bytes) -> TraceFacts:
    """Unpack :meth:`TraceFacts.pack`; ignore unknown facts.

    Raises ``ValueError`` for invalid JSON and ``TypeError`` for missing facts.
    """
    facts = {name: value for name, value in orjson.loads(packed).items() if name in TraceFacts.__slots__}
    for name in ("responses", "done", "unsettled", "services", "links"):
        if name in facts:
            facts[name] = tuple(facts[name])
    return TraceFacts(**facts)


@cache
def _checker() -> TypeAdapter[TraceFacts]:
    return TypeAdapter(TraceFacts)


def check(packed: bytes) -> None:
    _checker().validate_json(packed, strict=True)


def services_of(trace: Trace) -> tuple[str, ...]:
    """Return the known services of a trace's spans."""
    return known_services({span.service for span in trace.spans})


def links_of(trace: Trace) -> tuple[str, ...]:
    """Return the other traces that a trace's spans link to."""
    linked = dict.fromkeys(id_ for span in trace.spans for id_, _ in span.links if id_ != trace.trace_id)
    return tuple(linked)[:_MOST]
