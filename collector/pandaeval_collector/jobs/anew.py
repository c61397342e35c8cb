"""Puts a metric's own question once more, with what leads to it (the task, the plan) as it was found the first time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pandaeval_collector.jobs.desks import Desks
from pandaeval_collector.judge.desk import AnswerCost, Judge, Memory
from pandaeval_collector.judge.guidelines import Guidance
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.parts import TOGETHER, QuestionPart
from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)


class Forgetful:
    """Implements :class:`pandaeval_collector.judge.desk.Memory`: knows nothing, keeps nothing."""

    def recall(self, key: str) -> bytes | None:
        return None

    async def keep(self, key: str, body: bytes) -> None:
        """Nothing."""


class Apart:
    """Implements :class:`pandaeval_collector.judge.desk.Memory` on another: what is kept under one name is not found
    under any other."""

    def __init__(self, memory: Memory, name: str) -> None:
        self._memory, self._name = memory, name

    def recall(self, key: str) -> bytes | None:
        return self._memory.recall(f"{key} {self._name}")

    async def keep(self, key: str, body: bytes) -> None:
        await self._memory.keep(f"{key} {self._name}", body)


class Again(Judge):
    """Asks the rubric ``name`` anew, also where it is one of several in a call, and what leads to it as before."""

    def __init__(self, before: Judge, anew: Judge, name: str) -> None:
        self._before, self._anew, self._name = before, anew, name
        self.spent = anew.spent

    @property
    def pack(self) -> Pack:
        return self._before.pack

    @property
    def last_said(self) -> str:
        return self._before.last_said

    @property
    def together(self) -> tuple[QuestionPart[Any], ...]:  # type: ignore[override]
        return self._before.together

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None) -> V:
        own = rubric.name == self._name or rubric.name == TOGETHER
        return await (self._anew if own else self._before).ask(rubric, given)


def anew(desks: Desks, memory: Memory, pack: Pack, model: str, name: str, guidance: Guidance) -> Judge:
    """A judge of the same run with a memory of its own. ``name`` tells its fences apart from those of others."""
    return Judge(desks.desk(memory), _fenced(pack, name), model, desks.secrets, guidance=guidance)


def pay(account: AnswerCost, other: AnswerCost) -> None:
    """Puts the costs of one on the account of another, who gave the verdict."""
    account.calls += other.calls
    account.tokens += other.tokens
    account.prompt += other.prompt
    account.completion += other.completion
    account.cached += other.cached
    account.cost_usd += other.cost_usd


def _fenced(pack: Pack, name: str) -> Pack:
    nonce = hashlib.sha256(f"{name} {pack.nonce}".encode()).hexdigest()[: len(pack.nonce)]
    return replace(pack, nonce=nonce, text=pack.text.replace(pack.nonce, nonce))
