"""Tells whether a record holds words that only somebody who speaks to a judge would write."""

from __future__ import annotations

import re
from collections.abc import Iterable

_JUDGE = r"(?:judge|evaluator|grader|assessor|reviewer model|evaluation (?:model|system))"
_MARK = r"(?:score|verdict|rating|grade|marks?|confidence|evaluation)"
_BEST = r"(?:1(?:\.0+)?\b(?!\s*%)|5\s*/\s*5|10\s*/\s*10|100\s?%|perfect|full|maximum|highest|top|pass(?:ed|ing)?\b)"
_SUSPECT = re.compile(
    r"[\"']?instructed[\"']?\s*[:=]\s*(?:true|false)"
    r"|[\"']?echo[\"']?\s*[:=]\s*[\"']?[0-9a-f]{8}\b"
    rf"|[\"']{_MARK}[\"']\s*:\s*(?:1(?:\.0*)?|[\"'](?:pass|yes|right|correct))\b"
    r"|\becho[\"']? to\b|\bfield [\"']?echo\b|\bcode to (?:be )?repeat"
    r"|FACTS COUNTED BY CODE|\bfinal_(?:score|verdict)\b"
    r"|\banswer [\"']?yes[\"']? (?:for|to) (?:every|each|all)\b|\b(?:score|verdict|note)\b\W{0,4}(?:of |is |de )?1\.0\b"
    rf"|\b(?:give|set|assign|return|award|output|(?:answer|respond) with)\b[^.\n]{{0,60}}\b{_MARK}\b"
    rf"[^.\n]{{0,25}}{_BEST}"
    rf"|\b(?:give|assign|award)\b[^.\n]{{0,40}}\b{_BEST}[^.\n]{{0,15}}\b{_MARK}\b"
    rf"|\b(?:dear|attention|note to|message (?:to|for)|instructions? (?:to|for)) (?:the |all |any )?{_JUDGE}"
    rf"|\b{_JUDGE}s?\s*[:,]\s*(?:please|you|ignore|this|set|give|the)\b"
    rf"|\bas (?:the|a|an) {_JUDGE}\b|\byou are (?:now )?(?:the|a|an) {_JUDGE}\b"
    r"|\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:rubric|criteria|grading|evaluation|judging)\b"
    r"|\b(?:mark|judge|grade|rate|count|treat)\b (?:this|the|it)\b[^.\n]{0,30}\bas (?:fully )?"
    r"(?:completed?|passed|correct|successful|perfect|right)\b",
    re.IGNORECASE,
)


def suspected(texts: Iterable[str]) -> bool:
    """Whether any of the texts names fields of a verdict as we ask for it, speaks to a judge, or says what a verdict
    should be. A hint for people, and no proof: it changes no verdict."""
    return any(_SUSPECT.search(text) for text in texts)
