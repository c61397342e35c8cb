"""Judge problems are reported once, with a cure."""

from __future__ import annotations

import pytest

from pandaeval_collector.jobs.outcome import FailureWarnings, cure_of
from pandaeval_collector.judge.call import CallFailedError, CallFailure


@pytest.mark.parametrize(
    ("failure", "message", "cure"),
    [
        (CallFailure.DENIED, "AuthenticationError: Incorrect API key provided", "judge.api_key_env"),
        (CallFailure.DENIED, "NotFoundError: The model does not exist", "check judge.model"),
        (CallFailure.UNAVAILABLE, "InternalServerError: Missing credentials. Please pass", "judge.api_key_env"),
        (CallFailure.UNAVAILABLE, "does not start: BadRequestError: LLM Provider NOT provided.", "provider/model"),
        (CallFailure.UNAVAILABLE, "Connection error.", "judge.api_base"),
        (CallFailure.UNAVAILABLE, "the judge's process does not start: it sent no message", "CPU time"),
        (CallFailure.TIMEOUT, "the answer did not come in time", "judge.timeout"),
        (CallFailure.RATE_LIMIT, "429", ""),
        (CallFailure.COOLDOWN, "later", ""),
    ],
)
def test_judge_failures_that_a_user_can_fix_have_a_cure(failure: CallFailure, message: str, cure: str) -> None:
    found = cure_of(CallFailedError(failure, message))
    assert cure in found
    assert bool(cure) == bool(found)


def test_a_denied_call_is_logged_once_per_model_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    complaints = FailureWarnings()
    for model in ("openai/a", "openai/a", "openai/b"):
        complaints.add(model, CallFailedError(CallFailure.DENIED, "wrong key\nand a long story"))
    complaints.add("openai/a", CallFailedError(CallFailure.RATE_LIMIT, "slow down"))
    assert len(caplog.messages) == 2
    assert "openai/a cannot be called: wrong key" in caplog.messages[0]
    assert "long story" not in caplog.text
