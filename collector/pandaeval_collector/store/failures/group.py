"""A group of failures with one root cause."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.store.failures.failure import HIGH, SEVERITIES, Failure

_EXAMPLES = 3
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RootCause:
    """``title``, ``description``: the root cause in words; ``members``: its failures in their order, at least one;
    ``grouped``: whether a judge named the cause, and not code for want of one."""

    title: str
    description: str
    severity: str
    members: tuple[Failure, ...]
    grouped: bool = True

    @property
    def id(self) -> str:
        """12 hex digits, the same for the same first failure."""
        return group_id(self.members[0].result)

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def examples(self) -> tuple[Failure, ...]:
        """The first few."""
        return self.members[:_EXAMPLES]

    @property
    def labels(self) -> tuple[str, ...]:
        """Those of its failures, each once."""
        return tuple(dict.fromkeys(member.label for member in self.members))

    def to_dict(self) -> dict[str, Any]:
        """As results and programs have it."""
        return {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "severity": self.severity,
            "occurrences": self.count,
            "labels": [*self.labels],
        }


def group_id(result: str) -> str:
    """The id of the group that a failure begins: 12 hex digits of the id of its result."""
    return hashlib.blake2b(result.encode(), digest_size=6).hexdigest()


def alone(failure: Failure, severity: str = HIGH) -> RootCause:
    """A failure that shares its cause with no other, as far as is known."""
    return RootCause(failure.label, failure.reason, failure.severity or severity, (failure,), grouped=False)


def by_label(failures: Iterable[Failure]) -> tuple[RootCause, ...]:
    """A group for each label of a metric: as near to a cause as code comes without a judge."""
    found: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        found.setdefault((failure.metric, failure.label), []).append(failure)
    return worst_first(
        RootCause(f"{metric}: {label}", members[0].reason, members[0].weight, tuple(members), grouped=False)
        for (metric, label), members in found.items()
    )


def worst_first(groups: Iterable[RootCause]) -> tuple[RootCause, ...]:
    """The gravest first, of those the largest."""
    return tuple(sorted(groups, key=lambda group: (-SEVERITIES.index(group.severity), -group.count)))


def shown(groups: Sequence[RootCause]) -> list[dict[str, Any]]:
    """As a page shows them."""
    return [{**group.to_dict(), "examples": [_example(each) for each in group.examples]} for group in groups[:_SHOWN]]


def _example(failure: Failure) -> dict[str, str]:
    return {"place": failure.place, "trace": failure.trace_id}


def as_text(groups: Sequence[RootCause]) -> str:
    """For people, several lines; ``""`` for no group."""
    if not groups:
        return ""
    lines = ["Unique errors:"]
    for group in groups:
        lines.append(f"  [{group.severity}] {group.title} ({group.count} occurrence(s))")
        lines.append(f"    {group.description}")
        more = ", …" if group.count > 2 * _EXAMPLES else ""
        shown = group.members[: 2 * _EXAMPLES]
        lines.append(f"    Examples: {', '.join(member.place for member in shown)}{more}")
    return "\n".join(lines)
