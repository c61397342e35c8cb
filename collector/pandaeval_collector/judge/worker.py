"""The process that talks to models: ``python -m pandaeval_collector.judge.worker``.

It is the only one that imports litellm (4 s, 165 MB, and much code that we did not write) and it holds nothing that
matters: calls come in as JSON lines on standard input, answers leave as JSON lines on standard output, in any order.
The first line in is the set-up, the first line out says that it is ready.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import threading
from typing import Any

MAX_TEXT = 65_000
"""No verdict is longer; what is behind is not passed on."""
_ALLOWED_FAILS, _COOLDOWN_S, _RETRIES = 3, 30.0, 2
_BETWEEN_TRIES_S = 8.0
"""The longest that the Router waits by itself; if a provider asks for more, the job waits instead."""


class Caller:
    """Calls through litellm's Router: timeouts, retries, Retry-After and cool-downs are its business."""

    def __init__(self, setup: dict[str, Any]) -> None:
        litellm: Any = importlib.import_module("litellm")
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.drop_params = True
        litellm.turn_off_message_logging = True
        self._litellm = litellm
        self._timeout = float(setup["timeout"])
        self._plain: set[str] = set()
        """Models whose provider does not know ``response_format``."""
        self.models = [str(model) for model in setup["models"]]
        key = os.environ.get(setup["api_key_env"]) if setup.get("api_key_env") else None
        common = {"api_base": setup.get("api_base"), "api_key": key, "timeout": self._timeout}
        common = {name: value for name, value in common.items() if value is not None}
        self._router = litellm.Router(
            model_list=[{"model_name": m, "litellm_params": {"model": m, **common}} for m in self.models],
            num_retries=int(setup.get("retries", _RETRIES)),
            allowed_fails=_ALLOWED_FAILS,
            cooldown_time=float(setup.get("cooldown", _COOLDOWN_S)),
            routing_strategy="simple-shuffle",
            timeout=self._timeout,
        )
        retries = int(setup.get("retries", _RETRIES))
        self._longest = self._timeout * (retries + 1) + _BETWEEN_TRIES_S * retries + 1.0

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

    async def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """The reply to one call as a JSON object."""
        try:
            # The provider's client counts its timeout anew with every byte: a drip would hold us forever.
            return _answered(await asyncio.wait_for(self._complete(call), self._longest))
        except TimeoutError:
            return _failed("timeout", "the answer did not come in time")
        except Exception as error:  # noqa: BLE001 - whatever a provider's client raises ends this call, not the process
            return self._explained(error)

    async def _complete(self, call: dict[str, Any]) -> Any:
        model, shape = call["model"], call.get("response_format")
        ask = {"model": model, "messages": call["messages"], "max_tokens": call["max_tokens"], "temperature": 0.0}
        if shape is None or model in self._plain:
            return await self._router.acompletion(**ask)
        lib = self._litellm
        try:
            return await self._router.acompletion(**ask, response_format=shape)
        except (lib.ContextWindowExceededError, lib.ContentPolicyViolationError):
            raise
        except lib.BadRequestError:
            response = await self._router.acompletion(**ask)
            self._plain.add(model)
            return response

    def _explained(self, error: Exception) -> dict[str, Any]:
        lib = self._litellm
        kinds: list[tuple[str, tuple[type[Exception], ...]]] = [
            ("timeout", (lib.Timeout,)),
            ("denied", (lib.AuthenticationError, lib.PermissionDeniedError, lib.NotFoundError)),
            ("refused", (lib.ContextWindowExceededError, lib.ContentPolicyViolationError, lib.BadRequestError)),
            ("rate_limit", (lib.RateLimitError,)),
        ]
        message = f"{type(error).__name__}: {error}"[:500]
        if type(error).__name__ == "RouterRateLimitError":
            return _failed("cooldown", message, float(getattr(error, "cooldown_time", 0) or _COOLDOWN_S))
        for kind, types in kinds:
            if isinstance(error, types):
                return _failed(kind, message, _retry_after(error))
        return _failed("unavailable", message, _retry_after(error))


def _answered(response: Any) -> dict[str, Any]:
    usage = getattr(response, "usage", None)
    hidden = getattr(response, "_hidden_params", None) or {}
    headers = hidden.get("additional_headers") or {}
    text = response.choices[0].message.content if response.choices else None
    return {
        "ok": True,
        "text": (text or "")[:MAX_TEXT],
        "prompt_tokens": getattr(usage, "prompt_tokens", 0) or 0,
        "completion_tokens": getattr(usage, "completion_tokens", 0) or 0,
        "cost_usd": hidden.get("response_cost") or 0.0,
        "retries": int(headers.get("x-litellm-attempted-retries") or 0),
    }


def _failed(kind: str, message: str, retry_after: float | None = None) -> dict[str, Any]:
    return {"ok": False, "failure": kind, "message": message, "retry_after": retry_after}


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return min(900.0, max(0.0, float(headers["retry-after"])))
    except (KeyError, ValueError):
        return None


class Lines:
    """Standard input and output as JSON lines. Whatever a library prints goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)

    def read(self) -> dict[str, Any] | None:
        line = sys.stdin.buffer.readline()
        return json.loads(line) if line else None

    def write(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()


async def _serve(caller: Caller, lines: Lines) -> None:
    await caller.warm_up()
    lines.write({"ready": True, "prices": caller.prices()})
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    tasks: set[asyncio.Task[None]] = set()

    def read() -> None:
        while (message := lines.read()) is not None:
            loop.call_soon_threadsafe(inbox.put_nowait, message)
        loop.call_soon_threadsafe(inbox.put_nowait, None)

    async def handle(message: dict[str, Any]) -> None:
        lines.write({"id": message["id"], **await caller.answer(message["call"])})

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (message := await inbox.get()) is not None:
        task = asyncio.create_task(handle(message))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def main() -> None:
    """Serve until standard input ends."""
    lines = Lines()
    setup = lines.read()
    if setup is None:
        return
    try:
        caller = Caller(setup)
    except Exception as error:  # noqa: BLE001 - the parent has to hear why there is no worker
        lines.write({"ready": False, "message": f"{type(error).__name__}: {error}"[:500]})
        return
    asyncio.run(_serve(caller, lines))
    os._exit(0)  # provider clients' threads must not keep a worker that nobody listens to


if __name__ == "__main__":
    main()
