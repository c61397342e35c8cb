"""Waits for the spans of a run. If an agent sends no spans, sends its messages and known calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import many, notice
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.graders import reads_answers
from pandaeval_lab.running.attempts import Attempted, Tracing
from pandaeval_lab.running.receiver import SpanReceiver

_FLUSH_MS, _POLL_S = 30_000, 0.2


class Arrivals:
    """The spans of the attempts that ended. ``agents``: by name; ``wait_s``: the longest wait."""

    def __init__(
        self,
        receiver: SpanReceiver,
        tracing: Tracing,
        agents: Mapping[str, AgentEntry],
        attempts: Sequence[Attempted],
        wait_s: float,
    ) -> None:
        self._receiver, self._tracing, self._agents, self._attempts = receiver, tracing, agents, attempts
        self._wait_s = wait_s
        self._good = [each for each in attempts if each.has_ended and not (each.error or each.spoilt)]
        self._asked_us = {each.agent for each in attempts if any(turn.log.calls for turn in each.turns)}

    async def wait(self) -> None:
        """Raise ``UserError`` if no attempt can be graded because spans are missing."""
        deadline = time.monotonic() + self._wait_s
        due = [each for each in self._good if not (self._is_known(each) or not self._agents[each.agent].spans)]
        undue = [each for each in self._good if each not in due]
        await self._send(undue)
        remote = {id_ for each in due if self._agents[each.agent].is_remote for id_ in each.trace_ids}
        await self._arrived(remote, deadline)
        owners = owners_of(self._receiver, self._attempts)
        traced = self._receiver.traced_by_agent(owners)
        with_spans = {owners[id_].session for id_ in traced}
        silent = [each for each in due if each.session not in with_spans]
        if not remote and self._receiver.items().keys() - owners.keys():
            return
        self._tell(silent, [each for each in undue if not self._is_known(each)])
        await self._send(silent, traced)
        await self._arrived((), deadline)

    def _is_known(self, attempt: Attempted) -> bool:
        """Return whether the runner makes all calls of the agent."""
        return attempt.agent in self._asked_us

    async def _send(self, attempts: Sequence[Attempted], traced: Collection[str] = ()) -> None:
        for attempt in attempts:
            for turn in attempt.turns:
                if turn.trace_id not in traced:
                    self._tracing.record(turn, self._is_known(attempt))
        await asyncio.to_thread(self._tracing.flush, _FLUSH_MS)

    async def _arrived(self, remote: Collection[str], deadline: float) -> None:
        # The first span of each trace is ours, and mocks send spans at once. A remote agent can send late.
        ids = [id_ for each in self._good for id_ in each.trace_ids]
        while not await self._receiver.is_complete(ids, remote) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)

    def _tell(self, silent: Sequence[Attempted], declared: Sequence[Attempted]) -> None:
        """Report agents without spans. ``declared``: attempts with ``spans: false``."""
        without = [*silent, *declared]
        if not without:
            return
        cure = "instrument it (docs/start/python.md), and set the global TracerProvider when its module is loaded"
        if any(self._agents[each.agent].is_remote for each in silent):
            addresses = f"{self._receiver.grpc} (gRPC) or http://{self._receiver.http}"
            cure = f"have it send OTLP to {addresses}, in the trace of the header traceparent"
        problem = f"no spans of the agent arrived for {len(without)} of {many(len(self._good), 'attempt')}"
        if len(without) == len(self._good) and not any(reads_answers(each.case) for each in without):
            raise UserError(f"{problem}: {cure}")
        if silent:
            known = "graders of answers run, but graders of tool calls have no score"
            notice(f"{problem}: {known}. To change this, {cure}")


def owners_of(receiver: SpanReceiver, attempts: Sequence[Attempted]) -> dict[str, Attempted]:
    """Return the attempt of each trace ID.

    Includes the traces of all turns, and other arrived traces that contain an attempt's session ID.
    """
    turns = {id_: attempt for attempt in attempts for id_ in attempt.trace_ids}
    sessions = {attempt.session: attempt for attempt in attempts}
    named = receiver.naming(sessions, receiver.items().keys() - turns.keys())
    return {**turns, **{id_: sessions[session] for id_, session in named.items()}}
