"""A decided trace's stored data for its session, without the answer."""

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
    outcome: str
    value: _Share | None
    why: str | None
    said: NotRequired[str]
    lost: NotRequired[str]
    open: NotRequired[str]
    older: NotRequired[bool]


@dataclass(slots=True)
class TraceFacts:
    """Facts about a decided trace for its session.

    ``captured``: has an output. ``said``: it has content. ``evidence``: digest of the last read traces by metric.
    ``responses``, ``continues``: see :class:`pandaeval_otel.model.Trace`. ``chained``: the session follows from
    responses. ``pending``: ended in a tool call or guardrail. ``done``: changing tools, and answered calls of other
    traces. ``rootless``: the root did not end. ``held``: size of the grounding data. ``unsettled``: metrics evaluated
    with earlier traces. ``asked``: content words of the question. ``utility``: utility call without session.
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
    asked_again: bool = False
    asked: str = ""
    utility: bool = False

    @property
    def linked(self) -> bool:
        return bool(self.responses or self.continues)

    def pack(self) -> bytes:
        return orjson.dumps({name: value for name, usual in _stored() if (value := getattr(self, name)) != usual})


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
    for name in ("responses", "done", "unsettled"):
        if name in facts:
            facts[name] = tuple(facts[name])
    return TraceFacts(**facts)


@cache
def _checker() -> TypeAdapter[TraceFacts]:
    return TypeAdapter(TraceFacts)


def check(packed: bytes) -> None:
    _checker().validate_json(packed, strict=True)
