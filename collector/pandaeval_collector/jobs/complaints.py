"""Logs once what operators would not notice in the results alone: what keeps a judge from answering, with the cure, and
that a judge is of one family with those that it judges or is compared with."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pandaeval_collector.base.untrusted.foreign import told
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.judge.call import CallFailedError, CallFailure
from pandaeval_collector.judge.family import kin

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
_MOST = 200
"""Pairs that are remembered, and logged: agents name their models themselves."""
_MODEL_CHARS = 100


class Complaints:
    """Remembers what was logged. One event loop."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def hear(self, model: str, error: CallFailedError) -> None:
        """Logs the cure of a failure, once per model and cure; nothing for failures that pass by themselves."""
        cure = cure_of(error)
        if cure and (model, cure) not in self._said:
            self._said.add((model, cure))
            _log.warning("the judge %s cannot be asked (%s): %s", model, told(str(error).partition("\n")[0]), cure)


def cure_of(error: CallFailedError) -> str:
    """What to do about a failed call; empty where waiting is all that helps."""
    said = str(error).lower()
    signed = next((cure for sign, cure in _SIGNS if sign in said), None)
    return signed or _CURES.get(error.failure, "")


class Kinship:
    """Remembers which pairs it spoke of. One event loop."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def meets(self, judge: str, models: Iterable[str]) -> None:
        """``models``: of the run that is judged."""
        for model in models:
            pair = judge, model[:_MODEL_CHARS]
            if pair in self._seen or len(self._seen) >= _MOST:
                continue
            self._seen.add(pair)
            shared = kin(judge, model)
            if shared is not None:
                _log.warning(
                    "the judge %s judges runs of %s, which is of the same family (%s): models rate work of their own "
                    "kind too high; set another judge.model",
                    judge,
                    one_printable_line(model[:_MODEL_CHARS]),
                    one_printable_line(shared[:_MODEL_CHARS]),
                )


def warn_of_second(judge: str, second: str) -> None:
    """Logs that a second judge of the first one's family sees little that the first one does not."""
    shared = kin(judge, second)
    if shared is not None:
        _log.warning(
            "judge.second.model (%s) is of the same family as the judge %s (%s): what they agree on may be a fault "
            "that they share; name a model of another maker",
            second,
            judge,
            shared,
        )
