"""Where metrics ask: each question about a trace is put to a model once, however many metrics want the answer.

Verdicts are remembered under the hash of all that they depend on: model, parameters, prompt version, pack without its
nonce, rubric and what was given with it. So are failures that asking again would not change, until each metric that
wants the answer has heard of them: an extraction that cannot be had costs its calls once a trace, not once a metric.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import Caller, CallFailedError, CallFailure, ModelCall
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.prompt import ENGLISH, PROMPT_VERSION, echo_code, messages, repair, response_format
from pandaeval_collector.judge.redact import redact_value
from pandaeval_collector.judge.reply import AnswerCost, Answers, InvalidReplyError, NoVerdictError, read_reply
from pandaeval_collector.judge.rubric import Guidance, QuestionPart, Rubric, Verdict

__all__ = ["AnswerCost", "Desk", "Judge", "Memory", "NoVerdictError"]

_log = logging.getLogger(__name__)
_MAX_REFUSED = 1024

V = TypeVar("V", bound=Verdict)


class Memory(Protocol):
    """Remembers earlier verdicts. :meth:`recall` may block for a look-up; any thread."""

    def recall(self, key: str) -> bytes | None: ...
    async def keep(self, key: str, body: bytes) -> None: ...


class Desk:
    """Asks questions through one caller, and remembers the answers; reasons are given in ``language``. ``asked_with``
    returns those parameters of a model's calls that may change its answers, as a text. On one event loop."""

    def __init__(
        self,
        caller: Caller,
        memory: Memory,
        *,
        language: str = ENGLISH,
        asked_with: Callable[[str], str] = lambda model: "",
    ) -> None:
        self._answers, self._memory, self._language, self._asked_with = Answers(caller), memory, language, asked_with
        self._asking: dict[str, asyncio.Task[tuple[Any, str]]] = {}
        self._refused: OrderedDict[str, tuple[NoVerdictError | CallFailedError, set[str]]] = OrderedDict()
        """Failures that are remembered, with the names of the askers that were told."""

    async def ask(
        self, pack: Pack, model: str, rubric: Rubric[V], given: Mapping[str, Any], spent: AnswerCost, asker: str = ""
    ) -> V:
        """Returns the verdict; waits if the same question is being asked already. The costs go to the first asker.

        ``asker``: the metric that asks. A failure that would not pass is raised once for each asker without a call;
        whoever asks again, or has no name, has the model asked again.
        """
        spent.saw(pack)
        asked_with = f"{self._asked_with(model)} {self._language}"
        facts = json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)
        parts = [model, f"temperature=0{asked_with}", PROMPT_VERSION, pack.digest, rubric.name, rubric.version, facts]
        key = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
        if key in self._refused and key not in self._asking:
            error, told = self._refused[key]
            if asker and asker not in told:
                told.add(asker)
                # A copy: one that was raised before would keep its old traceback.
                if isinstance(error, NoVerdictError):
                    raise NoVerdictError(error.why, str(error))
                raise CallFailedError(error.failure, str(error), error.retry_after)
            del self._refused[key]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._verdict(key, pack, model, rubric, given, spent))
            task.add_done_callback(lambda done: self._done(key, done))
        try:
            verdict, spent.model = await asyncio.shield(task)
        except (NoVerdictError, CallFailedError) as error:
            # The same question would fail again: a provider may come back, a refused prompt stays refused.
            stays = isinstance(error, NoVerdictError) or error.failure in (CallFailure.REFUSED, CallFailure.TOO_LONG)
            if asker and stays:
                self._refused.setdefault(key, (error, set()))[1].add(asker)
                while len(self._refused) > _MAX_REFUSED:
                    self._refused.popitem(last=False)
            raise
        if not isinstance(verdict, rubric.verdict):
            raise TypeError(f"two rubrics are called {rubric.name} {rubric.version}")
        return verdict

    def _done(self, key: str, task: asyncio.Task[Any]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits has it; without this the loop complains if nobody waits any more

    async def _verdict(
        self, key: str, pack: Pack, model: str, rubric: Rubric[V], given: Mapping[str, Any], spent: AnswerCost
    ) -> tuple[V, str]:
        """Returns the remembered verdict with its model; else asks, and asks once more with what is wrong with the
        answer if it is no verdict."""
        remembered = self._memory.recall(key)
        if remembered is not None:
            try:
                held = json.loads(remembered)
                return rubric.verdict.model_validate_json(json.dumps(held["verdict"])), held["model"]
            except (KeyError, TypeError, ValueError):
                _log.warning("a remembered verdict of %s does not hold any more; the judge is asked again", rubric.name)
        echo = echo_code(pack, rubric)
        call = ModelCall(
            model, messages(pack, rubric, given, self._language), rubric.max_tokens, response_format(rubric)
        )
        call, answer = await self._answers.first(call, pack, spent)
        try:
            verdict = _read(answer.text, rubric, echo, given, sure=False)
        except InvalidReplyError as error:
            said = [*call.messages, repair(str(error))]
            answer = await self._answers.whole(replace(call, messages=said, held=True), spent)
            try:
                verdict = _read(answer.text, rubric, echo, given)
            except InvalidReplyError as again:
                raise NoVerdictError(Why.INVALID_VERDICT, f"twice no verdict: {again}") from again
        kept = {"model": answer.model, "verdict": verdict.model_dump(mode="json")}
        await self._memory.keep(key, json.dumps(kept).encode())
        return verdict, answer.model


class Judge:
    """Answers a metric's questions about one trace. ``shorter`` makes a shorter pack, if ``pack`` proves too long for
    the model's window. ``together``: the questions about the trace that are put in one call. ``guidance``: the
    guidelines that are added to the metric's own question."""

    together: tuple[QuestionPart[Any], ...] = ()

    def __init__(
        self,
        desk: Desk,
        pack: Pack,
        model: str,
        secrets: bool = True,
        asker: str = "",
        shorter: Callable[[], Awaitable[Pack]] | None = None,
        together: tuple[QuestionPart[Any], ...] = (),
        guidance: Guidance = Guidance(),  # noqa: B008 - it never changes
    ) -> None:
        self.together, self._guidance, self._shorter = together, guidance, shorter
        self._desk, self._pack, self._model, self._secrets, self._asker = desk, pack, model, secrets, asker
        self.spent = AnswerCost()

    @property
    def pack(self) -> Pack:
        """The record as it is shown now."""
        return self._pack

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None) -> V:
        """Returns the verdict on the trace. ``given``: facts from code or an earlier extraction; fenced like the trace.

        Raises :class:`NoVerdictError` when the reply is no verdict, or when the trace tries to instruct the judge: such
        verdicts are worth nothing, good or bad.
        """
        rubric = self._guidance.added_to(rubric)
        facts = dict(given or {})
        if self._secrets:
            facts = {name: redact_value(value) for name, value in facts.items()}
        try:
            verdict = await self._ask(rubric, facts)
        except CallFailedError as error:
            shorter, self._shorter = self._shorter, None
            if error.failure is not CallFailure.TOO_LONG or shorter is None:
                raise
            self._pack = await shorter()
            verdict = await self._ask(rubric, facts)
        if verdict.instructed:
            raise NoVerdictError(Why.INJECTION_SUSPECTED, "the trace tries to tell the judge how to judge")
        return verdict

    async def _ask(self, rubric: Rubric[V], facts: Mapping[str, Any]) -> V:
        return await self._desk.ask(self._pack, self._model, rubric, facts, self.spent, self._asker)


def _read(text: str, rubric: Rubric[V], echo: str, given: Mapping[str, Any], sure: bool = True) -> V:
    verdict = read_reply(text, rubric, echo, sure)
    wrong = None if rubric.check is None else rubric.check(verdict, given)
    if wrong is not None:
        raise InvalidReplyError(wrong)
    return verdict
