"""Detects an answer that consists of an error text."""

from __future__ import annotations

import re

from pandaeval_otel.model import Trace

_RAW = re.compile(
    r"Traceback \(most recent call last\):.*^[\w.]+(?::[^\n]*)?|"
    r"(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): [^\n]+|"
    r"Error code: \d{3} - \{.*\}|"
    r"API Error: [^\n]+|"
    r"(?:The )?[Aa]gent (?:failed to reach a final answer|(?:stopped|reached|hit|exceeded)\b[^\n]{0,60}"
    r"\b(?:max(?:imum)?(?: number of)? (?:iterations?|steps|turns)|(?:iteration|step|turn|time) limit))\b[^\n]{0,80}",
    re.DOTALL | re.MULTILINE,
)
_APOLOGY = re.compile(
    r"(?:(?:I(?:'m| am)?|we(?:'re| are)?)? ?(?:apologi[sz]e|(?:so |very |really )?sorry|regret)|apologies|oops|"
    r"unfortunately)\b[^:\n]{0,120}\b(?:error|exception|issue|problem)\b[^:\n]{0,60}:\s*(?P<error>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TECHNICAL = re.compile(
    r"[A-Za-z](?:Error|Exception)\b|Traceback|\b(?:HTTP|status(?: code)?|error code:?) ?[45]\d\d\b"
    r"|\b[45]\d\d [A-Z]\w+"
    r"|(?i:\brecursion limit\b|\bmax(?:imum)? (?:number of )?(?:iterations|steps|turns|retries)\b|\brate.?limit|"
    r"\bquota\b|\bcontext (?:length|window)\b|\btimed out\b|\bconnection (?:error|refused|reset|aborted)\b|"
    r"\bobject has no attribute\b|\bunexpected keyword\b|\binternal server error\b|\bbad gateway\b|"
    r"\bservice unavailable\b|\bAPI key\b)|\{['\"]error['\"]",
)
"""Technical words, which distinguish an error text from an agent's description of a problem."""
_LONGEST_APOLOGY = 1_000
_ASKED = re.compile(r"error|exception|traceback|stack ?trace|fehler|erreur|debug|log\b", re.IGNORECASE)
_LONGEST = 20_000
_LEAST_REPEATED = 12
"""If an answer has fewer characters, an error can contain it by chance."""


def raw_error(answer: str, user: str | None) -> str:
    """Return the error text that an answer consists of; ``""`` if none, or if the user asked about errors."""
    text = answer.strip()
    if len(text) > _LONGEST:
        return ""
    error = text.splitlines()[-1].strip() if _RAW.fullmatch(text) is not None else _error_of_apology(text)
    return "" if error and _ASKED.search(user or "") else error


def answers_with_error(trace: Trace) -> bool:
    """Return whether the answer is an error text, or only repeats the error of the run."""
    answer = (trace.output or "").strip()
    if len(answer) >= _LEAST_REPEATED and answer in (trace.error or ""):
        return True
    return bool(raw_error(answer, trace.turns[-1].user if trace.turns else trace.input))


def _error_of_apology(text: str) -> str:
    sorry = _APOLOGY.match(text.replace("\u2019", "'")[:_LONGEST_APOLOGY])
    if sorry is None or _TECHNICAL.search(sorry["error"]) is None:
        return ""
    return sorry["error"].strip()
