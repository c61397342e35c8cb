"""A result: the conclusion of a metric about a unit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import takewhile
from typing import Any

import orjson

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored

TOLERANCE = 1e-9
EXCUSED, SUSPECT, UNCLEAR, DISPUTED = "excused", "suspect", "unclear", "disputed"
OPEN = frozenset({UNCLEAR, DISPUTED})
"""Labels of undecided verdicts: the judge is unsure, or code found a failure in a run that the judge finds correct."""
DISMISSED = "dismissed"
"""The label of a finding that a person calls false: it counts nowhere."""
NOTED = OPEN | {EXCUSED, SUSPECT, DISMISSED}
"""Labels of scores that neither pass nor fail. A score below its threshold is excused if code knows why it is no fault,
and suspect if such findings are true too seldom."""
MAX_REASON_CHARS = 4000
MAX_TEXT_CHARS, _MAX_BODY_BYTES = 2000, 64 << 10
_MAX_SPANS = 200
"""Limits of a result, which is kept, sent and read many times: longer reasons are cut, and in a JSON object of more
bytes every longer text."""
_DEEPEST = 100
"""Half of the depth that the JSON writer supports. Senders can send a deeper end state."""
_MOST_DETAILS, _CHARS = 4000, 64
"""Maximum details kept, and characters of a text that count as a detail: together a quarter of a megabyte."""
_SMALL = frozenset({int, float, bool, type(None)})
_WIRE_NAMES = {("turn", "coherence"): "turn_coherence"}
"""The metrics that have another name in OpenTelemetry, because their names exist on two levels with two meanings."""
_METRICS = {("turn", wire): name for (_, name), wire in _WIRE_NAMES.items()}
_TIMES = 512
"""Number of cached formatted times, more than a batch contains."""


def wire_name(level: str, metric: str) -> str:
    """Return the name of a metric in OpenTelemetry (``gen_ai.evaluation.name``).

    >>> wire_name("turn", "coherence"), wire_name("trace", "coherence")
    ('turn_coherence', 'coherence')
    """
    return _WIRE_NAMES.get((level, metric), metric)


def metric_of(level: str, name: str) -> str:
    """Return the metric for an OpenTelemetry name; reverse of :func:`wire_name`."""
    return _METRICS.get((level, name), name)


# Nobody changes what stands here. It is not declared frozen because setting the fields of a frozen object takes four
# times as long, and there are many.


@dataclass(slots=True)
class Unit:
    """The subject of a result.

    ``id``: trace or session ID. ``span_id``, ``end_ns``: of the evaluated span (for a session, its last root).
    ``evidence``: digest of the input.
    """

    level: str
    id: str
    trace_id: str
    span_id: str
    session_id: str | None = None
    agent: str = ""
    service: str = ""
    environment: str | None = None
    evidence: str = ""
    revision: int = 1
    trigger: str = "file"
    late_spans: int = 0
    response_id: str = ""
    end_ns: int = 0
    sampled: bool = True
    trace_ids: tuple[str, ...] = ()
    case: str = ""
    """Id of the test case that the spans name, and of the attempt at it."""
    trial: str = ""

    def with_evidence(self, evidence: str) -> Unit:
        return replace(self, evidence=evidence)


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """The evaluator of a result. ``kind``: ``embedding | llm | code | math``."""

    kind: str
    version: str
    model: str | None = None


@dataclass(slots=True)
class Result:
    """A result. Its ``id`` depends only on content.

    ``outcome``: ``scored | assumed | unscored``. ``score``: ``None`` only if ``unscored``, with ``why``. ``success``:
    ``score >= threshold`` within 1e-9, on the scale of ``raw`` if present; ``None`` for labels in :data:`NOTED`.
    """

    id: str
    metric: str
    unit: Unit
    finding: Finding
    evaluator: EvaluatorInfo
    threshold: float | None
    revision: int
    final: bool
    duration_ms: float
    time: datetime
    cost_usd: float = 0.0
    tokens: int = 0
    run_id: str | None = None
    """Id of the evaluation run that the result was made in."""
    failure_group: str | None = None
    """Id of the failure group of the result; ``""`` if the judge found no known group."""
    failure_severity: str | None = None

    outcome: str = field(init=False)
    score: float | None = field(init=False)
    why: str | None = field(init=False)
    success: bool | None = field(init=False)
    label: str | None = field(init=False)
    is_verdict: bool = field(init=False)
    """Whether the result rates its unit. A result that explains a failure has no threshold, and its score is a
    certainty."""
    is_rated: bool = field(init=False)
    """Whether rates include the result. They exclude results of questions that a verdict or a finding caused."""
    key: str = field(init=False)
    """The key of the metric, ``level.name``."""
    wire_name: str = field(init=False)
    """The value of ``gen_ai.evaluation.name``."""
    time_ns: int = field(init=False)
    """When the result was concluded, Unix nanoseconds, exact to the microsecond."""

    @property
    def verdict(self) -> str:
        """The verdict for rates: ``passed``, ``failed``, a label of :data:`OPEN`, ``scored``, ``assumed`` or
        ``unscored: WHY``. ``""``: excluded.
        """
        if not self.is_rated or self.label == DISMISSED:
            return ""
        if self.outcome != "scored":
            return f"unscored: {self.why}" if self.why else self.outcome
        if self.label in OPEN:
            return str(self.label)
        return {True: "passed", False: "failed", None: "scored"}[self.success]

    def __post_init__(self) -> None:
        self.time_ns = nanoseconds(self.time)
        self.is_rated = not self.finding.metadata.get("selected")
        self.key = f"{self.unit.level}.{self.metric}"
        self.wire_name = wire_name(self.unit.level, self.metric)
        self.is_verdict = self.threshold is not None or self.unit.level == "task"
        self.score = self.why = self.success = self.label = None
        match self.finding:
            case Score() as finding:
                self.outcome, self.score = "scored", finding.value
                if finding.failed:
                    self.success = False
                elif self.threshold is not None and finding.label not in NOTED:
                    own = finding.value if finding.raw is None else finding.raw
                    self.success = own >= self.threshold - TOLERANCE
                passed = None if self.success is None else "pass" if self.success else "fail"
                self.label = passed if finding.label is None else finding.label
            case Assumed(value=value):
                self.outcome, self.score, self.success, self.label = "assumed", value, True, "assumed"
            case Unscored(why=why):
                self.outcome, self.why = "unscored", why.value

    @property
    def judge(self) -> Mapping[str, Any]:
        """``metadata.judge``: the judge and its cost; empty without a judge."""
        about = self.finding.metadata.get("judge")
        return about if isinstance(about, Mapping) and "pack" in about else {}

    @property
    def cached_tokens(self) -> int:
        tokens: Mapping[str, int] = self.judge.get("tokens") or {}
        return tokens.get("cached", 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object in reading order. ``span_ids``: at most 200."""
        finding, unit = self.finding, self.unit
        of_run = {} if self.run_id is None else {"run_id": self.run_id}
        of_case = {"case": unit.case, "trial": unit.trial} if unit.case else {}
        scored = finding if isinstance(finding, Score) else None
        metadata = {**finding.metadata, "threshold": self.threshold, "success": self.success}
        if self.failure_group:
            metadata["failure_group"] = {"id": self.failure_group, "severity": self.failure_severity}
        return {
            "id": self.id,
            "metric": self.metric,
            "level": unit.level,
            "outcome": self.outcome,
            "score": self.score,
            "raw": scored.raw if scored else None,
            "scale": scored.scale if scored else None,
            "threshold": self.threshold,
            "success": self.success,
            "label": self.label,
            "why": self.why,
            "reason": cut(finding.reason, MAX_REASON_CHARS),
            "trace_id": unit.trace_id,
            "span_id": unit.span_id,
            "session_id": unit.session_id,
            "agent": unit.agent,
            "service": unit.service,
            "environment": unit.environment,
            "metadata": {**of_case, **metadata},
            "span_ids": list(scored.span_ids[:_MAX_SPANS]) if scored else [],
            "coverage": 1.0 if isinstance(finding, Assumed) else finding.coverage,
            "evaluator": {
                "kind": self.evaluator.kind,
                "version": self.evaluator.version,
                "model": self.evaluator.model,
            },
            "revision": self.revision,
            "final": self.final,
            "trigger": unit.trigger,
            "late_spans": unit.late_spans,
            "cost_usd": self.cost_usd,
            "tokens": self.tokens,
            "duration_ms": self.duration_ms,
            "time": written(self.time),
            **of_run,
        }

    def to_json(self) -> bytes:
        try:
            body = orjson.dumps(self.to_dict(), option=orjson.OPT_SERIALIZE_NUMPY)
            if len(body) <= _MAX_BODY_BYTES:
                return body
        except TypeError:
            pass  # a sum of numbers from outside that no longer fits into 64 bits
        return orjson.dumps(_pruned(self.to_dict(), [math.inf]), option=orjson.OPT_SERIALIZE_NUMPY)


class Identity:
    """The ID part shared by a metric's results: version, judge or embedder, and settings."""

    __slots__ = ("_shared",)

    def __init__(self, key: str, version: str, model: str | None, settings: Mapping[str, Any]) -> None:
        canonical = orjson.dumps(settings, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
        self._shared = orjson.dumps([key, version, model, canonical.decode()])[1:-1]

    def of(self, unit: Unit) -> str:
        """Return a result's ID: 32 hex digits of the shared part, unit and evidence."""
        return self.of_encoded(*encoded_unit(unit))

    def of_encoded(self, about: bytes, evidence: bytes) -> str:
        """Return a result's ID for a unit from :func:`encoded_unit`."""
        return hashlib.blake2b(b"[%b,%b,%b]" % (about, self._shared, evidence), digest_size=16).hexdigest()


def encoded_unit(unit: Unit) -> tuple[bytes, bytes]:
    """Encode a unit and its evidence for result IDs."""
    return orjson.dumps([unit.level, unit.id])[1:-1], orjson.dumps(unit.evidence)


@dataclass(frozen=True, slots=True)
class Origin:
    """Fields shared by a metric's results. ``threshold``: ``None`` for a metric that explains a failure."""

    metric: str
    identity: Identity
    evaluator: EvaluatorInfo
    threshold: float | None


def keep_little(finding: Finding) -> None:
    """Reduce a finding to the part held in memory until its batch is committed."""
    finding.reason, finding.metadata = cut(finding.reason, MAX_REASON_CHARS), bounded(finding.metadata)


def conclude(unit: Unit, found: Iterable[tuple[Origin, Finding, float]]) -> list[Result]:
    """Make a result of each finding about ``unit``, with its milliseconds."""
    time, encoded = now(), encoded_unit(unit)
    return [
        Result(
            id=origin.identity.of_encoded(*encoded),
            metric=origin.metric,
            unit=unit,
            finding=finding,
            evaluator=origin.evaluator,
            threshold=origin.threshold,
            revision=unit.revision,
            final=True,
            duration_ms=round(took_ms, 3),
            time=time,
        )
        for origin, finding, took_ms in found
    ]


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def bounded(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Limit a metric's details to the first ones, with a note about the rest."""
    if _room_after(details, _MOST_DETAILS) >= 0:
        return details
    return {**_pruned(details, [_MOST_DETAILS]), "left_out": "there were more details than are kept"}


def _room_after(value: Any, room: int, deep: int = _DEEPEST) -> int:
    if type(value) in _SMALL:
        return room - 1
    match value:
        case str() | bytes():
            return room - 1 - len(value) // _CHARS
        case dict() | list() | tuple() | Mapping() if not deep or len(value) > room:
            return -1
        case dict() | Mapping():
            for key, held in value.items():
                room -= len(str(key)) // _CHARS
                if (room := room - 1 if type(held) in _SMALL else _room_after(held, room, deep - 1)) < 0:
                    break
        case list() | tuple():
            for held in value:
                if (room := room - 1 if type(held) in _SMALL else _room_after(held, room, deep - 1)) < 0:
                    break
    return room - 1


def _pruned(value: Any, room: list[float], deep: int = _DEEPEST) -> Any:
    room[0] -= 1
    match value:
        case Mapping() | list() | tuple() if not deep:
            return "…"
        case int() if value.bit_length() > 63:
            return float(value) if value.bit_length() < 1024 else str(value)[:20]
        case str():
            room[0] -= min(len(value), MAX_TEXT_CHARS) // _CHARS
            return cut(value, MAX_TEXT_CHARS)
        case Mapping():
            pairs = takewhile(lambda _: room[0] > 0, value.items())
            return {cut(str(key), MAX_TEXT_CHARS): _pruned(held, room, deep - 1) for key, held in pairs}
        case list() | tuple():
            return [_pruned(held, room, deep - 1) for held in takewhile(lambda _: room[0] > 0, value)]
    try:
        orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except TypeError:
        return cut(repr(value), MAX_TEXT_CHARS)
    return value


def now() -> datetime:
    return datetime.now(UTC)


# Many results are concluded at the same time, which is written in more than one place.


@lru_cache(maxsize=_TIMES)
def nanoseconds(time: datetime) -> int:
    return round(time.timestamp() * 1e6) * 1000


@lru_cache(maxsize=_TIMES)
def written(time: datetime) -> str:
    """Format a time by RFC 3339."""
    return time.isoformat()


def is_verdict(result: Mapping[str, Any]) -> bool:
    """Return whether a result as a JSON object is a verdict (:attr:`Result.is_verdict`)."""
    return result["metadata"].get("threshold", 0.0) is not None or result["level"] == "task"
