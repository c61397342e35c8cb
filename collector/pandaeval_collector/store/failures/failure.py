"""Which results are failures, and how grave a label is by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pandaeval_collector.base.filters import SEVERITIES as SEVERITIES
from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.base.score import Score

HIGH = "high"
"""Of a failure of which nothing else is known, and of one that could not be grouped."""
_BY_LABEL = {
    "unsafe state": "critical",
    "unsafe action": "critical",
    "false information": "high",
    "disobey user request": "high",
    "lack of specific information": "medium",
    "failure to ask for clarification": "medium",
    "repetition": "low",
    "ignored tool result": "high",
    "wrong tool": "high",
    "wrong arguments": "high",
    "missing tool call": "high",
    "repeated tool call": "medium",
    "unnecessary tool call": "medium",
}
"""Agentest, evaluation metrics, *Severity Levels*: security and data loss are critical; contradictions, ignored
requests and wrong use of tools high; needless calls and questions medium; wording low."""
_PLAIN = (None, "pass", "fail", "assumed")
_STEPS = frozenset({"trace", "turn"})
_MOST_REASON, _MOST_TITLE = 600, 120
FALSE_SUCCESS = "false_success"
"""The label of a run that claims what it did not do."""
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|(?<!\w)'[^']{1,200}'(?!\w)|`[^`]{1,200}`")
_VOLATILE = re.compile(r"https?://\S+|\b[\w-]*\d[\w-]*")
_STATUS = re.compile(r"[1-5]\d\d")


@dataclass(frozen=True, slots=True)
class Failure:
    """A result that says what went wrong. ``result``: its id; ``severity``: what the metric declares, else ``None``;
    ``turn``: 0-based index of the turn in its conversation, where that is known. ``tool``, ``error``: the tool that it
    is about and what failed, where the metric states them as facts."""

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
    """The tool of the step that broke the run, where that is sure."""

    @property
    def text(self) -> str:
        """What a judge tells it apart by from others: by code's cause where code knows it, else in its own words."""
        return f"{self.label}: {self.tool}: {self.cause}" if self.is_known else f"{self.label}: {self.reason}"

    @property
    def cause(self) -> str:
        """The error without what differs from case to case."""
        return normalised(self.error)

    @property
    def where(self) -> str:
        """The tool that it is about, else that of the step that broke the run."""
        return self.tool or self.blamed

    @property
    def is_known(self) -> bool:
        """Whether code knows the cause: a tool, an error or both."""
        return bool(self.tool or self.error)

    @property
    def claims_success(self) -> bool:
        """Whether the agent claims what it did not do: such a failure shares a group with no honest one."""
        return self.label == FALSE_SUCCESS

    @property
    def title(self) -> str:
        """What happened, of this failure and of all with its cause."""
        if not self.is_known:
            return cut(f"{self.label}: {self.reason}", _MOST_TITLE)
        what = ": ".join(filter(None, (self.tool, " ".join(self.error.split()))))
        return cut(f"{self.label.replace('_', ' ')}: {what}", _MOST_TITLE)

    @property
    def weight(self) -> str:
        """Its severity by itself: the declared one, else that of its label."""
        return self.severity or severity_of(self.label)

    @property
    def place(self) -> str:
        """Where it happened, for people: ``turn 3 of trace 89403…``; turns count from 1."""
        turn = "" if self.turn is None else f"turn {self.turn + 1}"
        session = f"session {self.session_id}" if self.session_id else ""
        whole = f"trace {self.trace_id[:12]}" if self.trace_id else session
        return " of ".join(filter(None, (turn, whole)))


def failure_of(result: Result) -> Failure | None:
    """The failure that a result is, if it is one: it has a score, does not pass, and its label says what went wrong.
    What only fails a threshold says nothing of a cause, and what could not be scored is no failure of the agent. Of a
    whole session a label sums up; it counts where its metric declares a severity."""
    finding = result.finding
    if not isinstance(finding, Score) or result.success is not False or finding.label in _PLAIN:
        return None
    declared = finding.metadata.get("severity")
    severity = declared if declared in SEVERITIES else None
    if result.unit.level not in _STEPS and severity is None:
        return None
    step = finding.metadata.get("blame")
    unit, turn = result.unit, finding.metadata.get("turn")
    return Failure(
        result=result.id,
        metric=f"{unit.level}.{result.metric}",
        label=str(finding.label),
        reason=cut(finding.reason, _MOST_REASON),
        severity=severity,
        trace_id=unit.trace_id,
        span_id=unit.span_id,
        session_id=unit.session_id,
        agent=unit.agent,
        service=unit.service,
        turn=turn if isinstance(turn, int) else None,
        tool=_text(finding.metadata.get("tool")),
        error=_text(finding.metadata.get("error")),
        blamed=_text(step.get("tool")) if isinstance(step, Mapping) else "",
    )


def _text(value: object) -> str:
    return cut(value, _MOST_REASON) if isinstance(value, str) else ""


def normalised(error: str) -> str:
    """An error without numbers, ids, addresses and quoted values, in small letters. Status codes stay: 404 and 500 are
    two errors."""
    text = _QUOTED.sub("#", error)
    text = _VOLATILE.sub(lambda found: found[0] if _STATUS.fullmatch(found[0]) else "#", text)
    return " ".join(text.casefold().split())


def severity_of(label: str) -> str:
    """How grave a label is by itself; ``high`` for one that no table names."""
    return _BY_LABEL.get(label, HIGH)


def at_least(severity: str, least: str) -> bool:
    """Whether a severity is ``least`` or graver."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)
