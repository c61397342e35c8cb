"""What an evaluation span tells before anybody opens it: in its name, flat attributes, status, place and links.

Searches and lists of Jaeger, Tempo and Grafana see these, and no span events. A name holds no number and no id, since
backends index names: ``✗ response, grounding +1`` of what failed, ``✓ evaluate`` of what passed, and ``evaluate trace``
where nothing could be scored; ``evaluate judged`` of what judges said, and ``evaluate blame``, by its metrics, of what
came of a run later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote

from pandaeval_collector.base.result import NOTED, Result, cut
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters._fields import before_number, double, pairs, sized, text_pair

MAX_TEXT = 2000
"""Longer explanations are cut: Tempo keeps 2,048 bytes of an attribute."""
MAX_LINKS = 128
"""Links of a span beyond this number are left out; SDKs keep as many."""
_DIGITS = 6
"""Digits of a score in a flat attribute: 0.2 is found as 0.2, and not as the 0.19999999999999996 that a sum has come
to. The result itself has all of them."""
_MOST_NAMES = 2
"""Metrics that the name of a span lists; the others are counted there."""
_SPAN_NAME, _SPAN_LINKS, _SPAN_STATUS, _STATUS_MESSAGE = 5, 13, 15, 2
_STATUS_ERROR = b"\x18\x02"
_LINK_SAMPLED = b"\x35\x01\x00\x00\x00"
"""Fields in the messages of ``opentelemetry-proto``: ``Status.code``, ``Span.Link.flags``."""
_FAIL, _PASS = pairs({"pandaeval.verdict": "fail"}), pairs({"pandaeval.verdict": "pass"})
_UNSCORED, _THIN = pairs({"pandaeval.verdict": "unscored"}), pairs({"pandaeval.verdict": "hardly_checked"})
"""Hardly checked: that a run ended with an answer is all that was looked at, and no praise."""
_SPAN_ID = re.compile("[0-9a-f]{16}")
_AS_IN_BROWSERS = "!'()*"
"""What ``encodeURIComponent`` leaves as it is, and :func:`quote` would not."""


class Glance(NamedTuple):
    """What a span tells before it is opened. ``attributes``: each behind its length; ``fields``: name and status, as
    fields of a span; ``lowest`` score; ``failed``: metrics; ``blamed``: the span that the worst failure names, if
    any."""

    attributes: list[bytes]
    fields: bytes
    lowest: float | None
    failed: list[str]
    blamed: bytes


def glance(
    results: Sequence[Result], level: str, shows_failed: bool, is_part: bool, whole: str = "", passes: bool = True
) -> Glance:
    """Sums up the results of one span about a trace, session or turn. ``shows_failed``: whether a failing result makes
    the status ERROR; ``is_part``: there are others of the run, so that these are named by their metrics, or by
    ``whole``; ``passes``: whether they may say that it passed; else they give it no verdict unless they fail it."""
    attributes: list[bytes] = []
    scores: dict[str, float] = {}
    failures: list[tuple[float, Result]] = []
    passing: list[Result] = []
    lowest: float | None = None
    worst, scored = results[0], False
    for result in results:  # a hot loop: for each result of each trace
        finding = result.finding
        if isinstance(finding, Score):
            scored = True
            score = finding.value
            if score <= scores.get(result.metric, score):  # of several turns, the worst
                scores[result.metric] = score
            if not result.is_verdict:
                attributes.extend(_step(result))
            elif finding.label not in NOTED and (lowest is None or score < lowest):
                lowest, worst = score, result
            if result.success is False:
                failures.append((score, result))
            elif result.success:
                passing.append(result)
    for metric, score in scores.items():
        attributes.append(before_number(f"pandaeval.score.{metric}") + double(round(score, _DIGITS)))
    failures.sort(key=itemgetter(0))
    is_open = all(map(_leaves_it_open, results))
    failed = [] if is_open else [result for _, result in failures]
    passed = not (failed or is_open) and any(each.metric != "response" for each in passing)
    if failed:
        worst = failed[0]
        attributes.extend(_FAIL)
    elif passes and not is_open and (passing or not (scored or whole)):  # a score without a threshold is no verdict
        attributes.extend(_PASS if passed else _THIN if passing else _UNSCORED)
    reason = cut(worst.finding.reason, MAX_TEXT)
    attributes.extend(text_pair("pandaeval.reason", reason))
    names = _names(failed or (is_part and (passing or results)) or ())
    what = whole or names if is_part else f"{level} {worst.unit.agent}".rstrip() if level == "session" else level
    fields = _name(names if failed and level != "session" else what, "✗" if failed else "✓" if passed else "")
    if failed and shows_failed:
        fields += sized(_SPAN_STATUS, sized(_STATUS_MESSAGE, (reason or names).encode()) + _STATUS_ERROR)
    lowest = None if lowest is None else round(lowest, _DIGITS)
    step = worst.finding.metadata.get("blame")
    named = [*_named(worst), *([str(step.get("span_id"))] if isinstance(step, Mapping) else [])] if failed else []
    blamed = next((bytes.fromhex(each) for each in named if _SPAN_ID.fullmatch(each)), b"")
    return Glance(attributes, fields, lowest, [each.metric for each in results if each.success is False], blamed)


def _leaves_it_open(result: Result) -> bool:
    """Returns whether a session's result leaves it to ``correctness`` whether the agent did right: where a judge is
    asked, a right refusal that completes no goal is no failure, nor is a crash that the agent made up for."""
    judged = result.metric in ("goal_completion", "user_friction") or "band" in result.finding.metadata
    return judged and result.unit.level == "session"


def _names(results: Sequence[Result]) -> str:
    """Returns the metrics of results, as ``response, grounding +1``."""
    more = f" +{len(results) - _MOST_NAMES}" if len(results) > _MOST_NAMES else ""
    return ", ".join(each.metric for each in results[:_MOST_NAMES]) + more


def _step(told: Result) -> tuple[bytes, ...]:
    """Encodes attributes about the step that broke the run."""
    step = told.finding.metadata.get("step")
    if not isinstance(step, Mapping):
        return pairs({"pandaeval.blame": told.label})
    facts = {
        "pandaeval.blame": told.label,
        "pandaeval.blame.span_id": step.get("span_id"),
        "pandaeval.blame.tool": step.get("tool"),
        "pandaeval.blame.agent": step.get("agent"),
        "pandaeval.blame.reason": cut(told.finding.reason, MAX_TEXT),
    }
    return pairs(facts)


def link(trace_id: bytes, span_id: bytes) -> bytes:
    """Encodes a link to a span, as a field of a span."""
    return sized(_SPAN_LINKS, sized(1, trace_id) + sized(2, span_id) + _LINK_SAMPLED)


def links(results: Sequence[Result]) -> list[bytes]:
    """Makes links to the spans of the evaluated trace that the findings name, each once. What is no span id is left
    out."""
    named: list[str] = []
    for result in results:
        named.extend(_named(result))
    if not named:
        return []
    trace_id = bytes.fromhex(results[0].unit.trace_id)
    known = [each for each in dict.fromkeys(named) if _SPAN_ID.fullmatch(each)]
    return [link(trace_id, bytes.fromhex(each)) for each in known[:MAX_LINKS]]


def _named(result: Result) -> Sequence[str]:
    """Returns the ids of spans that a finding names or a judge cited."""
    finding = result.finding
    if isinstance(finding, Score) and finding.span_ids:
        return finding.span_ids
    return result.judge.get("cited", ()) if result.evaluator.kind == "llm" else ()


def address(page: str, level: str, trace_id: str, span_id: str, session_id: str | None) -> str:
    """Returns where the page at ``page`` shows what was evaluated; ``""`` without a page."""
    if not page:
        return ""
    if level == "session":
        return f"{page}/#/session/{quote(session_id or '', safe=_AS_IN_BROWSERS, errors='replace')}"
    return f"{page}/#/trace/{trace_id}?span={span_id}"


@lru_cache(maxsize=256)
def _name(what: str, mark: str) -> bytes:
    """Encodes the name of a span."""
    if mark != "✗" and not (mark and what.startswith("session")):
        what = "evaluate" if mark and what == "trace" else f"evaluate {what}"
    return sized(_SPAN_NAME, f"{mark} {what}".lstrip().encode())
