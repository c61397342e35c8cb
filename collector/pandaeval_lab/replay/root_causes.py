"""Groups of failures with a common root cause, and grouping by code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.store.failures import Failure, gravity, group_id

_EXAMPLES, _PLACES = 3, 6


@dataclass(frozen=True, slots=True)
class RootCause:
    """A group of failures."""

    title: str
    description: str
    severity: str
    members: tuple[Failure, ...]

    @property
    def id(self) -> str:
        return group_id(self.members[0].result)

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def examples(self) -> tuple[Failure, ...]:
        return self.members[:_EXAMPLES]

    @property
    def heading(self) -> str:
        return f"[{self.severity}] {self.title} ({self.count} occurrence(s))"

    @property
    def places(self) -> str:
        return ", ".join(member.place for member in self.members[:_PLACES]) + (", …" if self.count > _PLACES else "")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(member.label for member in self.members))

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "severity": self.severity,
            "occurrences": self.count,
            "labels": [*self.labels],
        }


def by_code(failures: Iterable[Failure], least: str | None = None) -> tuple[RootCause, ...]:
    """Group failures by metric, label, tool and normalised error.

    ``least``: default severity; ``None``: the label's.
    """
    found: dict[tuple[str, ...], list[Failure]] = {}
    for failure in failures:
        found.setdefault((failure.metric, failure.label, failure.where, failure.cause), []).append(failure)
    causes = []
    for first, *others in found.values():
        title = first.title if first.is_known else f"{first.metric}: {first.label}"
        weight = first.severity or least or first.weight
        causes.append(RootCause(title, first.reason, weight, (first, *others)))
    return worst_first(causes)


def worst_first(groups: Iterable[RootCause]) -> tuple[RootCause, ...]:
    """Sort groups: false claims first, then by severity and size."""
    return tuple(sorted(groups, key=lambda group: (*gravity(group.labels, group.severity), -group.count)))
