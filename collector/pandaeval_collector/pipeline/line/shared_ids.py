"""Finds services that use the same session id, and separates their sessions.

Services belong to the same group if they have a common trace or linked traces. The group with the earliest trace keeps
the session id. Another group gets an id with its alphabetically first service. Groups are joined, never split: if a
later trace joins two groups, the traces of one group move. The result does not depend on arrival order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.base.session_ids import own_id, shares
from pandaeval_collector.pipeline.line.linked_traces import LinkedTrace, Order
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.store import ResponseRow, StoreReader, response_digest

Services = tuple[str, ...]
_LAST: Order = (1 << 63, "")
_LINKED = "link to "
"""Prefix of the lookup ids of traces that link to a trace."""


@dataclass(slots=True, eq=False)
class _Group:
    """A group of services. ``first``: order of the earliest trace, ``None`` until it is read. ``filed``: ids of the
    group's stored sessions.
    """

    services: set[str]
    first: Order | None
    filed: set[str]


class SharedId:
    """The groups of services under one session id."""

    def __init__(self, sent: str) -> None:
        self.sent = sent
        self.groups: list[_Group] = []

    def add(self, services: Iterable[str], first: Order | None, filed: Iterable[str] = ()) -> None:
        """Add the services of a trace, or of a session ``filed``, and join their groups."""
        new = _Group({*services}, first, {*filed})
        for group in [each for each in self.groups if each.services & new.services]:
            self.groups.remove(group)
            new.services |= group.services
            new.filed |= group.filed
            new.first = min((each for each in (new.first, group.first) if each), default=None)
        self.groups.append(new)

    def join(self, turns: Sequence[LinkedTrace]) -> None:
        """Join the services of linked traces."""
        of_trace = {turn.trace_id: turn for turn in turns}
        for turn in turns:
            for linked in [of_trace[id_] for id_ in turn.links if id_ in of_trace]:
                self.add((*turn.services, *linked.services), None)

    def ids(self) -> dict[str, _Group]:
        """Return each group by the id of its session. If the session with the sent id was deleted, a stored group keeps
        its own id.
        """
        is_taken = any(self.sent in group.filed for group in self.groups)
        candidates = [group for group in self.groups if is_taken or not group.filed]
        first = min(candidates, key=lambda group: group.first or _LAST, default=None)
        found: dict[str, _Group] = {}
        for group in self.groups:
            id_ = self.sent
            if group is not first:
                id_ = own_id(self.sent, min(group.services))
            found[id_] = group
        return found


@dataclass(slots=True)
class Separated:
    """``sessions``: by trace id, where they differ from the sent id. ``renamed``: stored sessions with a new id.
    ``services``: to be stored, by session. ``lookups``: rows for later traces.
    """

    sessions: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    services: dict[str, Services] = field(default_factory=dict)
    lookups: list[ResponseRow] = field(default_factory=list)

    def place(self, turns: Iterable[LinkedTrace], groups: Mapping[str, _Group]) -> None:
        """Note the sessions of traces with the same sent id. ``groups``: by session."""
        of_service = {service: session for session, group in groups.items() for service in group.services}
        for turn in turns:
            session = of_service[turn.services[0]]
            if session != turn.named:
                self.sessions[turn.trace_id] = session

    def note_changes(self, groups: Mapping[str, _Group], before: Mapping[str, Services]) -> None:
        """Note the changes of stored sessions with the same sent id. ``groups``, ``before``: by session."""
        now = {session: tuple(sorted(group.services)) for session, group in groups.items()}
        self.services |= dict.fromkeys(before.keys() - now.keys(), ())
        self.services |= {session: services for session, services in now.items() if services != before.get(session)}
        self.renamed |= {old: new for new, group in groups.items() for old in group.filed if old != new}


def separated(turns: Iterable[LinkedTrace]) -> dict[str, str]:
    """Return the sessions of complete input, by trace id, where they differ from the sent id."""
    found = Separated()
    for sent, some in _named(turns).items():
        shared = SharedId(sent)
        for turn in some:
            shared.add(turn.services, turn.order)
        shared.join(some)
        found.place(some, shared.ids())
    return found.sessions


class SharedIds:
    """Separates services of a running collector. Reads the store only."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store

    def place(self, turns: Sequence[LinkedTrace]) -> Separated:
        """Return the sessions of traces."""
        found = Separated()
        named = _named(turns)
        stored = self._store.services_of([*named]) if named else {}
        for sent, some in named.items():
            before = {session: services for session, services in stored.items() if shares(session, sent)}
            groups = self._shared(sent, some, before).ids()
            found.place(some, groups)
            found.note_changes(groups, before)
            for turn in some:
                trace_id = bytes.fromhex(turn.trace_id)
                found.lookups += [ResponseRow(trace_id, response_digest(_LINKED + id_), True) for id_ in turn.links]
        return found

    def _shared(self, sent: str, turns: Sequence[LinkedTrace], before: Mapping[str, Services]) -> SharedId:
        shared = SharedId(sent)
        for session, services in before.items():
            shared.add(services, None, [session])
        for turn in turns:
            shared.add(turn.services, turn.order)
        if len(shared.groups) > 1:
            shared.join([*turns, *self._around(sent, turns)])
            for group in shared.groups:
                stored = map(self._first_of, group.filed)
                group.first = min(each for each in (group.first, *stored) if each)
        return shared

    def _first_of(self, session_id: str) -> Order:
        """Return the order of the first trace with a known service in a stored session."""
        members = map(from_row, self._store.session_facts(session_id))
        return next((member.order for member in members if member.facts.all_services), _LAST)

    def _around(self, sent: str, turns: Sequence[LinkedTrace]) -> list[LinkedTrace]:
        """Return stored traces of the session id that are linked with these traces, in either direction."""
        wanted = [bytes.fromhex(id_) for turn in turns for id_ in turn.links]
        rows = [*self._store.left_behind(wanted).values()]
        rows += self._store.responses.traces([_LINKED + turn.trace_id for turn in turns], continued=True)
        return [LinkedTrace.stored(row, {}) for row in rows if shares(row.session_id, sent)]


def _named(turns: Iterable[LinkedTrace]) -> dict[str, list[LinkedTrace]]:
    """Return the traces with a session id and a known service, by session id."""
    named: dict[str, list[LinkedTrace]] = {}
    for turn in turns:
        if turn.named is not None and turn.services:
            named.setdefault(turn.named, []).append(turn)
    return named
