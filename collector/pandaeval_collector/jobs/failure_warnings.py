"""Logs once why a judge gives no answers, with the cure."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.judge.call import CallFailedError, CallFailure

_log = logging.getLogger(__name__)
_KEY = (
    "set the provider's key in the collector's environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...), or name the "
    "variable that holds it in judge.api_key_env; if the key is right, see whether judge.model exists"
)
_NAME = "judge.model has to be provider/model, as litellm spells it, such as openai/gpt-4o-mini"
_CURES: Mapping[CallFailure, str] = {
    CallFailure.DENIED: _KEY,
    CallFailure.TIMEOUT: "give it more time (judge.timeout) or less to do at a time (judge.concurrency)",
    CallFailure.TOO_LONG: "set judge.context_tokens to the tokens of a record that fit into its window",
    CallFailure.UNAVAILABLE: "see whether its server is up and reachable from here, and judge.api_base right",
}
_SIGNS = (("llm provider not provided", _NAME), ("credential", _KEY), ("api key", _KEY), ("api_key", _KEY))
"""Words of litellm's errors that tell more than their class does."""


class FailureWarnings:
    """Logs failures of judges, each once. One event loop."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def add(self, model: str, error: CallFailedError) -> None:
        """Logs the cure of a failure, once per model and cure; nothing for failures that pass by themselves."""
        cure = cure_of(error)
        if cure and (model, cure) not in self._logged:
            self._logged.add((model, cure))
            _log.warning("the judge %s cannot be asked (%s): %s", model, told(str(error).partition("\n")[0]), cure)


def cure_of(error: CallFailedError) -> str:
    """Returns what to do about a failed call; ``""`` where waiting is all that helps."""
    said = str(error).lower()
    signed = next((cure for sign, cure in _SIGNS if sign in said), None)
    return signed or _CURES.get(error.failure, "")
