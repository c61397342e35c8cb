"""Whether a text that a tool gave back tells of a failure, by how it begins."""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache

from pandaeval_collector.analysis.rules._failure_words import BEFORE, MAY, SURE


class FailureSign(Enum):
    """What a result tells of its call: ``FAILED``; ``UNSURE``, it may be read both ways; ``NOTHING`` of a failure."""

    NOTHING = auto()
    UNSURE = auto()
    FAILED = auto()


LOOKED_AT = 300
"""Characters of a text's beginning that are read."""
_SIGN = ("❌", "✗", "✘", "🚫", "⛔")
_STEMS = frozenset(
    """
    abor able acce acti allo answ apol atte auth avai bad bloc busy can' canc cann clos comm conn core coul curl
    dead decl deni dire don' down dupl enou exce exis exit expe expi fail fals fata faul forb foun full gate
    http impo inco insu inte inva kill left limi lost make max memo miss must netw not noth npm offl oops ora
    pani perm quot rate reac refu regr reje requ rese resp retr retu right rpc segm serv sess shou sold some
    sorr sqls ssl stat succ such time toke too trac unab unau unav unca unex unfo unha unkn unre unsu user valu
    tool roll conf veri viol wron abge chyb desa enco erre erro falh fall fehl feil fejl fel fout fue gefu hata
    intr konn lame leid malh misl nich podi poss powi pudo tiem trov verw virh zugr
    """.split()  # noqa: SIM905 - a list of words to be read
)
_WORD = re.compile(r"([a-z][a-z']{1,3})[a-z']*")
_INSIDE = ("error", "exception", "failed", "fault")
"""Within names of programs (``RuntimeError``)."""
_CODE = re.compile(r"[45]\d\d")
_NEAR = 120
"""Every text of a failure has a word that begins like one of these among so many first characters: of most others that
alone tells."""


def text_tells(text: str) -> FailureSign:
    """Reads what a text tells by its first 300 characters. A text that goes on from "Error" as prose does, and a number
    that measures an error, tell nothing."""
    return _tells(text[:LOOKED_AT], len(text) <= LOOKED_AT)


@lru_cache(maxsize=2048)
def _tells(start: str, whole: bool) -> FailureSign:
    start = start.replace("\u2019", "'")
    if not _hints_at_it(start):
        return FailureSign.NOTHING
    opened = BEFORE.match(start)
    at = opened.end() if opened is not None else 0
    if any(pattern.match(start, at) is not None for pattern in SURE):
        return FailureSign.FAILED
    if start.lstrip().startswith(_SIGN):
        return FailureSign.UNSURE
    return (
        FailureSign.UNSURE if whole and "?" not in start and MAY.match(start, at) is not None else FailureSign.NOTHING
    )


def _hints_at_it(start: str) -> bool:
    near = start[:_NEAR].lower()
    if not near.isascii() or _CODE.search(near) is not None or any(each in near for each in _INSIDE):
        return True
    return not _STEMS.isdisjoint(_WORD.findall(near))
