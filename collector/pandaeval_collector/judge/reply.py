"""From a model's words to a verdict, or to why there is none. A reply that does not hold is never a score."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pandaeval_collector.base.score import Why
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)

MAX_REPLY_CHARS = 64_000
_MOST_STARTS = 100
"""Opening braces in prose that are tried as the beginning of an object."""


class InvalidReplyError(Exception):
    """The reply is not a verdict; the message says what is wrong with it, for a repair and for the result."""


def read_reply(text: str, rubric: Rubric[V], echo: str, sure: bool = True) -> V:
    """Reads the verdict in a reply. Raises :class:`InvalidReplyError` for a cut reply or no JSON, a field given twice,
    a wrong shape or type (``true`` or ``"1.0"`` for a number), a value out of bounds, a wrong echo, a reason without a
    word; and, unless the model is ``sure`` since it was asked again, for ``1.0`` on a scale that begins at 1, where it
    often means the best of 0 to 1."""
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply has {len(text)} characters")
    document = _document(text, echo)
    try:
        verdict = rubric.verdict.model_validate_json(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # By our own names: an unexpected field may be named by the record, and error texts stand outside the fences.
        extra = first["type"] == "extra_forbidden"
        place = ".".join(map(str, first["loc"][:-1] if extra else first["loc"])) or "the reply"
        where = f"{place}, a field that is not in the schema" if extra else place
        raise InvalidReplyError(f"{where}: {first['msg']}") from error
    if verdict.echo.strip() != echo:
        raise InvalidReplyError("echo: the code of the question was not repeated")
    reason = getattr(verdict, "reason", None)
    if isinstance(reason, str) and not any(map(str.isalnum, reason)):
        raise InvalidReplyError("reason: it says nothing")
    for name in () if sure else _from_one(rubric.verdict):
        if re.search(rf'"{re.escape(name)}"\s*:\s*1\.0+\s*[,}}]', document):
            raise InvalidReplyError(f"{name}: 1.0 is the worst of this scale; write 1 if that is meant")
    return verdict


@cache
def _from_one(verdict: type[BaseModel]) -> tuple[str, ...]:
    """Returns the names of a verdict's numbers, nested ones too, whose scale begins at 1."""
    schema = verdict.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    fields = (pair for part in parts for pair in part.get("properties", {}).items())
    kinds = ((name, each) for name, field in fields for each in (field, *field.get("anyOf", ())))
    return tuple(dict.fromkeys(name for name, kind in kinds if kind.get("minimum") == 1 < kind.get("maximum", 0)))


def _document(text: str, echo: str) -> str:
    """Returns the JSON of a reply: all of it, or the one object that repeats the question's code, since small models
    add prose, fences of backticks or thoughts; content of the record cannot know the code."""
    said = text.rpartition("</think>")[2].strip()
    try:
        json.loads(said)
    except (ValueError, RecursionError):
        found = [each for each, value in _objects(said) if str(value.get("echo", "")).strip() == echo]
        if len(found) > 1:
            raise InvalidReplyError("not JSON alone: several objects with the code of the question") from None
        if found and any(map(str.isdecimal, said.rpartition(found[0])[2])):
            raise InvalidReplyError("not JSON alone: words with a number behind it may take it back") from None
        said = found[0] if found else said
    try:
        json.loads(said, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise InvalidReplyError("not JSON: nested too deeply") from error
    except ValueError as error:
        raise InvalidReplyError(f"not JSON: {error}") from error
    return said


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the outermost JSON objects in a text."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MOST_STARTS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        yield text[at:end], value
        at = end


def _once(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field is given twice")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


# Gets whole answers: behind the first call about a trace, and with more room where an answer was cut.
_CACHED_FROM = 600
"""Tokens of a record; with the message of the system before it, providers cache no shorter beginning."""
_REMEMBER = 1024
"""Beginnings that were sent; providers forget them after some minutes."""


class NoVerdictError(Exception):
    """The judge answered without a verdict; ``why`` becomes the result's reason."""

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(slots=True)
class AnswerCost:
    """The costs of one metric's answers: calls, tokens, US dollars, seconds of waiting for the model; the model that
    gave the last one, maybe a fallback; and what that model was shown.

    ``cached``: those of the tokens in ``prompt`` that the provider had in its cache; ``completion``: hidden reasoning
    included; ``pack``: digest of the record, ``""`` if nothing was asked; ``truncated``: the record's parts that were
    shortened; ``suspected``: words in the record speak to a judge."""

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

    def saw(self, pack: Pack) -> None:
        """Notes the record that a judge was shown, or whose verdict was remembered."""
        self.pack, self.truncated, self.suspected = pack.digest, pack.truncated, pack.suspected


class Answers:
    """Gets answers from one caller. On one event loop."""

    def __init__(self, caller: Caller) -> None:
        self._caller, self._first = caller, FirstCalls()

    async def first(self, call: ModelCall, pack: Pack, spent: AnswerCost) -> tuple[ModelCall, ModelAnswer]:
        """Makes the first call of a question, after the first one about its trace; again with more room if the answer
        was cut. Returns the call that was answered, and its answer. Raises as :meth:`whole` does."""
        if pack.tokens < _CACHED_FROM:
            answer = await self._get(call, spent)
        else:
            async with self._first.behind(f"{call.model} {pack.nonce} {pack.digest}"):
                answer = await self._get(call, spent)
        if not answer.cut:
            return call, answer
        longer = replace(call, more=True)
        return longer, await self.whole(longer, spent)

    async def whole(self, call: ModelCall, spent: AnswerCost) -> ModelAnswer:
        """Returns an answer that was not cut; makes the call once more with more room if that helps. Raises
        :class:`NoVerdictError` for an answer that is still cut, and what the caller raises."""
        answer = await self._get(call, spent)
        if answer.cut and not call.more:
            answer = await self._get(replace(call, more=True), spent)
        if answer.cut:
            raise NoVerdictError(
                Why.INVALID_VERDICT,
                f"the answer was cut at {answer.max_tokens} tokens, also with more room; raise judge.max_tokens, or "
                "lower judge.reasoning_effort",
            )
        return answer

    async def _get(self, call: ModelCall, spent: AnswerCost) -> ModelAnswer:
        answer = await self._caller.complete(call)
        spent.add(answer)
        spent.model = answer.model
        return answer


class FirstCalls:
    """Lets the first of several calls that begin alike go ahead: a provider caches a beginning once it has read it, so
    calls about one trace that are made at the same time would all miss the cache. On one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Event] = {}
        self._sent: OrderedDict[str, None] = OrderedDict()

    @asynccontextmanager
    async def behind(self, beginning: str) -> AsyncIterator[None]:
        """Waits while the first call with this beginning is under way, whether that succeeds or not."""
        if beginning in self._sent:
            yield
        elif (first := self._under_way.get(beginning)) is not None:
            await first.wait()
            yield
        else:
            done = self._under_way[beginning] = asyncio.Event()
            try:
                yield
            finally:
                del self._under_way[beginning]
                self._sent[beginning] = None
                while len(self._sent) > _REMEMBER:
                    self._sent.popitem(last=False)
                done.set()
