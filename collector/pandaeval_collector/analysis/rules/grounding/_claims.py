"""What an agent states: the specific values of its answers and of the arguments of calls that change something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pandaeval_collector.analysis.rules._canonical import ARGUMENT_KEYS
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding._scan import addresses, names, scan, without, without_code
from pandaeval_collector.analysis.rules.grounding._sources import leaves, moment
from pandaeval_collector.analysis.rules.grounding._together import SENTENCE
from pandaeval_collector.analysis.rules.grounding._value import (
    AMOUNT,
    DATE,
    DURATION,
    IDENTIFIER,
    NAME,
    NUMBER,
    PERCENTAGE,
    STRICT,
    TIME,
    URL,
    Value,
    fold,
    squeezed,
)
from pandaeval_collector.analysis.rules.response_recovery import once_a_trace
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import ToolCall, Trace

MOST_CLAIMS = 300
"""Claims of one trace that are checked; that there are more is noted."""
_MOST_FOUND = 3_000
"""Values that are found at most, before the first of those that count are checked."""
MOST_ANSWER = 20_000
"""Characters of an answer that are looked at."""
_LONGEST_SENTENCE = 400
_LONGEST_ARGUMENT = 200
"""A longer argument, or one of several lines, is something written (a text, code), not a fact."""
_SETTINGS = lazily(
    r"limit|page|offset|top_?k|timeout|size|width|height|retries|temperature|seed|max_|min_|depth|code$|script|command"
    r"|query|sql|regex|pattern|expression|content|body|^count$"
)
_MONEY = lazily(r"amount|price|total|cost|fee|payment|refund|balance|charge|salary|budget")
_IDENTITY = lazily(r"(?:^|_)(?:id|ids|no|ref|reference|code|number|sku|iban|account)$|Id$|Ids$")


_CASE = lazily(
    r"\byou(?:r\b| (?:are|have|were|had|paid)\b|'(?:re|ve)\b)|"
    r"\b(?:the|this) (?:\w+ ){0,2}(?:orders?|bookings?|reservations?|confirmations?|tickets?|accounts?|"
    r"appointments?|refunds?|payments?|flights?|cases?|invoices?|returns?|shipments?|deliver\w+|subscriptions?|cards?|"
    r"balance|tracking|claim|policy|itinerary|membership|purchase)\b"
)
_IN_GENERAL = lazily(
    r"\be\.g\.|\b(?:for (?:example|instance)|such as|typical(?:ly)?|usual(?:ly)?|generally|on average|in general)\b"
)
"""What stands before examples and rules of thumb: a name or a number after it is no fact of the case."""
_EXAMPLE = lazily(r"(?:\be\.g\.|\b(?:for (?:example|instance)|such as|say)),?:? ?[\"'(*`]*$")
"""What stands right before an example of anything."""
_ALTERNATIVE = lazily(r"\b(?:like|or) \"$")
_PROPOSED = lazily(
    r"\b(?:recommend\w*|suggest\w*|consider\w*|ideal(?:ly)?|plan to|aim (?:for|to)|try to|best (?:time|window)s?)\b"
)
"""What stands before a time that the agent proposes."""
_TERMS = (
    r"fee|charge|surcharge|penalty|certificate|voucher|compensation|deductible|coverage|discount|limit|cap|"
    r"maximum|minimum|window|period|allowance|threshold"
)
_RULE_BEFORE = lazily(
    rf"\b(?:an?|any|each|every) (?:[a-z\-]+ ){{0,3}}(?:{_TERMS})s?,? (?:[a-z]+ ){{0,3}}[(*]*$"
    r"|\b(?:up to|no more than|at (?:most|least)|within|the maximum is|limited to) (?:[a-z]+ )?[*]*$"
    r"|\b(?:amount|fee|compensation|certificate|voucher)s? (?:would|can|may|is fixed to|is fixed at) (?:be )?[*]*$"
)
_ARTICLE = lazily(r"\ban? [*]*$")
_TERM_AFTER = lazily(rf"[*]* (?:[a-z]+ )?(?:{_TERMS})s?\b")
_RATE_AFTER = lazily(r"[*]*(?: [a-z\-]+)?,? ?[(]?(?:per|for each|for every|each|times the number of) [a-z]")
"""How terms are stated that hold for everybody: a rate (for $30 per passenger, each additional bag has a fee of $50), a
limit, or something that is handed out (a $50 certificate)."""
_HANDED_OUT = lazily(r"\b(?:issu(?:e|ing)|offer(?:ing)?|compensat\w+|goodwill|gesture)\b")
_LABEL = lazily(
    r"\b(?:price|fare|costs?|amount|charge|balance|depart\w*|arriv\w*|flights?|orders?|bookings?|"
    r"reservations?|tracking|number|id|date|dob|born|passenger)\b[^.!?\n]{0,40}$"
)
"""What stands before a value of something that was looked up: Departure: 09:00, reservation ID FDZ0T5."""
_RECKONED = re.compile(r"\b(?:difference|total|sum|additional|extra|remaining|savings?)\b", re.IGNORECASE)
"""What stands before an amount that was reckoned rather than looked up, of values that may be named far from it."""
_DONE_BEFORE = lazily(r"\b(?:issued|refunded|credited|charged|processed|applied|sent|added|paid) (?:[a-z]+ ){0,3}[*]*$")
"""What stands before an amount that was handed out: I have issued a $50 certificate."""
_OF_NOW = lazily(
    r"[*]* (?:is|are|was|were|has been|have been|will be) (?:now |also |already )?"
    r"(?:due|owed|charged|paid|billed|refunded|credited|issued|applied|added|deducted)\b"
)
"""What stands behind an amount of this case, however it is introduced: a fee of $30 was charged."""
_TODAY = lazily(r"\b(?:current|today's) (?:date|time|date and time) is (?:now )?[*]*$|\btoday is [*]*$")
_PROSE = 8
"""An argument of so many words is prose, in which only values that claim to be of this case count."""
_PLACEHOLDER = lazily(r"^[a-z]*(?:0+|0*1234\d*)$|x{3,}", 0)
"""How identifiers are made up to show what one looks like."""


@dataclass(slots=True)
class Claim:
    """A value that an answer (``key`` is ``""``) or the argument ``key`` of a call states, and ``at``, by when the
    agent had to know it (:func:`~._sources.moment`). ``around``: the text about it; ``sentence``: the one that states
    it, of the paragraph ``block``. ``accepted``: a tool took the identifier and repeats it in its result, so it exists
    and somebody told the agent. ``aside``: the claim is not scored, but other claims may follow from it."""

    value: Value
    at: int
    span_id: str
    around: str
    key: str = ""
    accepted: bool = False
    sentence: str = ""
    block: int = 0
    aside: bool = False


@once_a_trace
def answers(trace: Trace) -> list[tuple[str, int, str]]:
    """Returns the text, the end of the span and the span id of each answer."""
    ends = {span.span_id: span.end_ns for span in trace.spans}
    said = [(turn.assistant, turn.span_id) for turn in trace.turns if turn.assistant]
    if not said and trace.output:
        said = [(trace.output, trace.root_span_id)]
    last = trace.end_ns  # read once: it looks at every span
    return [(fold(text[:MOST_ANSWER]), ends.get(span_id, last), span_id) for text, span_id in said]


@once_a_trace
def claims(trace: Trace) -> tuple[list[Claim], list[Claim]]:
    """Returns the specific values of the answers, and those of the arguments of changing calls; the first ones of
    many."""
    return [*islice(_in_answers(trace), _MOST_FOUND)], [*islice(_in_calls(trace), _MOST_FOUND)]


def _in_answers(trace: Trace) -> Iterator[Claim]:
    for text, end, span_id in answers(trace):
        prose = without_code(text)
        there = addresses(prose)
        for value in (*there, *scan(without(prose, there)), *names(prose)):
            if specific(value):
                start, stop = _sentence(text, value)
                block = text.count("\n\n", 0, start)
                said = text[start:stop]
                if _is_no_fact(text, max(0, start - 8), value):
                    continue
                yield Claim(value, moment(end) + 1, span_id, _around(text, value), sentence=said, block=block)


def _is_no_fact(text: str, start: int, value: Value) -> bool:
    """Returns whether a value, in a sentence from ``start``, is an example, one of several names or a proposal."""
    before, end = text[max(start, value.start - 24) : value.start], value.start + len(value.text)
    if _EXAMPLE.search(before) is not None:
        return True
    if value.kind == NAME:
        before, after = text[max(0, value.start - 6) : value.start + 1], text[end + 2 : end + 7]
        if _ALTERNATIVE.search(before) is not None or after.startswith(' or "'):
            return True
    if value.kind in (TIME, DURATION):
        return _PROPOSED.search(text, start, value.start) is not None
    return value.kind in (NAME, NUMBER) and _IN_GENERAL.search(text, start, value.start) is not None


def _in_calls(trace: Trace) -> Iterator[Claim]:
    for call in changing(trace):
        for key, item in _arguments(call.arguments):
            for value in _of_argument(key, item):
                if specific(value):
                    around, accepted = f"{call.name}({key}={item})", _accepted(value, call)
                    yield Claim(value, moment(call.start_ns), call.span_id, around, key, accepted)


def of_case(claim: Claim, found: bool = False) -> bool:
    """Whether a value of an answer claims to be of this case: "your booking XKJ482 is paid". ``found``: tools were
    called earlier in the conversation; then a value behind the name of something that was looked up does, too."""
    if claim.value.kind not in STRICT:
        return False
    if _CASE.search(claim.sentence) is not None:
        return True
    there = claim.sentence.find(claim.value.text)
    before = claim.sentence[: max(0, there)]
    return found and _LABEL.search(before) is not None and _RECKONED.search(before) is None


def of_the_rules(claim: Claim) -> bool:
    """Returns whether an answer's value is a term that an agent is told rather than finds out: a rate, a limit, a
    voucher of so much, today's date."""
    value, there = claim.value, claim.sentence.find(claim.value.text)
    if claim.key or there < 0:
        return False
    before, after = claim.sentence[:there], claim.sentence[there + len(value.text) :]
    if value.kind in (DATE, TIME):
        return _TODAY.search(before) is not None
    if value.kind not in (AMOUNT, PERCENTAGE, DURATION, NUMBER):
        return False
    if _OF_NOW.match(after) is not None or _DONE_BEFORE.search(before) is not None:
        return False
    if _RULE_BEFORE.search(before) is not None or _RATE_AFTER.match(after) is not None:
        return True
    return _ARTICLE.search(before) is not None and _TERM_AFTER.match(after) is not None


def handed_out(claim: Claim) -> bool:
    """Returns whether an answer offers an amount in compensation, whose size only instructions tell."""
    return claim.value.kind == AMOUNT and _HANDED_OUT.search(f"{claim.sentence} {claim.around}") is not None


def _accepted(value: Value, call: ToolCall) -> bool:
    if value.kind != IDENTIFIER or not call.has_result or failed(call):
        return False
    return any(value.key in squeezed(fold(text)) for text in leaves(call.result, []))


@once_a_trace
def changing(trace: Trace) -> list[ToolCall]:
    """Returns the calls with captured arguments that may change the state of things."""
    if not trace.tool_calls:
        return []
    hints = {tool.name: tool.read_only for tool in trace.tools}
    return [
        call
        for call in trace.tool_calls
        if call.has_arguments and nature(call.name, hints.get(call.name)) is Nature.CHANGING
    ]


def specific(value: Value) -> bool:
    """Returns whether a value says something that could be made up: not a single digit, zero or the well-known address
    of a site."""
    if value.kind == URL:
        _, _, path = value.text.partition("#")[0].partition("://")[2].partition("/")
        return path.strip("/").count("/") > 0 or any(map(str.isdigit, path))
    if value.kind == IDENTIFIER:
        return _PLACEHOLDER.search(value.key) is None
    if value.kind == AMOUNT:
        return bool(value.readings) and value.readings[0] != 0.0
    if value.kind == NUMBER:
        digits = sum(sign.isdigit() for sign in value.text)
        return digits >= 2 and bool(value.readings) and value.readings[0] not in (0.0, 100.0)
    if value.kind == "percentage":
        return len(value.key) >= 2 and value.readings[0] not in (0.0, 100.0)
    if value.kind == "duration":
        return sum(sign.isdigit() for sign in value.text) >= 2
    return True


def _arguments(value: Any, key: str = "", depth: int = 12) -> Iterator[tuple[str, Any]]:
    if depth == 0:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _arguments(item, str(name), depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arguments(item, key, depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, value


def _of_argument(key: str, item: Any) -> list[Value]:
    if squeezed(key) in ARGUMENT_KEYS or _SETTINGS.search(key):
        return []
    text = fold(str(item)).strip()
    if not text or len(text) > _LONGEST_ARGUMENT or "\n" in text:
        return []
    if len(text.split()) >= _PROSE and _CASE.search(text) is None:
        return []
    there = addresses(text)
    found = there + scan(without(text, there))
    if len(found) == 1 and found[0].text == text and found[0].kind == NUMBER:
        if _MONEY.search(key):
            found[0].kind = AMOUNT
        elif _IDENTITY.search(key) and text.isdigit() and len(text) >= 3:
            found[0].kind = IDENTIFIER
    return found


def _sentence(text: str, value: Value) -> tuple[int, int]:
    """Returns begin and end of the sentence, or line, that holds a value."""
    start = max(
        (match.end() for match in SENTENCE.finditer(text, max(0, value.start - _LONGEST_SENTENCE), value.start)),
        default=max(0, value.start - _LONGEST_SENTENCE),
    )
    end = value.start + len(value.text)
    stop = SENTENCE.search(text, end, end + _LONGEST_SENTENCE)
    return start, stop.start() if stop is not None else min(len(text), end + _LONGEST_SENTENCE)


def _around(text: str, value: Value, room: int = 40) -> str:
    return " ".join(text[max(0, value.start - room) : value.start + len(value.text) + room].split())
