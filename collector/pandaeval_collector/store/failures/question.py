"""The question by which a judge groups failures: all of them in one call, each assigned exactly once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pandaeval_collector.judge.neutral import elided, neutral, one_line, tokens
from pandaeval_collector.judge.pack import NONCE_DIGITS, Pack
from pandaeval_collector.judge.rubric import Rubric, Verdict
from pandaeval_collector.store.failures.failure import Failure

MOST = 120
"""Failures in one question; what is said of each is cut, so that they fit into every judge's window."""
_MOST_CHARS = 300
_HEAD = "## Failures of an agent, each with its number, its label and what was said of it"


class GroupedErrors(BaseModel):
    """One root cause. ``failures``: numbers of those that come of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    title: Annotated[str, Field(min_length=1, max_length=120)] = Field(description="The root cause, as a short title.")
    description: Annotated[str, Field(min_length=1, max_length=400)] = Field(
        description="What the agent does wrong, in one sentence."
    )
    severity: Literal["low", "medium", "high", "critical"] = Field(description="By the table.")
    failures: Annotated[list[int], Field(min_length=1, max_length=MOST)] = Field(
        description="Numbers of all failures that come of this cause."
    )


def _readable(groups: Any) -> Any:
    """The groups that can be read, where some can: one wrong field costs one group."""
    if not isinstance(groups, list):
        return groups
    kept = [group for group in groups if _is_readable(group)]
    return kept or groups


def _is_readable(group: Any) -> bool:
    try:
        GroupedErrors.model_validate(group)
    except ValidationError:
        return False
    return True


class ErrorDeduplication(Verdict):
    """``groups``: each failure in one of them at most; what is in none makes a group of its own."""

    groups: Annotated[list[GroupedErrors], BeforeValidator(_readable), Field(max_length=MOST)]


RUBRIC = Rubric(
    name="error_deduplication",
    version="2",
    text="""
The record lists failures that were found in conversations of one or several agents. Which of them have the same root
cause? Put each failure into exactly one group, so that a developer who mends one cause sees all that it explains.

- A root cause is what the agent, its instructions or its tools do wrong, not the wording of one case: two made-up
  forecasts and one made-up temperature are one cause, answering without live data.
- Different labels may share a cause, and one label may have several. Failures of different agents share one only where
  the same mistake is made.
- Failures of two tools, and claims of success (`false_success`) and admitted failures, never share a group.
- Prefer few groups that can be mended to many that repeat each other; a failure that is like no other stands alone.

Severity, by the worst that the group does to users:
low       minor; hardly any effect on the user: slightly wordy, small matters of wording
medium    noticeable: needless calls of tools, asking for what was said already
high      serious harm to the user's experience: contradictions, ignored requests, wrong use of tools
critical  makes the agent unusable: breaches of security, loss of data, complete failure of the goal
""",
    verdict=ErrorDeduplication,
    max_tokens=4000,
)


def given(failures: Sequence[Failure]) -> dict[str, Any]:
    """What goes with the question."""
    return {"number of failures": len(failures)}


def record(failures: Sequence[Failure]) -> Pack:
    """What the judge is shown: everything that came from traces, or from judges that read them, is fenced."""
    fence = secrets.token_hex(NONCE_DIGITS // 2)
    lines = "\n".join(f"{number}. {_line(each)}" for number, each in enumerate(failures, 1))
    text = f"{_HEAD}\n<<{fence}>>\n{lines.replace(fence, '[…]')}\n<</{fence}>>"
    digest = hashlib.blake2b(lines.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return Pack(text, fence, digest, tokens(text), (), outset=len(text))


def _line(failure: Failure) -> str:
    about = f"[{failure.label}] {failure.agent + ': ' if failure.agent else ''}{failure.reason}"
    return one_line(elided(neutral(about), _MOST_CHARS))
