"""Sends each question about a trace to the judge once, and shares the answer among metrics.

Verdicts are cached by a hash of model, parameters, prompt version, pack, rubric and facts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import Caller, CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_collector.judge.invalid_replies import MOST_INVALID, ReplyCount, ReplyCounts
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.prompt import PROMPT_VERSION, echo_code, messages, repair, response_format
from pandaeval_collector.judge.redact import redact_value
from pandaeval_collector.judge.reply import InvalidReplyError, read_reply
from pandaeval_collector.judge.rubric import Extraction, Facts, QuestionPart, Rubric, Verdict, rubric_of
from pandaeval_collector.judge.rulings import Guidance

_log = logging.getLogger(__name__)
_MAX_REFUSED = 1024

V = TypeVar("V", bound=Verdict)
P = TypeVar("P", bound=BaseModel)


class Memory(Protocol):
    """Stores earlier verdicts. :meth:`recall` may block; any thread."""

    def recall(self, key: str) -> bytes | None: ...
    async def keep(self, key: str, body: bytes) -> None: ...


class NoVerdictError(Exception):
    """The judge answered without a verdict; ``why`` becomes the result's reason."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(slots=True)
class AnswerCost:
    """Costs of a metric's answers: calls, tokens, US dollars, seconds and the last model.

    ``cached``: part of ``prompt``. ``completion``: with hidden reasoning. ``pack``: digest of the record, or ``""``.
    ``truncated``: shortened parts. ``suspected``: the record addresses a judge.
    """

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    model: str = ""
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    pack: str = ""
    truncated: tuple[str, ...] = ()
    suspected: bool = False

    def add(self, answer: ModelAnswer) -> None:
        self.calls += 1
        self.tokens += answer.tokens
        self.cost_usd += answer.cost_usd
        self.seconds += answer.seconds
        self.prompt += answer.prompt_tokens
        self.completion += answer.completion_tokens
        self.cached += answer.cached_tokens

    def pay(self, other: AnswerCost) -> None:
        for name in ("calls", "tokens", "prompt", "completion", "cached", "cost_usd"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.model = other.model or self.model

    def saw(self, pack: Pack) -> None:
        self.pack, self.truncated, self.suspected = pack.digest, pack.truncated, pack.suspected


class JudgeClient:
    """Sends questions through a caller and caches answers in ``memory``.

    ``parameters``: answer-changing parameters. ``secrets``: redact secrets in facts. One event loop.
    """

    def __init__(
        self,
        caller: Caller,
        memory: Memory | None = None,
        *,
        parameters: str = "",
        secrets: bool = True,
    ) -> None:
        self.secrets = secrets
        self._caller, self._memory, self._parameters = caller, memory, parameters
        self._asking: dict[str, asyncio.Task[tuple[Any, str]]] = {}
        self._counts = ReplyCounts()
        self._refused: OrderedDict[str, tuple[NoVerdictError | CallFailedError, set[str]]] = OrderedDict()
        """Failures that are remembered, with the names of the askers that were told."""

    async def ask(
        self,
        pack: Pack,
        model: str,
        rubric: Rubric[V],
        given: Mapping[str, Any],
        spent: AnswerCost,
        asker: str = "",
        about: str = "",
        once: bool = False,
    ) -> V:
        """Return the verdict. Equal concurrent questions share a call, paid by the first asker.

        ``asker``: the metric, which gets a permanent failure once without a call. ``about``: the trace, limited to nine
        invalid replies. ``once``: no repair.
        """
        spent.saw(pack)
        facts = json.dumps(given, sort_keys=True, ensure_ascii=False, default=str)
        asked_with = f"temperature=0{self._parameters} en"
        parts = [model, asked_with, PROMPT_VERSION, pack.digest, rubric.name, rubric.version, facts]
        key = hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
        if key in self._refused and key not in self._asking:
            error, informed_askers = self._refused[key]
            if asker and asker not in informed_askers:
                informed_askers.add(asker)
                # A copy, because a raised exception keeps its old traceback.
                if isinstance(error, NoVerdictError):
                    raise NoVerdictError(error.why, str(error))
                raise CallFailedError(error.failure, str(error), error.retry_after)
            del self._refused[key]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(
                self._verdict(key, pack, model, rubric, given, spent, self._counts.of(about), once)
            )
            task.add_done_callback(lambda done: self._done(key, done))
        try:
            verdict, spent.model = await asyncio.shield(task)
        except (NoVerdictError, CallFailedError) as error:
            # The same question would fail again, unless the provider was only unavailable.
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
            task.exception()  # marks the exception as read, else the loop logs it if no caller waits

    async def _verdict(
        self,
        key: str,
        pack: Pack,
        model: str,
        rubric: Rubric[V],
        given: Mapping[str, Any],
        spent: AnswerCost,
        count: ReplyCount,
        once: bool,
    ) -> tuple[V, str]:
        remembered = None if self._memory is None else self._memory.recall(key)
        if remembered is not None:
            try:
                held = json.loads(remembered)
                return rubric.verdict.model_validate_json(json.dumps(held["verdict"])), held["model"]
            except (KeyError, TypeError, ValueError):
                _log.warning("a remembered verdict of %s does not hold any more; the judge is asked again", rubric.name)
        asked, form = messages(pack, rubric, given), response_format(rubric)
        call = ModelCall(model, asked, rubric.max_tokens, form, more=once, cache_key=pack.agent_key)
        async with count.turn if once else nullcontext():
            verdict, answer = await self._read(call, pack, rubric, given, spent, count, once)
        if self._memory is not None:
            kept = {"model": answer.model, "verdict": verdict.model_dump(mode="json")}
            await self._memory.keep(key, json.dumps(kept).encode())
        return verdict, answer.model

    async def _read(
        self,
        call: ModelCall,
        pack: Pack,
        rubric: Rubric[V],
        given: Mapping[str, Any],
        spent: AnswerCost,
        count: ReplyCount,
        once: bool,
    ) -> tuple[V, ModelAnswer]:
        wrong = ""
        for is_last in (True,) if once else (False, True):
            if count.is_over:
                reason = f"no valid reply in {MOST_INVALID} calls about this trace"
                raise NoVerdictError(Why.INVALID_VERDICT, f"{reason}: {wrong}" if wrong else reason)
            try:
                answer, call = await self._whole(call, spent)
                reply_text, echo = pack.without_codes(answer.text), echo_code(pack, rubric)
                return read_reply(reply_text, rubric, echo, sure=is_last and not once, given=given), answer
            except InvalidReplyError as error:
                count.invalid += 1
                wrong = str(error)
                call = replace(call, messages=[*call.messages, repair(wrong)], held=True)
            except NoVerdictError:
                count.invalid += 1
                raise
        raise NoVerdictError(Why.INVALID_VERDICT, f"no verdict: {wrong}" if once else f"twice no verdict: {wrong}")

    async def _whole(self, call: ModelCall, spent: AnswerCost) -> tuple[ModelAnswer, ModelCall]:
        """Return a complete answer with its call; retries a cut answer once. Raises :class:`NoVerdictError`."""
        answer = await self._get(call, spent)
        if answer.cut and not call.more:
            call = replace(call, more=True)
            answer = await self._get(call, spent)
        if answer.cut:
            raise NoVerdictError(
                Why.INVALID_VERDICT,
                f"the answer was cut at {answer.max_tokens} tokens, also with more room; raise max_tokens in "
                "judge.parameters, or lower reasoning_effort",
            )
        return answer, call

    async def _get(self, call: ModelCall, spent: AnswerCost) -> ModelAnswer:
        answer = await self._caller.complete(call)
        spent.add(answer)
        spent.model = answer.model
        return answer


class Judge:
    """Answers a metric's questions about a trace.

    ``shorter``: makes a shorter pack. ``together``: questions in one call. ``guidance``: rulings. ``beside``: a turn
    for some of ``together``.
    """

    together: tuple[QuestionPart, ...] = ()
    about = ""
    """The trace. Nine invalid replies about it are the maximum."""
    is_test = False
    """Whether the call only tests if the model gives valid replies."""
    _guidance = Guidance()
    _was_shared = False

    def __init__(
        self,
        client: JudgeClient,
        pack: Pack,
        model: str,
        asker: str = "",
        shorter: Callable[[], Awaitable[Pack]] | None = None,
        together: tuple[QuestionPart, ...] = (),
        guidance: Guidance = Guidance(),  # noqa: B008 - immutable
        beside: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.together, self._guidance, self._shorter, self._subjects = together, guidance, shorter, beside
        self._client, self._pack, self._model, self._asker = client, pack, model, asker
        self.spent = AnswerCost()

    @property
    def pack(self) -> Pack:
        return self._pack

    async def ask(self, rubric: Rubric[V], given: Mapping[str, Any] | None = None, once: bool = False) -> V:
        """Return the verdict on the trace.

        ``given``: facts, fenced like the trace. ``once``: no repair. Raises :class:`NoVerdictError`, also if the trace
        instructs the judge.
        """
        rubric = self._guidance.added_to(rubric)
        facts = dict(given or {})
        if self._client.secrets:
            facts = {name: redact_value(value) for name, value in facts.items()}
        try:
            verdict = await self._ask(rubric, facts, once)
        except CallFailedError as error:
            shorter, self._shorter = self._shorter, None
            if error.failure is not CallFailure.TOO_LONG or shorter is None:
                raise
            self._pack = await shorter()
            verdict = await self._ask(rubric, facts, once)
        if verdict.instructed:
            raise NoVerdictError(Why.INJECTION_SUSPECTED, "the trace tries to tell the judge how to judge")
        return verdict

    async def answer(self, part: QuestionPart[P], subject: Any) -> tuple[P, dict[str, Any]]:
        """Return the answer to a question about the subject, preferably from the shared call. Raises as :meth:`ask`."""
        own = self._guidance.added_to(part) in self.together
        shared = await self._shared({part.level: subject, **self._subjects}) if own else None
        facts, lacking = self._facts(part, subject, shared)
        if self._was_shared and (lacking or getattr(shared, part.name, None) is None):
            shared = await self._again((*lacking, part), subject, facts)
        for needed in lacking:
            found = getattr(shared, needed.name, None)
            if found is None:
                found = await self.ask(rubric_of((needed,)), needed.given(subject, facts))
            facts |= needed.facts(found, subject)
        found = getattr(shared, part.name, None)
        if found is None:
            found = await self.ask(rubric_of((part,)), {**part.given(subject, facts), **part.of_pack(self.pack)})
        assert isinstance(found, part.answer)
        return found, facts

    def _facts(
        self, part: QuestionPart, subject: Any, shared: Verdict | None
    ) -> tuple[dict[str, Any], list[Extraction]]:
        facts: dict[str, Any] = {}
        lacking: list[Extraction] = []
        for needed in part.needs:
            known, found = needed.known(subject, self.pack), getattr(shared, needed.name, None)
            if known is None and found is None:
                lacking.append(needed)
            else:
                facts |= needed.facts(found, subject) if known is None else known
        return facts, lacking

    async def _again(self, parts: tuple[QuestionPart, ...], subject: Any, facts: Facts) -> Any:
        if self.is_test:
            raise NoVerdictError(Why.INVALID_VERDICT, "the shared call has no valid answer to this question")
        given: dict[str, Any] = {}
        for part in parts:
            given |= {**part.given(subject, facts), **part.of_pack(self.pack)}
        rubric = rubric_of(parts)
        verdict = await self.ask(rubric, given, once=True)
        if rubric.parts and (lost := [part.name for part in parts if getattr(verdict, part.name) is None]):
            raise NoVerdictError(Why.INVALID_VERDICT, f"no valid answer to {', '.join(lost)}")
        return verdict if rubric.parts else SimpleNamespace(**{parts[0].name: verdict})

    async def _shared(self, subjects: Mapping[str, Any]) -> Verdict | None:
        facts: dict[str, Any] = {}
        asked: dict[QuestionPart, None] = {}
        for needed in (each for part in self.together for each in part.needs):
            known = needed.known(subjects[needed.level], self.pack)
            facts |= known or {}
            if known is None:
                asked[needed] = None
        parts = (*asked, *self.together)
        if len(parts) < 2:
            return None
        self._was_shared = True
        given: dict[str, Any] = {}
        for part in parts:
            given |= {**part.given(subjects[part.level], facts), **part.of_pack(self.pack)}
        try:
            verdict: Verdict = await self.ask(rubric_of(parts), given)
        except NoVerdictError as error:
            if error.why is not Why.INVALID_VERDICT:
                raise
            return None
        return verdict

    async def _ask(self, rubric: Rubric[V], facts: Mapping[str, Any], once: bool) -> V:
        once = once or self.is_test
        return await self._client.ask(self._pack, self._model, rubric, facts, self.spent, self._asker, self.about, once)
