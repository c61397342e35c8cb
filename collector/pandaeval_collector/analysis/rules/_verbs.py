"""Infers a tool's effect from its name and definition."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise

# Words of tool names that show the tool's effect: lower case, and in English, like nearly all names.
READ = frozenset(
    """
    get list search find read fetch query check look lookup view show describe count inspect browse retrieve
    calculate compute compare convert parse extract translate validate verify analyze analyse summarize summarise
    preview explain estimate detect identify measure is has can exists ls cat grep head tail stat peek ping whois
    """.split()  # noqa: SIM905 - a readable list of words
)
WRITE = frozenset(
    """
    accept activate add allocate append apply approve archive assign attach authorize ban block buy cancel clear close
    commit confirm connect create deactivate debit delay delete deploy deposit detach disable disconnect dismiss drop
    edit enable enqueue enroll exchange expire grant hold ingest init insert install invite kill launch lock make merge
    migrate modify mount mute notify overwrite pay place provision publish purchase put reactivate reassign rebook
    reboot reconnect redeem register reject release remove rename renew replace replenish reply reseat reschedule
    reserve reset resolve restart restore resume revert revoke rollback rotate save send set stop submit subscribe
    suspend swap terminate topup trash trigger unassign unblock uninstall unlock unsubscribe update upgrade upload
    upsert void withdraw write
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Verbs that mean a change at any place in a name."""
AMBIGUOUS = frozenset(
    """
    book change charge comment copy credit draft export fork import issue log mail message order patch post process
    record refuel refund report request return schedule share ship sign start store sync tag transfer transition
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Words that are a verb in one name and a noun in another (``order_pizza``, ``order_status``)."""
RUNNING = frozenset(
    """
    bash cmd code command computer execute interpreter notebook python repl shell terminal
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Words of tools that execute arbitrary commands."""
FACTS = frozenset(
    """
    balance count date detail details fee fees history id ids info information list log logs name number overview
    policy price prices quote rate rates report reports review reviews schema status summary time times total totals
    """.split()  # noqa: SIM905 - a readable list of words
)
"""Last words of names that request facts."""
STEPWISE = frozenset(
    """
    next previous prev scroll press click tap swipe drag move step type key hotkey turn rotate increment decrement
    advance forward back up down left right undo redo toggle append add push pop roll draw spin
    """.split()  # noqa: SIM905 - a readable list of words
)
VIEWING = frozenset(
    "page scroll up down left right next previous prev back forward top bottom go view zoom".split()  # noqa: SIM905
)
"""Words of tools that show another part of a page."""
MEDIA = frozenset("image images picture photo video audio music speech logo illustration avatar drawing".split())  # noqa: SIM905
"""Things that exist once a tool has generated them."""
GENERATING = frozenset({"generate", "generation", "generator", "text2im", "imagine", "paint", "render"})
COMPUTING = frozenset({"calc", "calculator", "calculate", "calculation", "compute", "arithmetic", "math", "maths"})
WAIT = frozenset({"wait", "sleep", "await", "poll"})
WAIT_ALONE = frozenset({"pause", "delay", "backoff"})
THINK = frozenset({"think", "thinking", "thought", "reflect", "sequentialthinking"})
ENDING = frozenset({"end", "finish", "finalize", "hangup", "complete", "done", "terminate", "conclude"})
SPEAKING = frozenset({"reply", "respond", "answer", "say", "speak", "send", "post", "message"})
ASKING = frozenset({"ask", "request", "prompt", "confirm"})
_PREFIX = re.compile(r"__|[./:]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


class Nature(Enum):
    """A tool's effect.

    ``READING`` is also the default. ``WAITING``: lets time pass. ``THINKING``: a note. ``HAND_OVER``: to another agent.
    """

    READING = auto()
    CHANGING = auto()
    WAITING = auto()
    THINKING = auto()
    HAND_OVER = auto()


@lru_cache(maxsize=4096)
def nature(name: str, read_only: bool | None = None) -> Nature:
    """Return a tool's effect by the words of its name: ``get_order`` reads, ``get_or_create`` changes.

    ``read_only``: the definition's hint, which decides between reading and changing.
    """
    words = words_of(name)
    first = words[0] if words else ""
    if first in WAIT or (first in WAIT_ALONE and len(words) == 1):
        return Nature.WAITING
    if first in THINK or any(word.endswith("thinking") for word in words):
        return Nature.THINKING
    if _hands_over(words):
        return Nature.HAND_OVER
    reads = not _writes(words) if read_only is None else read_only
    return Nature.READING if reads else Nature.CHANGING


@lru_cache(maxsize=4096)
def is_stepwise(name: str) -> bool:
    """Return whether an equal call has a new effect (scroll, next, add)."""
    return not STEPWISE.isdisjoint(words_of(name))


@lru_cache(maxsize=4096)
def only_looks(name: str) -> bool:
    """Return whether a tool only shows another part (``page_down``)."""
    words = words_of(name)
    return not VIEWING.isdisjoint(words) and all(
        word in VIEWING or word not in (WRITE | AMBIGUOUS | RUNNING | STEPWISE) for word in words
    )


@lru_cache(maxsize=4096)
def computes(name: str) -> bool:
    words = tuple(word.lower() for word in _WORD.findall(name))
    return not COMPUTING.isdisjoint(words) and not _goes_on_to_write(words)


@lru_cache(maxsize=4096)
def runs_code(name: str) -> bool:
    return not RUNNING.isdisjoint(words_of(name))


@lru_cache(maxsize=4096)
def ends_run(name: str) -> bool:
    """Return whether this call ends the agent's work: hand-over, reply, question to the user, or declared end."""
    words = words_of(name)
    if not words:
        return False
    if _hands_over(words) or words[0] in ENDING:
        return True
    if words[0] in SPEAKING and (len(words) == 1 or not {"user", "customer", "message", "reply"}.isdisjoint(words)):
        return True
    return words[0] in ASKING and not {"user", "human", "customer", "approval", "confirmation"}.isdisjoint(words)


def _writes(words: tuple[str, ...]) -> bool:
    if words[:2] in (("check", "in"), ("check", "out")) or _goes_on_to_write(words):
        return True
    if not MEDIA.isdisjoint(words) and not GENERATING.isdisjoint(words):
        return True
    for word in words:
        if word in READ:
            return False
        if word in WRITE or word in STEPWISE:
            return True
        if word in AMBIGUOUS or word in RUNNING:
            return words[-1] not in FACTS
    return False


def words_of(name: str) -> tuple[str, ...]:
    parts = (tuple(word.lower() for word in _WORD.findall(part)) for part in reversed(_PREFIX.split(name)))
    return next((words for words in parts if any(word.isalpha() for word in words)), ())


def _hands_over(words: tuple[str, ...]) -> bool:
    if "handoff" in words or "handover" in words or words[:1] == ("escalate",):
        return True
    if not {("hand", "off"), ("hand", "over")}.isdisjoint(pairwise(words)):
        return True
    return words[:2] == ("transfer", "to") or words[:3] == ("transfer", "back", "to")


def _goes_on_to_write(words: tuple[str, ...]) -> bool:
    return any(
        joint in ("and", "or", "then") and (word in WRITE or word in AMBIGUOUS) for joint, word in pairwise(words)
    )
