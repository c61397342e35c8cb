"""Asks a share of the questions twice: how much the second verdict differs from the first shows how much chance is in
the judge.

The second time the same words stand behind other fences, and the first verdict is not in memory; what was extracted
from the run before (its task, its plan) is. Costs one call per retest, within the judge's limits and budget.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pandaeval_collector.evaluator import Question
from pandaeval_collector.judge.call import Caller, CallFailedError, OverBudgetError
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_collector.judge.sample import included
from pandaeval_collector.judging.agreement import Agreement
from pandaeval_collector.score import Finding, Score
from pandaeval_collector.telemetry import Telemetry
from pandaeval_otel.model import Trace

V = TypeVar("V", bound=Verdict)
CHECK = "retest"


class Forgetful:
    """Implements :class:`pandaeval_collector.judge.desk.Memory`: knows nothing, keeps nothing."""

    def recall(self, key: str) -> bytes | None:
        return None

    async def keep(self, key: str, body: bytes) -> None:
        """Nothing."""


class _Again(Judge):
    """Asks ``name`` anew, and what leads to it as before."""

    def __init__(self, before: Judge, anew: Judge, name: str) -> None:
        self._before, self._anew, self._name = before, anew, name
        self.spent = anew.spent

    @property
    def last_said(self) -> str:
        return self._before.last_said

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None) -> V:
        return await (self._anew if rubric.name == self._name else self._before).ask(rubric, given)


class Retest:
    """``share``: of the results, 0..1, by a hash of their id. On one event loop."""

    def __init__(self, caller: Caller, agreement: Agreement, telemetry: Telemetry, share: float, secrets: bool) -> None:
        self._caller, self._agreement, self._telemetry = caller, agreement, telemetry
        self._share, self._secrets = share, secrets

    async def beside(self, question: Question, trace: Trace, pack: Pack, first: Judge, finding: Finding) -> Finding:
        """The finding, with what a second verdict says in its metadata if this is one of those that get one, and with
        how far the judge agreed with itself so far (``judge_agreement``). The score is the first verdict's, always;
        its costs are those of both."""
        if not isinstance(finding, Score) or not first.spent.calls:
            return finding
        about: dict[str, Any] = {}
        if included(f"retest {question.id}", self._share):
            second = await self._second(question, trace, pack, first)
            if second is not None:
                apart = abs(second.value - finding.value)
                about["retest"] = {"score": second.value, "difference": apart}
                await self._agreement.add(CHECK, question.metric.key, question.model, 1.0 - apart)
        shown = self._agreement.of(CHECK, question.metric.key, question.model)
        if shown is not None:
            about["judge_agreement"] = {"value": shown.value, "n": shown.n}
        return replace(finding, metadata={**finding.metadata, **about}) if about else finding

    async def _second(self, question: Question, trace: Trace, pack: Pack, first: Judge) -> Score | None:
        """``None`` where there is nothing to compare: that the provider is away says nothing about the judge."""
        anew = Judge(Desk(self._caller, Forgetful()), _fenced_anew(pack), question.model, self._secrets)
        asked = question.metric.ask
        assert asked is not None
        outcome, found = "no_verdict", None
        try:
            found = await asked(trace, _Again(first, anew, question.metric.name))
            outcome = "compared" if isinstance(found, Score) else "no_verdict"
        except NoVerdictError:
            outcome = "no_verdict"
        except (CallFailedError, OverBudgetError):
            outcome = "not_asked"
        first.spent.calls += anew.spent.calls
        first.spent.tokens += anew.spent.tokens
        first.spent.cost_usd += anew.spent.cost_usd
        self._telemetry.add("pandaeval.judge.retests", outcome)
        return found if isinstance(found, Score) else None


def _fenced_anew(pack: Pack) -> Pack:
    nonce = hashlib.sha256(f"again {pack.nonce}".encode()).hexdigest()[: len(pack.nonce)]
    return replace(pack, nonce=nonce, text=pack.text.replace(pack.nonce, nonce))
