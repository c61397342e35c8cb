"""Name, flat attributes, status, parent and links of an evaluation span.

Names have no numbers or IDs: ``✗ response, grounding +1``, ``✓ evaluate``, or without a verdict ``evaluate trace``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from pandaeval_collector.base.result import DISPUTED, NOTED, UNCLEAR, Result, cut
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters._fields import before_number, double, pairs, sized, text_pair

MAX_TEXT = 2000
"""Longer explanations are cut: Tempo keeps 2,048 bytes of an attribute."""
MAX_LINKS = 128
"""Further links of a span are left out; SDKs keep the same number."""
_DIGITS = 6
"""Digits of a score in a flat attribute, so that a search for 0.2 also finds 0.19999999999999996."""
_MOST_NAMES = 2
"""Metrics that the name of a span lists; it counts further metrics."""
_SPAN_NAME, _SPAN_LINKS, _SPAN_STATUS, _STATUS_MESSAGE = 5, 13, 15, 2
_STATUS_ERROR = b"\x18\x02"
_LINK_SAMPLED = b"\x35\x01\x00\x00\x00"
"""Fields in the messages of ``opentelemetry-proto``: ``Status.code``, ``Span.Link.flags``."""
_FAIL, _PASS = pairs({"pandaeval.verdict": "fail"}), pairs({"pandaeval.verdict": "pass"})
_UNSCORED, _THIN = pairs({"pandaeval.verdict": "unscored"}), pairs({"pandaeval.verdict": "hardly_checked"})
"""``hardly_checked``: only ``response`` passed, which shows no more than that the run ended with an answer."""
_OPEN = {label: pairs({"pandaeval.verdict": label}) for label in (UNCLEAR, DISPUTED)}
_SPAN_ID = re.compile("[0-9a-f]{16}")


class Role(NamedTuple):
    """The part of a run that a span covers.

    ``named_by``: source of its name without failures. ``may_pass``: may get the verdict ``pass``.
    """

    level: str
    named_by: Literal["level", "judged", "metrics"]
    may_pass: bool


class SpanSummary(NamedTuple):
    """The results of one span.

    ``scores``: lowest per metric. ``lowest``: of verdicts. ``worst``: worst failure, else lowest score. ``failed``:
    worst first. ``failing``: metrics. ``explaining``: scores without verdicts. ``is_open``: ``correctness`` decides.
    ``undecided``: label, or ``""``.
    """

    results: Sequence[Result]
    scores: Mapping[str, float]
    lowest: float | None
    worst: Result
    failed: Sequence[Result]
    failing: Sequence[str]
    passing: Sequence[Result]
    explaining: Sequence[Result]
    is_open: bool
    undecided: str

    @property
    def passed(self) -> bool:
        """Whether a result other than ``response`` passes and none fails."""
        if self.failed or self.is_open or self.undecided:
            return False
        return any(result.metric != "response" for result in self.passing)


class SpanFields(NamedTuple):
    """A span's encoded fields. ``fields``: name and status. ``blamed``: span of the worst failure, or ``""``."""

    attributes: list[bytes]
    fields: bytes
    lowest: float | None
    failing: Sequence[str]
    blamed: bytes


def summarise(results: Sequence[Result]) -> SpanSummary:
    scores: dict[str, float] = {}
    failures: list[tuple[float, Result]] = []
    passing: list[Result] = []
    explaining: list[Result] = []
    lowest: float | None = None
    worst = results[0]
    for result in results:  # a hot loop: for each result of each trace
        finding = result.finding
        if not isinstance(finding, Score):
            continue
        score = finding.value
        name = result.wire_name
        if score <= scores.get(name, score):
            scores[name] = score
        if not result.is_verdict:
            explaining.append(result)
        elif finding.label not in NOTED and (lowest is None or score < lowest):
            lowest, worst = score, result
        if result.success:
            passing.append(result)
        elif result.success is False:
            failures.append((score, result))
    failing = [result.wire_name for _, result in failures]
    undecided = next((result.label for result in results if result.label in _OPEN), None) or ""
    is_open = all(map(_leaves_it_open, results))
    failed: list[Result] = []
    if failures and not is_open:
        failures.sort(key=_score)
        failed = [result for _, result in failures]
        worst = failed[0]
    return SpanSummary(results, scores, lowest, worst, failed, failing, passing, explaining, is_open, undecided)


def encode(summary: SpanSummary, role: Role, shows_failed: bool) -> SpanFields:
    attributes: list[bytes] = []
    for result in summary.explaining:
        attributes.extend(_step(result))
    for metric, score in summary.scores.items():
        attributes.append(before_number(f"pandaeval.score.{metric}") + double(round(score, _DIGITS)))
    attributes.extend(_verdict(summary, role))
    reason = cut(summary.worst.finding.reason, MAX_TEXT)
    attributes.extend(text_pair("pandaeval.reason", reason))
    fields, blamed = _name(_title(summary, role)), b""
    if summary.failed:
        blamed = _blamed(summary.worst)
        if shows_failed:
            message = (reason or _names(summary.failed)).encode()
            fields += sized(_SPAN_STATUS, sized(_STATUS_MESSAGE, message) + _STATUS_ERROR)
    lowest = summary.lowest
    if lowest is not None:
        lowest = round(lowest, _DIGITS)
    return SpanFields(attributes, fields, lowest, summary.failing, blamed)


def link(trace_id: bytes, span_id: bytes) -> bytes:
    return sized(_SPAN_LINKS, sized(1, trace_id) + sized(2, span_id) + _LINK_SAMPLED)


def links(results: Sequence[Result]) -> list[bytes]:
    """Encode distinct links to the findings' spans, skipping invalid span IDs."""
    named: dict[str, None] = {}
    for result in results:
        named.update(dict.fromkeys(_named(result)))
    if not named:
        return []
    trace_id = bytes.fromhex(results[0].unit.trace_id)
    span_ids = [span_id for span_id in named if _SPAN_ID.fullmatch(span_id)]
    return [link(trace_id, bytes.fromhex(span_id)) for span_id in span_ids[:MAX_LINKS]]


def _score(failure: tuple[float, Result]) -> float:
    return failure[0]


def _leaves_it_open(result: Result) -> bool:
    if result.unit.level != "session":
        return False
    return result.metric in ("goal_completion", "user_friction") or "band" in result.finding.metadata


def _verdict(summary: SpanSummary, role: Role) -> tuple[bytes, ...]:
    if summary.failed:
        return _FAIL
    if summary.undecided:
        return _OPEN[summary.undecided]
    if summary.is_open or not role.may_pass:
        return ()
    if summary.passed:
        return _PASS
    if summary.passing:
        return _THIN
    if summary.scores or role.named_by == "judged":  # a score without a threshold is no verdict
        return ()
    return _UNSCORED


def _title(summary: SpanSummary, role: Role) -> str:
    if summary.failed and role.level != "session":
        return f"✗ {_names(summary.failed)}"
    label = _label(summary, role)
    if summary.failed:
        return f"✗ {label}"
    if not summary.passed:
        return f"evaluate {label}"
    if role.named_by != "level":
        return f"✓ evaluate {label}"
    return f"✓ {label}" if role.level == "session" else "✓ evaluate"


def _label(summary: SpanSummary, role: Role) -> str:
    if role.named_by == "judged":
        return "judged"
    if role.named_by == "metrics":
        return _names(summary.failed or summary.passing or summary.results)
    if role.level == "session":
        return f"session {summary.worst.unit.agent}".rstrip()
    return role.level


def _names(results: Sequence[Result]) -> str:
    names = ", ".join([result.wire_name for result in results[:_MOST_NAMES]])
    more = len(results) - _MOST_NAMES
    return f"{names} +{more}" if more > 0 else names


@lru_cache(maxsize=256)
def _name(title: str) -> bytes:
    return sized(_SPAN_NAME, title.encode())


def _step(result: Result) -> tuple[bytes, ...]:
    step = result.finding.metadata.get("step")
    if not isinstance(step, Mapping):
        return pairs({"pandaeval.blame": result.label})
    facts = {
        "pandaeval.blame": result.label,
        "pandaeval.blame.span_id": step.get("span_id"),
        "pandaeval.blame.tool": step.get("tool"),
        "pandaeval.blame.agent": step.get("agent"),
        "pandaeval.blame.reason": cut(result.finding.reason, MAX_TEXT),
    }
    return pairs(facts)


def _blamed(result: Result) -> bytes:
    span_ids = [*_named(result)]
    step = result.finding.metadata.get("blame")
    if isinstance(step, Mapping):
        span_ids.append(str(step.get("span_id")))
    for span_id in span_ids:
        if _SPAN_ID.fullmatch(span_id):
            return bytes.fromhex(span_id)
    return b""


def _named(result: Result) -> Sequence[str]:
    finding = result.finding
    if isinstance(finding, Score) and finding.span_ids:
        return finding.span_ids
    if result.evaluator.kind != "llm":
        return ()
    cited: Sequence[str] = result.judge.get("cited", ())
    return cited
