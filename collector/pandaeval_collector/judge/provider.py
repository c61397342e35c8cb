"""How a provider is asked, through litellm: what one call becomes, and what comes back or went wrong, as JSON objects.

For the worker's process alone (:mod:`pandaeval_collector.judge.worker`), on one event loop.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import httpx

from pandaeval_collector.judge.keys import missing_key
from pandaeval_collector.untrusted.foreign import explained, secrets_in

MAX_TEXT = 65_000
"""No verdict is longer; what is behind is not passed on."""
_ALLOWED_FAILS, _COOLDOWN_S, _RETRIES = 3, 30.0, 2
_BETWEEN_TRIES_S = 8.0
"""The longest that the Router waits by itself; if a provider asks for more, the job waits instead."""


Allowed = Callable[[str, bool], Awaitable[None]]
"""Returns once a try of this model may be made. It hears whether the try before was answered with what nobody could
read."""


class Clock:
    """What is left of the time of one try. It stands still while the try waits until it is allowed."""

    def __init__(self, seconds: float, limit: asyncio.Timeout, allowed: Allowed) -> None:
        self._seconds, self._limit, self._allowed = seconds, limit, allowed
        self.answered = False
        """The latest try was, with something that nobody could read."""

    async def attempt(self, model: str) -> None:
        self._limit.reschedule(None)
        answered, self.answered = self.answered, False
        await self._allowed(model, answered)
        self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)


_clock: ContextVar[Clock] = ContextVar("clock")
"""That of the call which the running task is about."""


class ProviderCaller:
    """Calls through litellm's Router: timeouts, retries, Retry-After, fallbacks and cool-downs are its business."""

    def __init__(self, setup: dict[str, Any]) -> None:
        litellm: Any = importlib.import_module("litellm")
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        litellm.turn_off_message_logging = True
        litellm.callbacks = [_around_each_try()]
        self._litellm = litellm
        self._secrets = secrets_in(os.environ, setup.get("api_key_env"))
        self._timeout = float(setup["timeout"])
        self._plain: set[str] = set()
        """Models whose provider does not know ``response_format``."""
        self._shaped: set[str] = set()
        """Models whose provider does."""
        self._fallbacks = [str(model) for model in setup.get("fallbacks", ())]
        self.models = list(dict.fromkeys([*map(str, setup["models"]), *self._fallbacks]))
        retries = int(setup.get("retries", _RETRIES))
        deployments = [_deployment(setup, model, self._timeout) for model in self.models]
        self._keyless = {
            each["model_name"]: missing
            for each in deployments
            if "api_key" not in each["litellm_params"] and (missing := missing_key(litellm, each["model_name"]))
        }
        self._router = litellm.Router(
            model_list=deployments,
            num_retries=retries,
            allowed_fails=int(setup.get("allowed_fails", _ALLOWED_FAILS)),
            cooldown_time=float(setup.get("cooldown", _COOLDOWN_S)),
            routing_strategy="simple-shuffle",
            timeout=self._timeout,
            fallbacks=[{model: others} for model in self.models if (others := self._instead_of(model))],
        )
        # The provider's client counts its timeout anew with every byte: a drip would hold us forever.
        self._longest = self._timeout + (_BETWEEN_TRIES_S if retries or self._fallbacks else 0.0) + 1.0

    def _instead_of(self, model: str) -> list[str]:
        """Who is asked when this model fails."""
        return [] if model in self._fallbacks else self._fallbacks

    def prices(self) -> dict[str, tuple[float, float]]:
        """US dollars per token in and out, of the models that litellm knows."""
        found = {}
        for model in self.models:
            try:
                info = self._litellm.get_model_info(model)
            except Exception:  # noqa: BLE001, S112 - it raises a bare Exception for a model that it does not know
                continue
            found[model] = (float(info["input_cost_per_token"] or 0), float(info["output_cost_per_token"] or 0))
        return found

    async def warm_up(self) -> None:
        """Has litellm import what it imports at its first call, whose timeout would pay for it. Sends nothing."""
        asked = [{"role": "user", "content": "x"}]
        await self._litellm.acompletion(model=self.models[0], messages=asked, mock_response="x")

    async def answer(self, call: dict[str, Any], allowed: Allowed) -> dict[str, Any]:
        """The reply to one call as a JSON object."""
        model = call["model"]
        if all(each in self._keyless for each in (model, *self._instead_of(model))):
            return _failed("denied", f"{self._keyless[model]} is not set")
        try:
            async with asyncio.timeout(self._longest) as limit:
                _clock.set(Clock(self._longest, limit, allowed))
                return _answered(await self._complete(call))
        except TimeoutError:
            return _failed("timeout", "the answer did not come in time")
        except Exception as error:  # noqa: BLE001 - whatever a provider's client raises ends this call, not the process
            return self._explained(error)

    async def _complete(self, call: dict[str, Any]) -> Any:
        model, shape = call["model"], call.get("response_format")
        ask = {"model": model, "messages": call["messages"], "max_tokens": call["max_tokens"], "temperature": 0.0}
        if shape is None or model in self._plain:
            return await self._router.acompletion(**ask)
        lib, known = self._litellm, model in self._shaped
        try:
            # At first without the others, or nobody would notice that this one only wants to be asked plainly.
            response = await self._router.acompletion(**ask, response_format=shape, disable_fallbacks=not known)
            self._shaped.add(_who(response))
            return response
        except (lib.ContextWindowExceededError, lib.ContentPolicyViolationError):
            if known or not self._instead_of(model):
                raise
        except lib.BadRequestError:
            return await self._plainly(ask)
        except Exception:  # whatever it is, the others may be well
            if known or not self._instead_of(model):
                raise
        return await self._router.acompletion(**ask, response_format=shape)

    async def _plainly(self, ask: dict[str, Any]) -> Any:
        response = await self._router.acompletion(**ask)
        if _who(response) == ask["model"]:
            self._plain.add(ask["model"])
        return response

    def _explained(self, error: Exception) -> dict[str, Any]:
        lib = self._litellm
        kinds: list[tuple[str, tuple[type[Exception], ...]]] = [
            ("timeout", (lib.Timeout,)),
            ("denied", (lib.AuthenticationError, lib.PermissionDeniedError, lib.NotFoundError)),
            ("refused", (lib.ContextWindowExceededError, lib.ContentPolicyViolationError, lib.BadRequestError)),
            ("rate_limit", (lib.RateLimitError,)),
        ]
        message = explained(error, self._secrets)
        if type(error).__name__ == "RouterRateLimitError":
            return _failed("cooldown", message, float(getattr(error, "cooldown_time", 0) or _COOLDOWN_S))
        if "missing credentials" in str(error).lower():  # a server's error by class, and yet nobody was asked
            return _failed("denied", message)
        for kind, types in kinds:
            if isinstance(error, types):
                return _failed(kind, message, _retry_after(error), _unreadable(error))
        return _failed("unavailable", message, _retry_after(error), _unreadable(error))


def _answered(response: Any) -> dict[str, Any]:
    usage = getattr(response, "usage", None)
    hidden = getattr(response, "_hidden_params", None) or {}
    headers = hidden.get("additional_headers") or {}
    text = response.choices[0].message.content if response.choices else None
    stated = {name: getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")}
    stated["cost_usd"] = hidden.get("response_cost")
    return {
        "ok": True,
        "text": text[:MAX_TEXT] if isinstance(text, str) else "",
        "usage": {name: value if isinstance(value, int | float) else None for name, value in stated.items()},
        "retries": int(headers.get("x-litellm-attempted-retries") or 0),
        "model": _who(response),
    }


def _who(response: Any) -> str:
    """The model that answered, by the name that it was asked for under."""
    return str((getattr(response, "_hidden_params", None) or {}).get("model_id") or "")


def _deployment(setup: dict[str, Any], model: str, timeout: float) -> dict[str, Any]:
    """How a model is reached. Address and key are passed on to models of the provider that they belong to."""
    given: dict[str, Any] = {"timeout": timeout}
    if setup.get("home") in (None, model.partition("/")[0]):
        given["api_base"] = setup.get("api_base")
        given["api_key"] = os.environ.get(setup["api_key_env"]) if setup.get("api_key_env") else None
    params = {name: value for name, value in given.items() if value is not None}
    return {"model_name": model, "litellm_params": {"model": model, **params}, "model_info": {"id": model}}


def _around_each_try() -> Any:
    """What litellm calls before each request that it sends, and after each that failed."""
    base: Any = importlib.import_module("litellm.integrations.custom_logger").CustomLogger

    class AroundEachTry(base):  # type: ignore[misc]
        async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> None:
            clock = _clock.get(None)
            if clock is not None:
                await clock.attempt(str(kwargs["model"]))

        async def async_post_call_failure_deployment_hook(
            self, request_data: Any, exception: Exception, call_type: Any, fallback_depth: int | None = None
        ) -> None:
            clock = _clock.get(None)
            if clock is not None:
                clock.answered = _unreadable(exception)

    return AroundEachTry()


def _unreadable(error: BaseException | None) -> bool:
    """Whether a try failed over what the provider answered: nothing went wrong on the way, and no status says so."""
    link = error
    while link is not None:
        if isinstance(link, OSError | httpx.HTTPError):
            return False
        if isinstance(link, ArithmeticError | AttributeError | LookupError | TypeError | ValueError):
            return True
        link = link.__cause__ or link.__context__
    return False


def _failed(kind: str, message: str, retry_after: float | None = None, answered: bool = False) -> dict[str, Any]:
    return {"ok": False, "failure": kind, "message": message, "retry_after": retry_after, "answered": answered}


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(900.0, max(0.0, float(headers["retry-after"])))
    except (KeyError, ValueError):
        return None
