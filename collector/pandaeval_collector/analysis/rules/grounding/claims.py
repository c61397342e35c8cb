"""What an agent states: the values of its answers, and the identifiers in arguments of calls that change something."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pandaeval_collector.analysis.rules._canonical import ARGUMENT_KEYS
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.analysis.rules.grounding.evidence import SENTENCE, moment
from pandaeval_collector.analysis.rules.grounding.values import Value, fold, squeezed, times, values_of
from pandaeval_collector.analysis.rules.response_recovery import once_a_trace, read_only_hints
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import ToolCall, Trace

STRICT = frozenset({"identifier", "amount", "date"})
"""Kinds of which a single made-up value in a sentence that reports fails a run."""
MOST_CLAIMS = 300
"""Claims of one trace that are checked; that there are more is noted."""
MOST_ANSWER = 20_000
"""Characters of an answer that are looked at."""
_LONGEST_SENTENCE, _LONGEST_ARGUMENT = 400, 200
_MADE_BY_AGENT = lazily(
    r"limit|page|offset|top_?k|timeout|size|width|height|retries|temperature|seed|max_|min_|depth|code$|script|command"
    r"|query|sql|regex|pattern|expression|content|body|^count$|name$|title|slug|path|file|branch|text|message|description"
)
"""Arguments whose values the agent chooses."""
_IDENTITY = lazily(r"(?:^|_)(?:id|ids|no|ref|reference|number|sku|iban|account)$|Ids?$")
_CODE = re.compile(r"```(?s:.*?)(?:```|\Z)|`[^`\n]*`|data:image/[^\s)\"'>]*")
"""Fenced code, names in backticks and data in URLs: no claims."""
_PLACEHOLDER = lazily(r"^[a-z]*(?:0+|0*1234\d*)$|x{3,}", 0)
"""How identifiers are made up to show what one looks like."""
_EXAMPLE = lazily(r"(?:\be\.g\.|\b(?:for (?:example|instance)|such as|like|say)),?:? ?[\"'(*`]*$")
_NO_NAME = lazily(r"(?:^|\s)--?[A-Za-z][\w\-]*[ =]\0|[\\/]\0|\0\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\.[A-Za-z])")
"""Options of a command, escapes and names of files."""
_PROPOSED = lazily(
    r"\b(?:recommend\w*|suggest\w*|consider\w*|ideal(?:ly)?|plan to|aim (?:for|to)|try to|best (?:time|window)s?"
    r"|(?:you|we) could)\b"
)
_GENERAL = lazily(
    r"\be\.g\.|\b(?:for (?:example|instance)|such as|typical(?:ly)?|usual(?:ly)?|generally|on average|in general|often"
    r"|estimat\w+|budget\w*|approximate\w*|roughly|assum\w+|hypothetical\w*|sample|placeholder)\b"
)
_ABOUT = lazily(r"(?:~|≈|\b(?:about|around|roughly|approx\w*\.?|some|nearly|almost|over|under)) ?[*]*$")
"""What stands beside values that hold in general, or about."""
_CASE = lazily(
    r"\byou(?:r\b| (?:are|have|were|had|paid)\b|'(?:re|ve)\b)|"
    r"\b(?:the|this) (?:\w+ ){0,2}(?:orders?|bookings?|reservations?|confirmations?|tickets?|accounts?|"
    r"appointments?|refunds?|payments?|flights?|cases?|invoices?|returns?|shipments?|deliver\w+|subscriptions?|cards?|"
    r"balance|tracking|claim|policy|itinerary|membership|purchase)\b"
)
HOURS = re.compile(
    r"(?<![\w:.])(?:from|von|de|da) (\d{1,2}(?::\d\d)?) ?(?:h\b|[ap]m\b)? ?(?:-|to|until|till|bis|à|a|al) ?"
    r"(\d{1,2}(?::\d\d)?)(?![\w:]|\.\d| ?h\b)"
)
"""From 9 to 17."""
_CLAIMED = STRICT | {"time", "duration", "address", "url"}
"""Kinds of values that answers claim. Bare numbers and shares are none: of those that stood nowhere, most were
constants, rules of thumb and proposals."""
PRICE = lazily(r"\b(?:prices?|fares?|costs?|amount|charge|balance|fee|total)\b[^.!?\n]{0,40}\0")
"""Names of what is looked up: "Price: $40"."""
_TERMS = (
    r"(?:fee|charge|surcharge|penalty|certificate|voucher|compensation|deductible|coverage|discount|limit|cap|"
    r"maximum|minimum|window|period|allowance|threshold)s?\b"
)
_TODAY = lazily(r"\b(?:current|today's) (?:date|time|date and time) is (?:now )?[*]*\0|\btoday is [*]*\0")
_TERM = lazily(
    rf"\b(?:an?|any|each|every) (?:[a-z\-]+ ){{0,3}}{_TERMS},? (?:[a-z]+ ){{0,3}}[(*]*\0"
    r"|\b(?:each|every|any) additional\b[^.]{0,40}\0"
    r"|\b(?:up to|no more than|at (?:most|least)|within|the maximum is|limited to) (?:[a-z]+ )?[*]*\0"
    r"|\b(?:amount|fee|compensation|certificate|voucher)s? (?:would|can|may|is fixed to|is fixed at) (?:be )?[*]*\0"
    rf"|\ban? [*]*\0[*]* (?:[a-z]+ )?{_TERMS}"
    r"|\0[*]*(?: [a-z\-]+)?,? ?[(]?(?:per|for each|for every|each|times the number of) [a-z]"
)
_NO_TERM = lazily(
    r"\b(?:prices?|fares?|flights?|tickets?)\b[^.]{0,40}\0[*]*(?: [a-z\-]+)?,? ?[(]?(?:per|for|each|times) "
    r"|\byou (?:have|paid|hold|had)\b[^.]{0,60}\0"
    r"|\b(?:issued|refunded|credited|charged|processed|applied|sent|added|paid) (?:[a-z]+ ){0,3}[*]*\0"
    r"|\0[*]* (?:is|are|was|were|has been|have been|will be) (?:now |also |already )?"
    r"(?:due|owed|charged|paid|billed|refunded|credited|issued|applied|added|deducted)\b"
)
"""How terms are stated that only instructions tell (a rate, a limit, a voucher of so much), and what is of this case
however it is stated (was charged, I have issued)."""


@dataclass(slots=True, eq=False)
class Claim:
    """A value that an answer (``key`` is ``""``) or the argument ``key`` of a call states, and ``at``, by when the
    agent had to know it. ``text``: the whole answer; ``sentence``: the one that states it, from ``begin`` of the text.
    ``result``: of the call, unless it failed."""

    value: Value
    at: int
    span_id: str
    text: str
    sentence: str
    begin: int = 0
    key: str = ""
    result: Any = None

    @property
    def around(self) -> str:
        """The text about the value."""
        if self.key:
            return self.text
        return " ".join(self.text[max(0, self.value.start - 40) : self.value.end + 40].split())

    @property
    def before(self) -> str:
        """The sentence up to the value."""
        return self.sentence[: max(0, self.value.start - self.begin)]

    @property
    def proposed(self) -> bool:
        """Whether it is suggested rather than reported."""
        return self.value.kind != "identifier" and _PROPOSED.search(self.before) is not None

    @property
    def reports(self) -> bool:
        """Whether the sentence reports something, neither in general nor about."""
        vague = _ABOUT.search(self.before[-16:]) is not None or _GENERAL.search(self.sentence) is not None
        return bool(self.key) or not (vague or self.proposed)

    @property
    def accepted(self) -> bool:
        """Whether a tool took the identifier and repeats it in its result, so that it exists and somebody told the
        agent."""
        return str(self.value.keys[0]) in squeezed(fold(str(self.result)))

    @property
    def of_case(self) -> bool:
        """Whether it claims to be of this case: "your booking XKJ482 is paid"."""
        return _CASE.search(self.sentence) is not None

    @property
    def of_the_rules(self) -> bool:
        """Whether it is a term that an agent is told rather than finds out: a rate, a limit, a voucher of so much,
        today's date."""
        if self.value.kind in ("date", "time"):
            return self.reads(_TODAY)
        return self.value.kind in ("amount", "duration") and self.reads(_TERM) and not self.reads(_NO_TERM)

    def reads(self, pattern: re.Pattern[str]) -> bool:
        """Returns whether a pattern is found in the sentence, in which the value is a ``\\0``."""
        return pattern.search(f"{self.before}\0{self.sentence[self.value.end - self.begin :]}") is not None


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
    """Returns the values that the answers state, and those of arguments of changing calls; the first of many."""
    stated = (claim for text, end, span_id in answers(trace) for claim in of_answer(text, moment(end) + 1, span_id))
    return [*islice(stated, MOST_CLAIMS + 1)], [*islice(_in_calls(trace), MOST_CLAIMS + 1)]


def of_answer(text: str, at: int, span_id: str) -> Iterator[Claim]:
    """Yields the values that a folded answer states."""
    prose = _CODE.sub(lambda code: " " * len(code[0]), text)
    values = [value for value in values_of(prose) if specific(value)]
    hours = [(match[end], match.start(end)) for match in HOURS.finditer(prose) for end in (1, 2)]
    bare = [(text, start) for text, start in hours if all(start != value.start for value in values)]
    values += [Value("time", text, start, times(text)) for text, start in bare if times(text)]
    ends = [match.start() for match in SENTENCE.finditer(prose)] if values else []
    for value in values:
        place = bisect_right(ends, value.start)
        begin = max(ends[place - 1] + 1 if place else 0, value.start - _LONGEST_SENTENCE)
        after = bisect_right(ends, value.end - 1)
        stop = min(ends[after] + 1 if after < len(ends) else len(text), value.end + _LONGEST_SENTENCE)
        claim = Claim(value, at, span_id, text, text[begin:stop], begin)
        line = text.rfind("\n", 0, value.start) + 1
        in_heading = value.kind not in STRICT and text.startswith("#", line)
        if in_heading or _EXAMPLE.search(text, max(line, value.start - 24), value.start) is not None:
            continue
        if not (
            claim.reads(_NO_NAME)
            if value.kind == "identifier"
            else value.kind in ("time", "duration") and claim.proposed
        ):
            yield claim


def specific(value: Value) -> bool:
    """Returns whether a value is of a kind that answers claim and says something that could be made up: not zero, a
    placeholder or the well-known address of a site."""
    if value.kind == "url":
        _, _, path = value.text.partition("#")[0].partition("://")[2].partition("/")
        return path.strip("/").count("/") > 0 or any(map(str.isdigit, path))
    if value.kind == "identifier":
        return _PLACEHOLDER.search(str(value.keys[0])) is None
    if value.kind == "duration":
        return sum(map(str.isdigit, value.text)) > 1 and value.number != 1440  # 24 hours are a day
    return value.kind in _CLAIMED and (value.kind != "amount" or value.number != 0)


@once_a_trace
def changing(trace: Trace) -> list[ToolCall]:
    """Returns the calls with captured arguments that may change the state of things."""
    if not trace.tool_calls:
        return []
    hints = read_only_hints(trace)
    return [
        call
        for call in trace.tool_calls
        if call.has_arguments and nature(call.name, hints.get(call.name)) is Nature.CHANGING
    ]


def _in_calls(trace: Trace) -> Iterator[Claim]:
    for call in changing(trace):
        result = call.result if call.has_result and not failed(call) else None
        for key, item in arguments(call.arguments):
            if squeezed(key) in ARGUMENT_KEYS or _MADE_BY_AGENT.search(key) is not None:
                continue
            for value in _identifiers(key, fold(str(item)).strip()):
                around = f"{call.name}({key}={item})"
                yield Claim(value, moment(call.start_ns), call.span_id, around, "", 0, key, result)


def _identifiers(key: str, text: str) -> Iterator[Value]:
    """Yields the value of an argument if all of it is an identifier, or a number under a key that identifies."""
    if len(text) > _LONGEST_ARGUMENT:
        return
    for value in values_of(text):
        if value.kind == "number" and text.isdigit() and len(text) >= 3 and _IDENTITY.search(key):
            value = replace(value, kind="identifier", keys=(text, *value.keys))
        if value.kind == "identifier" and value.text == text and specific(value):
            yield value


def arguments(value: Any, key: str = "", depth: int = 12) -> Iterator[tuple[str, Any]]:
    """Yields the texts and numbers of a call's arguments, each with its key."""
    if depth == 0:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from arguments(item, str(name), depth - 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arguments(item, key, depth - 1)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield key, value
