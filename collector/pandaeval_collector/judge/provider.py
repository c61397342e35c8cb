"""Calls providers through litellm, with retries, fallbacks and circuit breakers.

litellm's Router ignores refused connections. Only for the worker process (:mod:`pandaeval_collector.judge.worker`), on
one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx

from pandaeval_collector.base.untrusted.foreign import explained, secrets_in
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.judge.route import Route

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
"""Seconds between two tries of a call, with jitter. If a provider requests a longer pause, the job waits."""
_COUNTED = 2
"""Failed tries of a call that count against a provider, so that a single bad prompt does not stop other calls."""
_AGAIN = frozenset({"timeout", "unavailable", "rate_limit"})
"""Failures after which the same model is tried again."""
_MAY_BE_FORM = frozenset({"refused", "unavailable"})
"""Failures that the form of the request can cause."""
_FINE = frozenset({"refused", "too_long"})
"""Failures that do not count against the provider."""

Allowed = Callable[[str, bool, int], Awaitable[None]]
"""Awaited before each try; returns when the try may begin. Receives the model, whether the previous answer was
unreadable, and the maximum answer tokens."""

Reply = dict[str, Any]
"""The worker's report of a call, as a JSON object."""

_TOO_LONG = re.compile(
    "context[ _]length|context (?:window|size)|maximum context|(?:prompt|input) is too long|too many tokens|"
    "exceeds the available context"
)
"""Error texts of providers about a prompt that is longer than the model's window."""
_LONGEST_ASKED_S = 900.0
MAX_TEXT = 65_000
"""Maximum characters of a verdict. The rest is cut."""
_LONGEST_COUNT = 20
_CUT, _NATIVE = "length", "native_finish_reason"
_REFUSED = frozenset({"content_filter", "safety", "refusal", "recitation"})
"""Finish reasons of refused answers: OpenAI's names, and other names that litellm returns."""


class ProviderCaller:
    def __init__(self, setup: JudgeConfig) -> None:
        litellm: Any = importlib.import_module("litellm")
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        litellm.turn_off_message_logging = True
        self._litellm = litellm
        self._refusals = litellm.BadRequestError, litellm.UnprocessableEntityError
        self._of_form = *self._refusals, litellm.InternalServerError, litellm.APIError
        self._secrets = secrets_in(os.environ, setup.api_key_env)
        self._fallbacks, self._retries = setup.fallbacks, setup.retries
        self.models = list(dict.fromkeys([*setup.models, *setup.fallbacks]))
        self._routes = {model: Route.of(litellm, setup, model) for model in self.models}

    def known(self) -> dict[str, Any]:
        """Return US dollars per token (in, out, cached), if listed, and the record budget per model."""
        return {
            model: {
                "price": self._routes[model].known.price,
                "budget": min(self._routes[each].budget for each in self._in_order(model)),
            }
            for model in self.models
        }

    def _in_order(self, model: str) -> list[str]:
        return [model] if model in self._fallbacks else [model, *self._fallbacks]

    async def warm_up(self) -> None:
        """Run litellm's lazy imports, outside of a call's timeout. Sends nothing."""
        asked = [{"role": "user", "content": "x"}]
        with contextlib.suppress(self._litellm.BadRequestError):  # an unknown model; the first call reports it
            await self._litellm.acompletion(model=self.models[0], messages=asked, mock_response="x")

    async def answer(self, call: Mapping[str, Any], allowed: Allowed) -> Reply:
        failures: list[Reply] = []
        unread = False
        for model in self._in_order(call["model"]):
            reply = await self._tried(self._routes[model], call, allowed, unread)
            if reply["ok"]:
                return reply
            failures.append(reply)
            unread = reply["answered"]
        tried = [each for each in failures if each["failure"] != "cooldown"]
        if not tried:
            return min(failures, key=lambda each: each["retry_after"])
        return {**tried[0], "answered": unread}

    async def _tried(self, route: Route, call: Mapping[str, Any], allowed: Allowed, unread: bool) -> Reply:
        if route.keyless:
            return failed("denied", f"{route.keyless} is not set", answered=unread)
        reply: Reply | None = None
        for number in range(1 + self._retries):
            wait = route.breaker.closed_in()
            if wait > 0.0:
                return reply or failed("cooldown", route.breaker.reason, wait, unread)
            unread = reply["answered"] if reply else unread
            try:
                reply = await self._once(route, call, allowed, unread)
            except BaseException:
                route.breaker.left()
                raise
            if reply["ok"] or reply["failure"] in _FINE:
                route.breaker.succeeded()
            elif number < _COUNTED:
                route.breaker.failed(reply["message"], reply["retry_after"])
            else:
                route.breaker.left()
            pause = _pause(number, reply)
            if pause is None or number == self._retries or not route.breaker.is_closed:
                break
            await asyncio.sleep(pause)
        assert reply is not None
        return reply

    async def _once(self, route: Route, call: Mapping[str, Any], allowed: Allowed, unread: bool) -> Reply:
        form = wanted = route.form(call)
        while True:
            request = route.request(call, form)
            most = request.get("max_tokens") or request.get("max_completion_tokens") or call["max_tokens"]
            await allowed(route.model, unread, most)
            try:
                # The provider's client restarts its timeout with every byte, so a slow stream could block the call
                # forever.
                async with asyncio.timeout(route.timeout + 1.0):
                    response = await self._litellm.acompletion(**request)
            except TimeoutError:
                return failed("timeout", "the answer did not come in time")
            except Exception as error:  # noqa: BLE001 - an error of a provider's client ends only this try
                reply = failure_of(self._litellm, error, self._secrets)
                other = self._other_form(route, form, error, reply)
            else:
                if response is not None:
                    route.took(wanted, form)
                    return self._read(route, response, most)
                # litellm returns None for some refusals, instead of an error.
                reply = failed("unavailable", "nothing could be read of the answer", answered=True)
                other = route.weaker(form)
            if other is None:
                return reply
            form, unread = other, False

    def _read(self, route: Route, response: Any, most: int) -> Reply:
        reply = answered(response, route.model, most)
        if reply["ok"]:
            route.thought(reply)
        return reply

    def _other_form(self, route: Route, form: str, error: Exception, reply: Reply) -> str | None:
        of_content = isinstance(error, self._litellm.ContentPolicyViolationError)
        if of_content or not isinstance(error, self._of_form) or reply["failure"] not in _MAY_BE_FORM:
            return None
        if route.adapt(str(error)):
            return form
        return route.weaker(form) if isinstance(error, self._refusals) else None


def _pause(number: int, reply: Reply) -> float | None:
    if reply["ok"] or reply["failure"] not in _AGAIN:
        return None
    asked = float(reply["retry_after"] or 0.0)
    own = _FIRST_PAUSE_S * 2.0**number * random.uniform(0.5, 1.5)
    return max(asked, min(own, _LONGEST_PAUSE_S)) if asked <= _LONGEST_PAUSE_S else None


def failed(kind: str, message: str, retry_after: float | None = None, answered: bool = False) -> Reply:
    """Make a failed call's reply.

    ``kind``: a :class:`pandaeval_collector.judge.call.CallFailure`. ``answered``: unreadable, but may be billed.
    """
    return {"ok": False, "failure": kind, "message": message, "retry_after": retry_after, "answered": answered}


def failure_of(litellm: Any, error: Exception, secrets: tuple[str, ...]) -> Reply:
    """Convert a litellm exception to a failed reply, without ``secrets``."""
    error_text, message = str(error).lower(), explained(error, secrets)
    # Some servers have their own error classes for a too long prompt.
    of_request = isinstance(error, litellm.BadRequestError | litellm.APIError | litellm.InternalServerError)
    if isinstance(error, litellm.ContextWindowExceededError) or (of_request and _TOO_LONG.search(error_text)):
        return failed("too_long", message)
    # litellm found no usable provider; the class of the error suggests a server error.
    if "missing credentials" in error_text or "llm provider not provided" in error_text:
        return failed("denied", message)
    kinds: tuple[tuple[str, tuple[type[Exception], ...]], ...] = (
        ("timeout", (litellm.Timeout,)),
        ("denied", (litellm.AuthenticationError, litellm.PermissionDeniedError, litellm.NotFoundError)),
        ("refused", (litellm.ContentPolicyViolationError, litellm.BadRequestError)),
        ("rate_limit", (litellm.RateLimitError,)),
    )
    kind = next((kind for kind, types in kinds if isinstance(error, types)), "unavailable")
    headers, wait = getattr(getattr(error, "response", None), "headers", None) or {}, None
    with contextlib.suppress(KeyError, ValueError):
        wait = min(_LONGEST_ASKED_S, max(0.0, float(headers["retry-after"])))
    return failed(kind, message, wait, unreadable(error))


def unreadable(error: BaseException | None) -> bool:
    """Return whether a try failed over the answer's content: no network error, no status code."""
    link = error
    while link is not None:
        if isinstance(link, OSError | httpx.HTTPError):
            return False
        if isinstance(link, ArithmeticError | AttributeError | LookupError | TypeError | ValueError):
            return True
        link = link.__cause__ or link.__context__
    return False


def answered(response: Any, model: str, max_tokens: int) -> Reply:
    """Convert litellm's response to a reply. ``cut``: ended at its token limit. Refused and broken-off answers fail."""
    choice = response.choices[0] if response.choices else None
    message = getattr(choice, "message", None)
    reasons = {str(each).lower() for each in (getattr(choice, "finish_reason", None), _own(choice, _NATIVE)) if each}
    if reasons & _REFUSED or _own(message, "refusal"):
        return failed("refused", "the model or its provider refused to answer", answered=True)
    if "error" in reasons:
        return failed("unavailable", "the provider broke the answer off", answered=True)
    text = getattr(message, "content", None)
    return {
        "ok": True,
        "text": text[:MAX_TEXT] if isinstance(text, str) else "",
        "cut": _CUT in reasons,
        "usage": _usage(response),
        "max_tokens": max_tokens,
        "model": model,
    }


def _own(part: Any, name: str) -> Any:
    return (getattr(part, "provider_specific_fields", None) or {}).get(name)


def _usage(response: Any) -> dict[str, Any]:
    usage = getattr(response, "usage", None)
    stated = {
        "prompt_tokens": getattr(usage, "prompt_tokens", None),
        "completion_tokens": getattr(usage, "completion_tokens", None),
        "cached_tokens": getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None),
        "reasoning_tokens": getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None),
        "cost_usd": (getattr(response, "_hidden_params", None) or {}).get("response_cost"),
    }
    for name, value in stated.items():
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < _LONGEST_COUNT:
            stated[name] = int(value)
        elif not isinstance(value, int | float):
            stated[name] = None
    return stated
