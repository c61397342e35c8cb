"""Score series: OpenTelemetry metrics of results, stored with the results."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import orjson

from pandaeval_collector.base.instrument import MAX_SERIES, Attributes, Instrument, instruments
from pandaeval_collector.base.result import DISMISSED, OPEN, Result
from pandaeval_collector.store.failures import failure_of
from pandaeval_collector.store.rows import ListedRow, SeriesRow
from pandaeval_otel.base.names import bounded

_REMEMBERED = 10_000
CAPS = {"agent": 200, "service": 100, "environment": 20, "model": 50, "label": 100}
"""Maximum distinct values of a label. All later values are ``__other__``."""
OTHER = "__other__"
_FOLDED = frozenset({"gen_ai.agent.name", "pandaeval.service", "deployment.environment.name", "gen_ai.request.model"})
"""Attributes whose values senders choose."""
VERDICT = "pandaeval.verdict"
"""Attribute of results that neither passed nor failed: ``unclear`` or ``disputed``."""
_VERDICTS = ("pandaeval.outcome", "pandaeval.why", "pandaeval.passed", VERDICT)
_PASSED = {None: "", True: "true", False: "false"}
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Names of the semantic conventions, by litellm's different name of the provider."""
_SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_BOUNDS = {
    "pandaeval.evaluation.score": _SCORES,
    "gen_ai.client.operation.duration": tuple(0.01 * 2**power for power in range(14)),
    "gen_ai.client.token.usage": tuple(4.0**power for power in range(14)),
    "pandaeval.judge.duration": (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
}
_TABLE = """
pandaeval.evaluation.score histogram {score} Scores of traces and sessions, from 0 to 1. The best score is 1
pandaeval.evaluations counter {evaluation} Number of results, by outcome, by reason of a missing score, and by verdict
  (passed or failed)
pandaeval.revisions counter {revision} Number of results that replace an earlier revision
pandaeval.failures counter {failure} Number of failed results, by label and severity
pandaeval.judge.duration histogram s Time that a judged result waited for the reply of the judge
pandaeval.judge.tokens counter {token} Number of tokens that the judge used for results
pandaeval.judge.cost counter {USD} Cost of judged results, in US dollars
pandaeval.judge.cached_tokens counter {token} Number of tokens that came from the provider's prompt cache
gen_ai.client.operation.duration histogram s Duration of a model call of the judge, including retries
gen_ai.client.token.usage histogram {token} Number of tokens in a model call of the judge, by type
pandaeval.agent.tokens counter {token} Number of tokens that agents used in their runs
pandaeval.agent.cost counter {USD} Cost of agents' runs in US dollars, from the spans or by list price
pandaeval.agent.unpriced counter {run} Number of runs with model calls of unknown price
"""
INSTRUMENTS = instruments(_TABLE, _BOUNDS)
"""The instruments of the score series."""
SCORE, EVALUATIONS, REVISIONS, FAILURES, *_JUDGE = INSTRUMENTS.values()
(
    JUDGE_DURATION,
    JUDGE_TOKENS,
    JUDGE_COST,
    JUDGE_CACHED,
    CLIENT_DURATION,
    CLIENT_TOKENS,
    AGENT_TOKENS,
    AGENT_COST,
    AGENT_UNPRICED,
) = _JUDGE


class SeriesLabels:
    """Limits label values and series, also across restarts. One thread."""

    def __init__(
        self,
        known: Iterable[tuple[str, str]] = (),
        series: Iterable[tuple[str, Attributes]] = (),
        most: int = MAX_SERIES,
    ) -> None:
        self._known: dict[str, set[str]] = {kind: set() for kind in CAPS}
        for kind, value in known:
            self._known.setdefault(kind, set()).add(bounded(value))
        self._series, self._most = set(series), most
        self.folded = 0
        """Results that were counted under ``__other__`` since there are as many series as there may be."""
        self._new: list[tuple[str, str]] = []
        self._named: dict[tuple[str | None, ...], Attributes] = {}

    def admit(self, kind: str, value: str) -> str:
        """Return the value, or ``__other__`` above the limit."""
        if not value:
            return ""
        known = self._known[kind]
        if value in known or (value := bounded(value)) in known:
            return value
        if len(known) >= CAPS[kind]:
            return OTHER
        known.add(value)
        self._new.append((kind, value))
        return value

    def named(
        self, name: str, level: str, agent: str, service: str, environment: str | None, *verdict: str | None
    ) -> Attributes:
        """Return the attributes of a series. ``verdict``: outcome, why, passed and open label."""
        key = (name, level, agent, service, environment, *verdict)
        found = self._named.get(key)
        if found is None:
            if len(self._named) >= _REMEMBERED:
                self._named.clear()
            found = self._named[key] = filled(
                ("gen_ai.evaluation.name", bounded(name)),
                ("pandaeval.level", level),
                ("gen_ai.agent.name", self.admit("agent", agent)),
                ("pandaeval.service", self.admit("service", service)),
                ("deployment.environment.name", self.admit("environment", environment or "")),
                *zip(_VERDICTS, verdict, strict=False),
            )
        return found

    @property
    def series(self) -> int:
        return len(self._series)

    def within(self, name: str, attributes: Attributes) -> Attributes:
        """Return the attributes of the series to use, with ``__other__`` for senders' values above the limit."""
        key = (name, attributes)
        if key not in self._series:
            if len(self._series) >= self._most:
                key = (name, folded(attributes))
            self._series.add(key)
        return key[1]

    def take_new(self) -> list[tuple[str, str]]:
        """Return values admitted since the last call, to be stored."""
        new, self._new = self._new, []
        return new


def filled(*attributes: tuple[str, str | None]) -> Attributes:
    return tuple((key, value) for key, value in attributes if value)


def folded(attributes: Attributes) -> Attributes:
    return tuple((key, OTHER if key in _FOLDED else value) for key, value in attributes)


class Exemplar(NamedTuple):
    value: float
    trace_id: str
    span_id: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class Point:
    """A series. Times: Unix nanoseconds. ``buckets``: one more than bounds."""

    instrument: Instrument
    attributes: Attributes
    start_ns: int
    count: int
    total: float
    buckets: tuple[int, ...]
    exemplars: tuple[tuple[int, Exemplar], ...]
    key: str = ""
    shown_at: float | None = None
    """Unix seconds at which this reader first saw the series as 0; ``None``: never."""

    def as_zero(self) -> Point:
        """Return the series before its first value, which ``increase()`` needs."""
        return replace(self, count=0, total=0.0, buckets=(0,) * len(self.buckets), exemplars=())


@dataclass(slots=True)
class Increment:
    instrument: Instrument
    attributes: Attributes
    count: int = 0
    total: float = 0.0
    buckets: dict[int, int] = field(default_factory=dict)
    _shown: dict[int, tuple[Result, float | None]] = field(default_factory=dict)

    def observe(self, value: float, result: Result | None, shown: float | None = None) -> None:
        """Add a measurement; 1 for a counter. ``result``: example, with the value ``shown``."""
        self.count += 1
        self.total += value
        bucket = bisect_left(self.instrument.bounds, value) if self.instrument.bounds else 0
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        if result is not None and result.unit.sampled and result.unit.trace_id:
            self._shown[bucket] = result, shown

    @property
    def exemplars(self) -> dict[int, Exemplar]:
        found = {}
        for bucket, (result, shown) in self._shown.items():
            value = shown if shown is not None else 1.0 if result.score is None else result.score
            found[bucket] = Exemplar(value, result.unit.trace_id, result.unit.span_id, result.time_ns)
        return found


class _Batch:
    def __init__(self, labels: SeriesLabels) -> None:
        self.found: dict[tuple[str, Attributes], Increment] = {}
        self._labels = labels
        self._evaluations: dict[tuple[str | bool | None, ...], tuple[Increment, bool]] = {}
        """Series of results that are alike, and whether they are counted under ``__other__``."""
        self._scores: dict[tuple[str | None, ...], Increment] = {}

    def at(self, instrument: Instrument, attributes: Attributes) -> Increment:
        key = (instrument.name, self._labels.within(instrument.name, attributes))
        increment = self.found.get(key)
        if increment is None:
            increment = self.found[key] = Increment(instrument, key[1])
        return increment

    def count(self, result: Result) -> None:
        about = _about(result)
        label = result.label if result.label in OPEN else None
        success = result.success if result.is_rated else None
        key = (*about, result.outcome, result.why, success, label)
        if key not in self._evaluations:
            named = self._labels.named(*about, result.outcome, result.why, _PASSED[success], label)
            evaluations = self.at(EVALUATIONS, named)
            self._evaluations[key] = evaluations, evaluations.attributes != named
        evaluations, is_folded = self._evaluations[key]
        self._labels.folded += is_folded
        evaluations.observe(1.0, result)

    def score(self, result: Result, score: float) -> None:
        about = _about(result)
        if about not in self._scores:
            self._scores[about] = self.at(SCORE, self._labels.named(*about))
        self._scores[about].observe(score, result)

    def failure(self, result: Result) -> None:
        failure = failure_of(result)
        if failure is None:
            return
        attributes = filled(
            ("pandaeval.failure.label", self._labels.admit("label", failure.label)),
            ("pandaeval.failure.severity", result.failure_severity or failure.weight),
            ("gen_ai.agent.name", self._labels.admit("agent", failure.agent)),
            ("pandaeval.service", self._labels.admit("service", failure.service)),
        )
        self.at(FAILURES, attributes).observe(1.0, result)

    def revision(self, result: Result) -> None:
        unit = result.unit
        self.at(REVISIONS, self._labels.named(result.wire_name, unit.level, "", unit.service, "")).observe(1.0, result)

    def judge(self, result: Result) -> None:
        asked = filled(
            ("gen_ai.evaluation.name", bounded(result.wire_name)),
            ("gen_ai.request.model", self._labels.admit("model", result.evaluator.model or "")),
            ("pandaeval.outcome", result.outcome),
        )
        seconds = result.duration_ms / 1e3
        self.at(JUDGE_DURATION, asked).observe(seconds, result, seconds)
        self.at(JUDGE_TOKENS, asked).observe(float(result.tokens), None)
        self.at(JUDGE_COST, asked).observe(result.cost_usd, None)
        if cached := result.cached_tokens:
            self.at(JUDGE_CACHED, asked).observe(float(cached), None)
        if calls := result.judge.get("calls"):
            self._calls(result, calls)

    def _calls(self, result: Result, calls: int) -> None:
        """Add the model calls of a result. Several calls each count with their mean."""
        model = self._labels.admit("model", result.evaluator.model or "")
        provider = model.partition("/")[0] if "/" in model else ""
        about = filled(
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", _PROVIDERS.get(provider, provider)),
            ("gen_ai.request.model", model),
        )
        for _ in range(calls):
            self.at(CLIENT_DURATION, about).observe(result.duration_ms / 1e3 / calls, None)
            for kind in ("input", "output"):
                tokens = self.at(CLIENT_TOKENS, (*about, ("gen_ai.token.type", kind)))
                tokens.observe(result.judge["tokens"][kind] / calls, None)


def _about(result: Result) -> tuple[str, str, str, str, str | None]:
    unit = result.unit
    return result.wire_name, unit.level, unit.agent, unit.service, unit.environment


def increments(
    results: Iterable[Result], counted: Collection[str], labels: SeriesLabels, first: Collection[str] = ()
) -> list[Increment]:
    """Return the results' additions.

    ``counted``: IDs of results whose unit is in the histogram. ``first``: IDs of results that replace no final result.
    """
    batch = _Batch(labels)
    for result in results:
        if result.label == DISMISSED:
            continue
        batch.count(result)
        is_new = result.id not in counted
        if is_new and result.is_rated and result.outcome == "scored" and result.score is not None:
            batch.score(result, result.score)
        if is_new and result.success is False and result.run_id is None:
            batch.failure(result)
        if result.revision > 1 and result.id not in first:
            batch.revision(result)
        is_answer = result.evaluator.kind == "llm" and not result.finding.metadata.get("undisputed")
        if is_answer and (result.tokens or result.duration_ms):
            batch.judge(result)
    return [increment for increment in batch.found.values() if increment.count]


def spent(rows: Iterable[ListedRow], labels: SeriesLabels) -> list[Increment]:
    batch = _Batch(labels)
    for row in rows:
        facts = orjson.loads(row.facts)
        about = filled(
            ("gen_ai.agent.name", labels.admit("agent", row.agent)),
            ("pandaeval.service", labels.admit("service", row.service)),
        )
        batch.at(AGENT_TOKENS, about).observe(float(sum(facts["tokens"])), None)
        if "usd" in facts:
            batch.at(AGENT_COST, about).observe(facts["usd"], None)
        if "unpriced" in facts:
            batch.at(AGENT_UNPRICED, about).observe(1.0, None)
    return [*batch.found.values()]


def series_rows(added: Iterable[Increment]) -> list[SeriesRow]:
    return [
        SeriesRow(
            each.instrument.name,
            orjson.dumps(each.attributes).decode(),
            len(each.instrument.bounds) + 1,
            each.count,
            each.total,
            each.buckets,
            each.exemplars,
        )
        for each in added
    ]
