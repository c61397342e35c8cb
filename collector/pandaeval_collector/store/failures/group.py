"""A group of failures with one root cause."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.store.failures.failure import FALSE_SUCCESS, Failure

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
        """The labels of its failures, each once."""
        return tuple(dict.fromkeys(member.label for member in self.members))

    def to_dict(self) -> dict[str, Any]:
        """Returns the group as results and programs have it."""
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


def by_code(failures: Iterable[Failure], least: str | None = None) -> tuple[RootCause, ...]:
    """A group for each tool, normalised error and label of a metric where code knows these, else for each label: as
    near to a cause as code comes without a judge. ``least``: the severity of those for which no metric declares one."""
    found: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        found.setdefault((failure.metric, failure.label, failure.where, failure.cause), []).append(failure)
    return worst_first(_coded(members, least) for members in found.values())


def _coded(members: Sequence[Failure], least: str | None) -> RootCause:
    first = members[0]
    title = first.title if first.is_known else f"{first.metric}: {first.label}"
    weight = first.severity or least or first.weight
    return RootCause(title, first.reason, weight, tuple(members), grouped=False)


def worst_first(groups: Iterable[RootCause]) -> tuple[RootCause, ...]:
    """Sorts groups: those of agents that claim what they did not do, then the gravest, of those the largest."""
    return tuple(sorted(groups, key=lambda group: (*gravity(group.labels, group.severity), -group.count)))


def gravity(labels: Iterable[str], severity: str) -> tuple[bool, int]:
    """The key by which failures are sorted wherever they are listed: claims of what was not done, then the gravest."""
    return FALSE_SUCCESS not in labels, -SEVERITIES.index(severity)


def shown(groups: Sequence[RootCause]) -> list[dict[str, Any]]:
    """Returns the groups as a page shows them."""
    return [{**group.to_dict(), "examples": [_example(each) for each in group.examples]} for group in groups[:_SHOWN]]


def _example(failure: Failure) -> dict[str, str]:
    return {"place": failure.place, "trace": failure.trace_id}


def as_text(groups: Sequence[RootCause]) -> str:
    """Writes the groups for people, several lines; ``""`` for no group."""
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
