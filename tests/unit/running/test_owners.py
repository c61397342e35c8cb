"""Traces of attempts, and leftovers of killed runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pandaeval_lab.cases.model import Case
from pandaeval_lab.running.arrivals import owners_of
from pandaeval_lab.running.attempts import Attempted
from pandaeval_lab.running.receiver import SpanReceiver


class _Came(SpanReceiver):
    """Arrival times by trace."""

    def __init__(self, requests: Mapping[str, bytes]) -> None:
        self._came = requests

    def items(self) -> Mapping[str, int]:
        return dict.fromkeys(self._came, 1)

    def _requests(self, ids: Collection[str]) -> Iterator[tuple[str, bytes]]:
        yield from ((id_, data) for id_, data in self._came.items() if id_ in ids)


def _attempt(session: str, *trace_ids: str) -> Attempted:
    return Attempted(Case(id="c"), "1", session, [*trace_ids])


def test_a_trace_belongs_to_the_attempt_of_its_turn_or_of_its_session_id() -> None:
    attempts = [_attempt("a/1/ff", "11", "12"), _attempt("b/a/1/ff")]
    came = {"11": b"", "21": b"session b/a/1/ff", "31": b"session a/1/ff", "41": b"session a/1/ee", "51": b""}
    owners = owners_of(_Came(came), attempts)
    assert {id_: owner.session for id_, owner in owners.items() if id_ in came} == {
        "11": "a/1/ff",
        "21": "b/a/1/ff",
        "31": "a/1/ff",
    }, "traces of an earlier run belong to no attempt"
