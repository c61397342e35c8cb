"""The route to a model: address, parameters and availability. Only for the worker process."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from pandaeval_collector.judge.call import JudgeConfig, room
from pandaeval_collector.judge.keys import missing_key
from pandaeval_collector.judge.known_models import KnownModel, known, record_budget
from pandaeval_collector.judge.shorten import tokens

_SHORT_ANSWER = 900
"""Tokens that are enough for most answers."""
_LEAST_ANSWER = 256
_MARKED = (1, 2)
"""The messages whose ends are marked: the agent with the criteria, and the run."""
_MORE_THAN_COUNTED = 1.25
"""The factor by which a prompt may exceed our estimate."""
_LEAST_MARKED = 1_024
"""Minimum tokens of a prefix that providers cache."""
_WEAKER: Mapping[str, str] = {"json_schema": "json_object", "json_object": ""}
"""The next weaker form, by the form that a provider refused."""


_TEMPLATE = re.compile(
    r"roles? must alternate|must alternate|alternat\w{1,8} (?:between )?(?:user|roles?)|only user and assistant roles"
    r"|system (?:role|messages?|prompts?) (?:is |are )?(?:not|un)\s?-?support|(?:not|n't) support\w* (?:the )?"
    r"[`'\"]?system|unexpected role|invalid role|role[`'\" :]+system|multiple user messages|chat template"
)
"""Error texts of servers whose chat template rejects the messages."""
_NOT_TAKEN = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|invalid|extra|deprecated|not accept"
)
_MAY_GO = ("temperature", "max_tokens")
"""Parameters that can be omitted or renamed (``max_completion_tokens``)."""

_FAILS = 3
_PROBING_S = 1.0
"""Seconds that calls wait while another call tests the provider."""


class Route:
    """The route to a model. ``keyless``: the variable of its API key if that is not set, else empty."""

    def __init__(self, setup: JudgeConfig, model: str, known: KnownModel) -> None:
        self.model, self.timeout, self.known = model, setup.timeout, known
        self._parameters, self._context_tokens = setup.parameters, setup.context_tokens
        self.breaker = Breaker(setup.cooldown)
        self._reasons = self.known.reasons
        self._accepted: dict[str, str] = {}
        """By form of an answer, as OpenAI names it, the form that the provider accepted in its place."""
        self._left_out: set[str] = set()
        self._merged = False
        """Parameters that it refused, and whether its template takes no system message, or no two of one role."""
        self._reached = _reached(setup, model)
        self.keyless = ""

    @classmethod
    def of(cls, litellm: Any, setup: JudgeConfig, model: str) -> Route:
        route = cls(setup, model, known(litellm, model))
        route.keyless = "" if "api_key" in route._reached else missing_key(_provider(litellm, model), os.environ)
        return route

    @property
    def budget(self) -> int:
        if self._context_tokens is not None:
            return self._context_tokens
        return record_budget(self.known.window, room(_SHORT_ANSWER, self._parameters, self._reasons, None))

    def form(self, call: Mapping[str, Any]) -> str:
        """Return the OpenAI name of the enforced form, or ``""``. Only repairs use the schema."""
        form: str = (self._parameters.get("response_format") or {"type": "json_object"})["type"]
        if call.get("response_format") is None or form == "text":
            return ""
        form = "json_schema" if call.get("held") else form
        return self._accepted.get(form, form)

    def weaker(self, form: str) -> str | None:
        return None if form in self._accepted.values() else _WEAKER.get(form)

    def took(self, wanted: str, form: str) -> None:
        """Record the accepted ``form`` in place of ``wanted``."""
        self._accepted[wanted] = form

    def adapt(self, refusal: str) -> bool:
        """Adapt the route permanently to a refusal. Returns whether the route changed."""
        refusal_text = refusal.lower()
        if not self._merged and _TEMPLATE.search(refusal_text):
            self._merged = True
            return True
        if not _NOT_TAKEN.search(refusal_text):
            return False
        named = next((name for name in _MAY_GO if name in refusal_text and name not in self._left_out), None)
        if named is not None:
            self._left_out.add(named)
        return named is not None

    def thought(self, reply: Mapping[str, Any]) -> None:
        """Record whether the model thinks first, so that answers get room."""
        hidden = reply["usage"].get("reasoning_tokens")
        self._reasons = self._reasons or bool(hidden and hidden > _LEAST_ANSWER)

    def request(self, call: Mapping[str, Any], form: str) -> dict[str, Any]:
        own, sent = self._parameters, sum(tokens(message["content"]) for message in call["messages"])
        most = room(call["max_tokens"], own, self._reasons, self.known.most_out, bool(call.get("more")))
        if self.known.window is not None:
            most = min(most, max(_LEAST_ANSWER, self.known.window - int(sent * _MORE_THAN_COUNTED)))
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": self._messages(call["messages"]),
            "max_completion_tokens" if "max_tokens" in self._left_out else "max_tokens": most,
            "temperature": 0.0,
            "timeout": self.timeout,
            "max_retries": 0,
            **self._reached,
        }
        if form:
            asked["response_format"] = call["response_format"] if form == "json_schema" else {"type": form}
        if self.known.keyed and "api_base" not in self._reached:  # other servers with this API may reject cache keys
            asked["prompt_cache_key"] = call.get("cache_key") or None
        if self._marked(call["messages"]):
            asked["cache_control_injection_points"] = [{"location": "message", "index": at} for at in _MARKED]
        if own.get("reasoning_effort") is not None:
            del asked["temperature"]  # reasoning models reject a temperature
            asked["allowed_openai_params"] = ["reasoning_effort"]
        if "temperature" in self._left_out:
            asked.pop("temperature", None)
        asked |= {name: value for name, value in own.items() if name not in ("max_tokens", "response_format")}
        return {name: value for name, value in asked.items() if value is not None}

    def _messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if self._merged:
            return [{"role": "user", "content": "\n\n".join(message["content"] for message in messages)}]
        return messages

    def _marked(self, messages: list[dict[str, Any]]) -> bool:
        if not self.known.marks or self._merged or len(messages) <= max(_MARKED):
            return False
        return sum(tokens(message["content"]) for message in messages[: max(_MARKED) + 1]) >= _LEAST_MARKED


def _reached(setup: JudgeConfig, model: str) -> dict[str, Any]:
    if setup.home not in (None, model.partition("/")[0]):
        return {}
    given = {"api_base": setup.api_base, "api_key": os.environ.get(setup.api_key_env or "")}
    return {key: value for key, value in given.items() if value}


def _provider(litellm: Any, model: str) -> str:
    try:
        return str(litellm.get_llm_provider(model)[1])
    except litellm.BadRequestError:
        return ""  # a provider that litellm does not know; asking says so


class Breaker:
    """A provider's circuit breaker: open for ``rest`` seconds after three consecutive failures, then a test call
    decides. ``clock``: seconds. One event loop.
    """

    def __init__(self, rest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._clock = rest, clock
        self._failures = 0
        self._open_until: float | None = None
        self._probing = False
        self.reason = ""
        """The last failure, which a call that is not tried reports."""

    @property
    def is_closed(self) -> bool:
        return self._open_until is None

    def closed_in(self) -> float:
        """Request a call. Returns 0 if allowed (then report its outcome), else seconds to wait."""
        if self._open_until is None:
            return 0.0
        left = self._open_until - self._clock()
        if left > 0.0:
            return left
        if self._probing:
            return _PROBING_S
        self._probing = True
        return 0.0

    def succeeded(self) -> None:
        self._failures, self._open_until, self._probing = 0, None, False

    def failed(self, reason: str, rest: float | None = None) -> None:
        """Report a provider failure. ``rest``: seconds requested by the provider."""
        self.reason = reason
        self._failures += 1
        if self._probing or self._failures >= _FAILS:
            self._open_until = self._clock() + max(self._rest, rest or 0.0)
        self._probing = False

    def left(self) -> None:
        """Report a call that was cancelled or not allowed, so it shows nothing about the provider."""
        self._probing = False
