"""The collector's side of the judge worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.base.runtime.peer import ChildEndedError, JsonCodec, RemoteError
from pandaeval_collector.base.untrusted.foreign import secrets_in, told
from pandaeval_collector.judge.call import (
    CallFailedError,
    CallFailure,
    JudgeConfig,
    ModelAnswer,
    ModelCall,
    Permit,
)
from pandaeval_collector.judge.known_models import FREE, USUAL_RECORD, Price
from pandaeval_collector.judge.limits import believed

_SLACK_S = 30.0
"""Seconds of silence after the time limit of a try, until the process counts as hanging."""
_OWN_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import downloads a price list
    "OTEL_SDK_DISABLED": "true",  # no traces of the judge's own calls
    "LITELLM_LOG": "CRITICAL",  # its messages quote prompts
}


class WorkerProcess:
    """:class:`pandaeval_collector.judge.call.Caller` in a separate process. On one event loop."""

    def __init__(self, setup: JudgeConfig, environ: Mapping[str, str]) -> None:
        self.timeout = setup.timeout
        """The seconds that one try of a call may take."""
        self._secrets = secrets_in(environ, setup.api_key_env)
        self._calls = Calls(
            "the judge's process",
            "pandaeval_collector.judge.worker",
            asdict(setup),
            {**environ, **_OWN_ENVIRONMENT},
            codec=JsonCodec(),
            silent=True,
            backoff=Backoff(0.0, 0.0),  # the caller has its own pauses
        )
        self.prices: dict[str, Price] = {}
        """US dollars per token, of the models whose price is known; known after the start."""
        self._budgets: dict[str, int] = {}

    @property
    def pid(self) -> int | None:
        return self._calls.pid

    async def start(self) -> None:
        if self._calls.pid is None or not self._budgets:
            known: dict[str, Any] = await self._asked("known")
            self.prices = {model: Price(*each["price"]) for model, each in known.items() if each["price"] is not None}
            self._budgets = {model: each["budget"] for model, each in known.items()}

    async def record_budget(self, model: str) -> int:
        """Return a record's token limit for a model and its fallbacks, at most 32,000.

        Raises :class:`CallFailedError`.
        """
        await self.start()
        return self._budgets.get(model, USUAL_RECORD)

    async def complete(self, call: ModelCall, permit: Permit | None = None) -> ModelAnswer:
        """Call the model.

        Raises :class:`CallFailedError` (``CRASHED`` if the process died), and errors of ``permit``.
        """

        async def permitted(attempt: tuple[str, bool, int]) -> None:
            if permit is not None:
                await permit(*attempt)

        await self.start()
        reply: Mapping[str, Any] = await self._asked("call", asdict(call), on_piece=permitted)
        if not reply["ok"]:
            failure, message = CallFailure(reply["failure"]), told(reply["message"], self._secrets)
            raise CallFailedError(failure, message, reply.get("retry_after"), reply.get("answered", False))
        model = reply["model"]
        sent = replace(call, max_tokens=reply["max_tokens"])
        usage = believed(reply["usage"], sent, reply["text"], self.prices.get(model, FREE))
        return ModelAnswer(
            text=reply["text"],
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cost_usd=usage.cost_usd,
            model=model,
            cached_tokens=usage.cached_tokens,
            cut=reply["cut"],
            max_tokens=sent.max_tokens,
        )

    async def _asked(self, name: str, *arguments: Any, **given: Any) -> Any:
        try:
            return await self._calls.ask(name, *arguments, patience=self.timeout + _SLACK_S, **given)
        except (ChildStartError, RemoteError) as error:
            raise CallFailedError(CallFailure.UNAVAILABLE, told(error, self._secrets)) from error
        except ChildEndedError as error:
            raise CallFailedError(CallFailure.TIMEOUT if error.hung else CallFailure.CRASHED, str(error)) from error

    async def close(self) -> None:
        await self._calls.close()
