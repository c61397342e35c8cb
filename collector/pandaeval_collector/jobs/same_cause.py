"""Asks a judge for a failure's group, if its text is unclear."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector.judge.pack import NONCE_DIGITS, Pack
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided, tokens
from pandaeval_collector.store import FailureGroupRow
from pandaeval_collector.store.failures import Failure
from pandaeval_collector.store.live_groups import SURE, LiveGroups

_log = logging.getLogger(__name__)
_MOST_CHARS = 400
Ask = Callable[[Pack, Mapping[str, Any]], Awaitable["SameCause"]]
"""Sends the question to the judge. Raises an exception if there is no answer."""


class SameCause(Verdict):
    """``group``: number of the group with the same root cause, or ``None``."""

    reason: Reason
    """The common cause, or the difference, in one sentence."""
    group: Annotated[int, Field(ge=1)] | None
    """Number of the group. Null if no group fits."""


def _check(verdict: SameCause, given: Mapping[str, Any]) -> str | None:
    known: int = given["number of groups"]
    return f"group: there is no group {verdict.group}" if verdict.group is not None and verdict.group > known else None


RUBRIC = Rubric(
    name="same_cause",
    version="3",
    text="""
The record shows a new failure of an agent, and groups of earlier failures, each with its first failure. Which group has
the same root cause as the new failure, so that one fix solves both? A root cause is an error of the agent, its
instructions or its tools, not the wording of one case. If no group fits, answer null.

Example: the new failure is "it promised a refund of 40 that no result shows". A group with "it named a delivery day
that no result shows" has the same cause: it answers without a lookup. A group with "the refund tool was called with
another order" has a different cause, although both concern refunds. If it is the only other group, answer null.
""",
    verdict=SameCause,
    max_tokens=300,
    check=_check,
)


async def judged_group(groups: LiveGroups, failure: Failure, ask: Ask) -> str | None:
    """Return a failure's group ID, ``""`` for a new group, ``None`` without an answer."""
    found = groups.candidates(failure)
    if not found:
        return ""
    cosine, nearest = found[0]
    if cosine >= SURE:
        return nearest.id
    try:
        verdict = await ask(record(failure, [row for _, row in found]), {"number of groups": len(found)})
    except Exception as error:  # noqa: BLE001 - without an answer, the failure still gets a group
        _log.info("the judge does not say which group a failure belongs to: %s", error)
        return None
    return "" if verdict.group is None else found[verdict.group - 1][1].id


def record(failure: Failure, found: Sequence[FailureGroupRow]) -> Pack:
    known = "\n".join(
        f"{number}. [{failure.label}] {shown_line(each.text, _MOST_CHARS)}" for number, each in enumerate(found, 1)
    )
    new = shown_line(f"[{failure.label}] {failure.reason}", _MOST_CHARS)
    return fenced(("## The new failure", new), ("## Groups, each with its first failure", known))


def fenced(*parts: tuple[str, str]) -> Pack:
    """Write parts, each a headline and a fenced text."""
    fence = secrets.token_hex(NONCE_DIGITS // 2)
    text = "\n\n".join(f"{head}\n<<{fence}>>\n{held.replace(fence, '[…]')}\n<</{fence}>>" for head, held in parts)
    shown = "\n".join(held for _, held in parts)
    digest = hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return Pack(text, fence, digest, tokens(text), (), codes=(fence,))


def shown_line(text: str, most: int) -> str:
    """Make a line of at most ``most`` characters from trace text."""
    return one_line(elided(neutral(text), most))
