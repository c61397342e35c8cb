"""Finds out which answers of a session have to be compared with which, which traces have to be read again with
earlier ones, and which failures later ones made up for, when traces come into it or leave it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pandaeval_collector.analysis.rules.grounding.before import MOST_TRACES, Before, before
from pandaeval_collector.analysis.rules.response import ASKS_ON, HONEST, Ending
from pandaeval_collector.analysis.stats.similarity import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.members import Member, unpack_answers
from pandaeval_collector.scoring.metric import EarlierOutput


@dataclass(slots=True)
class Stretch:
    """The members of a session in their order, from position ``first`` of the session to its end."""

    session_id: str
    first: int
    members: list[Member]


@dataclass(slots=True)
class LoopComparison:
    """A comparison to be made: the answer of ``member`` with the ``earlier`` ones, oldest first, given by their
    positions among the members of ``stretch``. ``evidence``: digest of the answers compared, which goes into the id of
    the result."""

    stretch: Stretch
    member: Member
    earlier: Sequence[int]
    evidence: str

    def outputs(self) -> tuple[EarlierOutput, ...]:
        """Returns the earlier answers that the member's is compared with."""
        first, members = self.stretch.first, self.stretch.members
        return tuple(
            EarlierOutput(members[at].trace_id, first + at, *members[at].direction_and_words()) for at in self.earlier
        )


def comparisons(stretch: Stretch, fresh: Collection[str], embedder: str) -> Iterator[LoopComparison]:
    """Yields the comparisons of ``fresh`` traces, and those of older traces whose predecessors have changed."""
    members = stretch.members
    first_new = next((index for index, member in enumerate(members) if member.changed), 0)
    for index in range(first_new, len(members)):
        member = members[index]
        earlier = _earlier(members, index, embedder)
        evidence = _evidence(member, [members[at] for at in earlier])
        if member.trace_id in fresh or member.facts.loop_evidence != evidence:
            yield LoopComparison(stretch, member, earlier, evidence)


@dataclass(slots=True)
class Rereading:
    """The trace of ``member`` is to be read again with what the ``earlier`` traces of its session held. ``evidence``:
    digest of all of them, which goes into the ids of its results."""

    session_id: str
    member: Member
    earlier: Sequence[Member]
    evidence: str

    def before(self) -> Before:
        """Returns what the earlier traces held, for metrics that are read with it."""
        responses = frozenset(id_ for member in self.earlier for id_ in member.facts.responses)
        return before([member.held for member in self.earlier], responses)


def rereadings(stretch: Stretch, fresh: Collection[str]) -> Iterator[Rereading]:
    """Yields ``fresh`` traces with something unsettled, and older ones whose predecessors have changed."""
    members = stretch.members
    first_new = next((index for index, member in enumerate(members) if member.changed), 0)
    for index in range(first_new, len(members)):
        member = members[index]
        if not member.facts.unsettled:
            continue
        earlier = members[max(0, index - MOST_TRACES) : index]
        used = ";".join([member.facts.digest, *(f"{each.trace_id}:{each.facts.digest}" for each in earlier), ""])
        evidence = hashlib.blake2b(used.encode(), digest_size=16).hexdigest()
        if member.trace_id in fresh or member.facts.before_evidence != evidence:
            yield Rereading(stretch.session_id, member, earlier, evidence)


@dataclass(slots=True)
class Recovery:
    """The run of ``member`` owned up to a call that failed for good, of ``tool``; in the trace ``by``, one of the next
    three of its session, that tool changed what it was to change. ``evidence``: digest of both traces, which goes into
    the id of the result."""

    session_id: str
    member: Member
    by: Member
    tool: str
    evidence: str

    def finding(self) -> Score:
        """Returns what is said of the run once a later trace made up for its failure."""
        said = self.member.facts.signals["response"].get("said") or f"{self.tool} failed"
        metadata = {"ending": Ending.UNRECOVERED_TOOL_ERROR.value, "tool": self.tool, "lost_tool": self.tool}
        reason = f"{said}; a later trace of the session made up for it"
        return Score(ASKS_ON, reason, {**metadata, "recovered_by": self.by.trace_id})


def recoveries(stretch: Stretch) -> Iterator[Recovery]:
    """Yields the recoveries in a session that were not told yet."""
    for index, member in enumerate(stretch.members):
        signal = member.facts.signals.get("response")
        tool = signal.get("lost") if signal is not None and signal["value"] == HONEST else None
        if not tool:
            continue
        by = next((each for each in stretch.members[index + 1 : index + 1 + WINDOW] if tool in each.facts.done), None)
        if by is None:
            continue
        used = f"{member.facts.digest};{by.trace_id}:{by.facts.digest}"
        evidence = hashlib.blake2b(used.encode(), digest_size=16).hexdigest()
        if member.facts.recovered != evidence:
            yield Recovery(stretch.session_id, member, by, tool, evidence)


def speak_together(found: Sequence[LoopComparison], embedder: str) -> None:
    """Prepares the vectors and words of all answers that will be compared, at once: numpy takes as long for a few rows
    as for one."""
    used = [each.stretch.members[at] for each in found for at in each.earlier]
    used += [each.member for each in found if each.member.facts.embedder == embedder]
    unpack_answers(list({id(member): member for member in used}.values()))


def _earlier(members: Sequence[Member], index: int, embedder: str) -> list[int]:
    """Returns the positions of the newest three answers of the same agent that were finished before a trace began,
    oldest first; none for a trace without an answer, which is compared with nothing."""
    member = members[index]
    if not member.facts.said:
        return []
    agent, start_ns = member.facts.agent, member.start_ns
    found: list[int] = []
    for position in range(index - 1, -1, -1):
        if members[position].precedes(agent, start_ns, embedder):
            found.append(position)
            if len(found) == WINDOW:
                break
    return found[::-1]


def _evidence(member: Member, earlier: Sequence[Member]) -> str:
    """Returns the digest of what a comparison depends on: the trace's own digest and those of the earlier traces."""
    if not earlier:
        return member.facts.digest
    used = [f"{each.trace_id}:{each.facts.digest}" for each in earlier]
    return hashlib.blake2b(";".join([member.facts.digest, *used]).encode(), digest_size=16).hexdigest()


def suffices(
    newest: Sequence[Member], start_ns: int, agents: Collection[str], embedder: str, unsettled: bool = False
) -> bool:
    """Returns whether ``newest``, the newest members of a session, include all that its traces from ``start_ns`` on, or
    new ones of ``agents``, have to be compared with; and, for traces that are ``unsettled``, all that they are read
    again with."""
    unsettled = unsettled or any(member.facts.unsettled for member in newest if member.start_ns >= start_ns)
    if unsettled and sum(member.start_ns < start_ns for member in newest) < MOST_TRACES:
        return False
    agents = {*agents, *(member.facts.agent for member in newest if member.start_ns >= start_ns)}
    return all(sum(member.precedes(agent, start_ns, embedder) for member in newest) >= WINDOW for agent in agents)
