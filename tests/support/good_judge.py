"""A loopback judge that finds no fault, and the settings to use it."""

from __future__ import annotations

from typing import Any

from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.scripted_judge import GOOD, scripted_reply


def good_judge() -> JudgeServer:
    """Answer each question after 0.1 s."""
    return JudgeServer(lambda number, body: _verdict(body))


def judged_by(provider: JudgeServer, sample: float) -> dict[str, str]:
    """Return the environment that judges a share of the sessions."""
    judge = {"MODEL": "openai/gpt-4o-mini", "API_BASE": provider.url, "API_KEY_ENV": "PROOF_KEY", "DELAY": "1s"}
    judge |= {"DETAIL": "all", "SAMPLE": str(sample), "DAILY_USD": "1000"}
    return {"PROOF_KEY": "sk-proof", **{f"PANDAEVAL_JUDGE__{name}": value for name, value in judge.items()}}


def _verdict(body: dict[str, Any]) -> JudgeAnswer:
    return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD), hang_s=0.1)
