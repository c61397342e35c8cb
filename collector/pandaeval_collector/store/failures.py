"""Failures in results, and the severity of their labels."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pandaeval_collector.base.filters import SEVERITIES as SEVERITIES
from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.base.score import Score

HIGH = "high"
"""The severity of unknown and of ungrouped failures."""
_BY_LABEL = {
    **dict.fromkeys(("unsafe state", "unsafe action", "forbidden_action"), "critical"),
    **dict.fromkeys(("lack of specific information", "failure to ask for clarification", "missing_thing"), "medium"),
    **dict.fromkeys(("repeated tool call", "unnecessary tool call", "loop", "needless_refusal"), "medium"),
    **dict.fromkeys(("run failed", "error", "unrecovered_tool_error", "dangling_tool_call", "truncated"), "medium"),
    **dict.fromkeys(("empty_answer", "control_token", "", "fail", "assumed"), "medium"),
    "repetition": "low",
}
"""From Agentest's *Severity Levels*. Critical: security, data loss. High: contradictions, ignored requests, wrong tool
use. Medium: needless calls and questions. Low: wording. Visible problems such as crashes, and labels without a cause,
are medium.
"""
_MANY_CALLS = 10  # a loop with so many wasted calls is high
_PLAIN = (None, "pass", "fail", "assumed")
_STEPS = frozenset({"trace", "turn"})
_VERDICT = "correctness"
_MOST_REASON, _MOST_TITLE = 600, 120
FALSE_SUCCESS = "false_success"
"""The label of a run that claims an action that failed. It never shares a group with an honest failure."""
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|(?<!\w)'[^']{1,200}'(?!\w)|`[^`]{1,200}`")
_TOKEN = re.compile(r"https?://\S+|\w(?:(?!https?://)[\w-])*+")
_VOLATILE = re.compile(r"\d|://")
_STATUS = re.compile(r"[1-5]\d\d")
_CASE = re.compile(r"[0-9a-f]{8,}|\d+")


@dataclass(frozen=True, slots=True)
class Failure:
    """A result with a named problem.

    ``severity``: of the metric. ``turn``: 0-based. ``tool``, ``error``: from the metric.
    """

    result: str
    metric: str
    label: str
    reason: str
    severity: str | None = None
    trace_id: str = ""
    span_id: str = ""
    session_id: str | None = None
    agent: str = ""
    service: str = ""
    turn: int | None = None
    tool: str = ""
    error: str = ""
    blamed: str = ""
    """The tool of the first wrong step, if it is certain."""

    @property
    def text(self) -> str:
        """The text for comparison: the label with the cause, else the reason."""
        return f"{self.label}: {self.tool}: {self.cause}" if self.is_known else f"{self.label}: {self.reason}"

    @property
    def cause(self) -> str:
        return normalised(self.error)

    @property
    def where(self) -> str:
        return self.tool or self.blamed

    @property
    def is_known(self) -> bool:
        return bool(self.tool or self.error)

    @property
    def title(self) -> str:
        if not self.is_known:
            return cut(f"{self.label}: {self.reason}", _MOST_TITLE)
        what = ": ".join(filter(None, (self.tool, " ".join(self.error.split()))))
        return cut(f"{self.label.replace('_', ' ')}: {what}", _MOST_TITLE)

    @property
    def weight(self) -> str:
        return self.severity or severity_of(self.label)

    @property
    def place(self) -> str:
        """The place for people: ``turn 3 of trace 89403…``."""
        turn = "" if self.turn is None else f"turn {self.turn + 1}"
        session = f"session {self.session_id}" if self.session_id else ""
        whole = f"trace {self.trace_id[:12]}" if self.trace_id else session
        return " of ".join(filter(None, (turn, whole)))


def failure_of(result: Result) -> Failure | None:
    """Return the failure of a scored, failed and labelled result, else ``None``.

    A session's label needs a verdict or a declared severity.
    """
    finding = result.finding
    if not isinstance(finding, Score) or result.success is not False or finding.label in _PLAIN:
        return None
    declared = finding.metadata.get("severity")
    severity = declared if declared in SEVERITIES else None
    if finding.label == "loop" and finding.metadata.get("wasted_calls", 0) >= _MANY_CALLS:
        severity = severity or HIGH
    if result.unit.level not in _STEPS and severity is None and result.metric != _VERDICT:
        return None
    blame = finding.metadata.get("blame")
    step = blame if isinstance(blame, Mapping) else {}
    unit, turn = result.unit, finding.metadata.get("turn")
    return Failure(
        result=result.id,
        metric=result.key,
        label=str(finding.label),
        reason=cut(finding.reason, _MOST_REASON),
        severity=severity,
        trace_id=_text(step.get("trace_id")) or unit.trace_id,
        span_id=_text(step.get("span_id")) if "trace_id" in step else unit.span_id,
        session_id=unit.session_id,
        agent=unit.agent,
        service=unit.service,
        turn=turn if isinstance(turn, int) else None,
        tool=_text(finding.metadata.get("tool")),
        error=_text(finding.metadata.get("error")),
        blamed=_text(step.get("tool")),
    )


def _text(value: object) -> str:
    return cut(value, _MOST_REASON) if isinstance(value, str) else ""


def normalised(error: str) -> str:
    """Casefold an error, and replace numbers, ids, addresses and quoted text by ``#``. Status codes stay."""
    text = _QUOTED.sub("#", error)
    text = _TOKEN.sub(
        lambda found: "#" if _VOLATILE.search(found[0]) and not _STATUS.fullmatch(found[0]) else found[0], text
    )
    return " ".join(text.casefold().split())


def plain(text: str) -> str:
    """Replace numbers and ids by ``#``."""
    return _CASE.sub("#", text)


def severity_of(label: str) -> str:
    """Return the severity of a label; ``high`` if unknown."""
    return _BY_LABEL.get(label, HIGH)


def at_least(severity: str, least: str) -> bool:
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)


def group_id(result: str) -> str:
    """Return the group id: 12 hex digits of the first result's id."""
    return hashlib.blake2b(result.encode(), digest_size=6).hexdigest()


def gravity(labels: Iterable[str], severity: str) -> tuple[bool, int]:
    """Return the sort key of failures: false claims first, then by severity."""
    return FALSE_SUCCESS not in labels, -SEVERITIES.index(severity)
