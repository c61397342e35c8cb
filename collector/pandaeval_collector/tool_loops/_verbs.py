"""What a tool does, as far as its name and its definition tell."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from itertools import pairwise


class Nature(Enum):
    """``READING`` looks and changes nothing; ``CHANGING`` may change the state of things (also when nothing is known);
    ``WAITING`` lets time pass; ``THINKING`` is the agent's own note; ``HAND_OVER`` gives the run to another agent."""

    READING = auto()
    CHANGING = auto()
    WAITING = auto()
    THINKING = auto()
    HAND_OVER = auto()


_READ = frozenset(
    """
    get list search find read fetch query check look lookup view show describe count inspect browse retrieve
    calculate compute compare convert parse extract translate validate verify analyze analyse summarize summarise
    preview explain estimate detect identify measure is has can exists ls cat grep head tail stat peek ping whois
    """.split()  # noqa: SIM905 - a list of words to be read
)
_WRITE_AFTER_AND = frozenset(
    """
    add apply book buy cancel change clear create delete edit insert modify move order pay post put remove replace
    reset save send set store submit update upsert write
    """.split()  # noqa: SIM905 - a list of words to be read
)
_WAIT = frozenset({"wait", "sleep", "await", "poll"})
_WAIT_ALONE = frozenset({"pause", "delay", "backoff"})
_THINK = frozenset({"think", "thinking", "thought", "reflect", "sequentialthinking"})
_STEPWISE = frozenset(
    """
    next previous prev scroll press click tap swipe drag move step type key hotkey turn rotate increment decrement
    advance forward back up down left right undo redo append add push pop roll draw spin toggle
    """.split()  # noqa: SIM905 - a list of words to be read
)
_PREFIX = re.compile(r"__|[./:]")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def nature(name: str, read_only: bool | None = None) -> Nature:
    """What a tool of this name does. ``read_only`` is the definition's ``readOnlyHint``, which outweighs the name.

    Reading is what starts with a read verb, also after a namespace (``crm.get_user``, ``mcp__crm__getUser``), unless it
    goes on to change something (``get_or_create``, ``check_in``).
    """
    by_name = _by_name(name)
    if read_only is None or by_name not in (Nature.READING, Nature.CHANGING):
        return by_name
    return Nature.READING if read_only else Nature.CHANGING


@lru_cache(maxsize=4096)
def is_stepwise(name: str) -> bool:
    """Whether the same call again does something again (scroll, next, press, add …), so that repeating it can be
    progress even if every answer is a mere "ok"."""
    return not _STEPWISE.isdisjoint(_words(name))


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Nature:
    words = _words(name)
    if not words:
        return Nature.CHANGING
    if words[0] in _WAIT or (words[0] in _WAIT_ALONE and len(words) == 1):
        return Nature.WAITING
    if words[0] in _THINK:
        return Nature.THINKING
    if _hands_over(words):
        return Nature.HAND_OVER
    if words[0] not in _READ or _goes_on_to_write(words):
        return Nature.CHANGING
    return Nature.READING


def _words(name: str) -> tuple[str, ...]:
    parts = (tuple(word.lower() for word in _WORD.findall(part)) for part in reversed(_PREFIX.split(name)))
    return next((words for words in parts if any(word.isalpha() for word in words)), ())


def _hands_over(words: tuple[str, ...]) -> bool:
    if "handoff" in words or "handover" in words:
        return True
    if not {("hand", "off"), ("hand", "over")}.isdisjoint(pairwise(words)):
        return True
    return words[:2] == ("transfer", "to") or words[:3] == ("transfer", "back", "to")


def _goes_on_to_write(words: tuple[str, ...]) -> bool:
    if words[:2] in (("check", "in"), ("check", "out")):
        return True
    return any(joint in ("and", "or", "then") and word in _WRITE_AFTER_AND for joint, word in pairwise(words))
