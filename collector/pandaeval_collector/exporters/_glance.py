"""What an evaluation span tells before anybody opens it: in its name, flat attributes, status and links.

Searches and lists of Jaeger, Tempo and Grafana see these, and no span events.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters._fields import before_number, double, pairs, sized, text_pair

MAX_TEXT = 2000
"""Longer explanations are cut: Tempo keeps 2,048 bytes of an attribute."""
MAX_LINKS = 128
"""Links of a span beyond this number are left out; SDKs keep as many."""
_DIGITS = 6
"""Of a score in a flat attribute: 0.2 is found as 0.2, and not as the 0.19999999999999996 that a sum has come to. The
result itself has all of them."""
_MOST_NAMES = 3
"""Failed metrics that the name of a span lists; the others are counted there."""
_SPAN_NAME, _SPAN_LINKS, _SPAN_STATUS, _STATUS_MESSAGE = 5, 13, 15, 2
_STATUS_ERROR = b"\x18\x02"
_LINK_SAMPLED = b"\x35\x01\x00\x00\x00"
"""Fields in the messages of ``opentelemetry-proto``: ``Status.code``, ``Span.Link.flags``."""
_FAIL, _PASS = pairs({"pandaeval.verdict": "fail"}), pairs({"pandaeval.verdict": "pass"})
_UNSCORED = pairs({"pandaeval.verdict": "unscored"})
_SPAN_ID = re.compile("[0-9a-f]{16}")


class Glance(NamedTuple):
    """``attributes``: each behind its length; ``fields``: name and status, as fields of a span; ``lowest`` score;
    ``failed``: metrics."""

    attributes: list[bytes]
    fields: bytes
    lowest: float | None
    failed: list[str]


def glance(results: Sequence[Result], what: str, own: bool, shows_failed: bool) -> Glance:
    """Of the results of one span about ``what``: ``trace``, ``session`` or a judged metric, which is its ``own`` name.
    ``shows_failed``: whether a failing result makes the status ERROR."""
    attributes: list[bytes] = []
    failed: list[Result] = []
    lowest: float | None = None
    worst = results[0]
    passed = False
    for result in results:  # a hot loop: for each result of each trace
        if result.outcome == "scored":
            score = _score(result)
            attributes.append(_before_score(result.metric) + double(round(score, _DIGITS)))
            if lowest is None or score < lowest:
                lowest, worst = score, result
        if result.success:
            passed = True
        elif result.success is not None:
            failed.append(result)
    if failed:
        failed.sort(key=_score)
        worst = failed[0]
    attributes.extend(_verdict(bool(failed), passed, lowest is not None))
    reason = cut(worst.finding.reason, MAX_TEXT)
    attributes.extend(text_pair("pandaeval.reason", reason))
    fields = _failing(failed, what, own, reason, shows_failed) if failed else _name(what)
    lowest = None if lowest is None else round(lowest, _DIGITS)
    return Glance(attributes, fields, lowest, [each.metric for each in results if each.success is False])


def _failing(failed: Sequence[Result], what: str, own: bool, reason: str, shows_failed: bool) -> bytes:
    """Name and status. ``failed``: worst first."""
    names = _spelled(failed[0]) if own else _names(failed)
    name = sized(_SPAN_NAME, f"evaluate {what}: {names}".encode())
    if not shows_failed:
        return name
    return name + sized(_SPAN_STATUS, sized(_STATUS_MESSAGE, (reason or names).encode()) + _STATUS_ERROR)


def link(trace_id: bytes, span_id: bytes) -> bytes:
    """A link to a span, as a field of a span."""
    return sized(_SPAN_LINKS, sized(1, trace_id) + sized(2, span_id) + _LINK_SAMPLED)


def links(results: Sequence[Result]) -> list[bytes]:
    """To the spans of the evaluated trace that the findings name, each once. What is no span id is left out."""
    named: list[str] = []
    for result in results:
        finding = result.finding
        if isinstance(finding, Score) and finding.span_ids:
            named.extend(finding.span_ids)
        elif result.evaluator.kind == "llm":
            named.extend(result.judge.get("cited", ()))
    if not named:
        return []
    trace_id = bytes.fromhex(results[0].unit.trace_id)
    known = [each for each in dict.fromkeys(named) if _SPAN_ID.fullmatch(each)]
    return [link(trace_id, bytes.fromhex(each)) for each in known[:MAX_LINKS]]


def address(page: str, level: str, trace_id: str, span_id: str, session_id: str | None) -> str:
    """Where the page at ``page`` shows what was evaluated; ``""`` without a page."""
    if not page:
        return ""
    if level == "session":
        return f"{page}/#/session/{quote(session_id or '', safe=_AS_IN_BROWSERS, errors='replace')}"
    return f"{page}/#/trace/{trace_id}?span={span_id}"


_AS_IN_BROWSERS = "!'()*"
"""What ``encodeURIComponent`` leaves as it is, and :func:`quote` would not."""


def _verdict(failed: bool, passed: bool, scored: bool) -> tuple[bytes, ...]:
    """None where something was scored that has no threshold, and nothing else passed or failed."""
    if failed:
        return _FAIL
    if passed:
        return _PASS
    return () if scored else _UNSCORED


def _score(result: Result) -> float:
    """Of one that was scored."""
    score = result.score
    return 1.0 if score is None else score


def _names(failed: Sequence[Result]) -> str:
    spelled = [f"{each.metric} {_spelled(each)}" for each in failed[:_MOST_NAMES]]
    more = len(failed) - len(spelled)
    return ", ".join(spelled) + (f" +{more}" if more else "")


def _spelled(failed: Result) -> str:
    """Its score with two digits; what is almost 1 is not said to be 1, since it failed."""
    score = _score(failed)
    return "0.99" if 0.99 < score < 1.0 else f"{score:.2f}"


@lru_cache(maxsize=256)
def _name(what: str) -> bytes:
    return sized(_SPAN_NAME, f"evaluate {what}".encode())


@lru_cache(maxsize=256)
def _before_score(metric: str) -> bytes:
    return before_number(f"pandaeval.score.{metric}")
