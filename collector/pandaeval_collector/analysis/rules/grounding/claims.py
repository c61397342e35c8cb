"""Extracts the agent's claims: values in answers, and identifiers in arguments of changing calls."""

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
from pandaeval_collector.analysis.rules.grounding.values import Value, fold, squeezed, times, values_of
from pandaeval_collector.analysis.rules.response_recovery import OWN_WORK, cached_per_trace, read_only_hints
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import ToolCall, Trace

MOST_CLAIMS = 300
"""Maximum checked claims of a trace. If there are more, the result has a note."""
_MOST_ANSWER = 20_000
"""Maximum characters read from an answer."""
_LONGEST_SENTENCE, _LONGEST_ARGUMENT = 400, 200
_LEAST_NUMBER = 3
"""Minimum characters of a checked number."""
_SENTENCE = re.compile(r"[.!?\n。！？](?:(?<![.!?])|(?=\s))")
_MADE_BY_AGENT = lazily(
    r"limit|page|offset|top_?k|timeout|size|width|height|retries|temperature|seed|max_|min_|depth|code$|script|command"
    r"|query|sql|regex|pattern|expression|content|body|^count$|name$|title|slug|path|file|branch|text|message"
    r"|description|cell|range"
)
"""Arguments whose values the agent chooses."""
_IDENTITY = lazily(r"(?:^|_)(?:id|ids|no|ref|reference|number|sku|iban|account)$|Ids?$")
_CODE = re.compile(r"```(?s:.*?)(?:```|\Z)|`[^`\n]*`|data:image/[^\s)\"'>]*")
"""Fenced code, names in backticks and data in URLs: no claims."""
_PLACEHOLDER = lazily(r"^[a-z]*(?:0+|0*1234\d*)$|x{3,}", 0)
"""Invented identifiers that only show a format."""
_NO_NAME = lazily(r"(?:^|\s)--?[A-Za-z][\w\-]*[ =]\0|[\\/]\0|\0\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\.[A-Za-z])")
"""Options of a command, escapes and names of files."""
_VAGUE = lazily(
    r"\be\.g\.|\b(?:for (?:example|instance)|such as|typical(?:ly)?|usual(?:ly)?|generally|on average|in general|often"
    r"|estimat\w+|budget\w*|approximate\w*|roughly|assum\w+|hypothetical\w*|sample|placeholder)\b"
    r"|\b(?:recommend\w*|suggest\w*|consider\w*|ideal(?:ly)?|plan to|aim (?:for|to)|try to|(?:you|we) could)\b.*\0"
    r"|(?:[~≈]|\b(?:about|around|approx\w*\.?|some|nearly|almost|over|under)) ?[*]*\0"
)
"""Sentences that propose or speak in general, and values that hold only about."""
_CASE = lazily(
    r"\byou(?:r\b| (?:are|have|were|had|paid)\b|'(?:re|ve)\b)|"
    r"\b(?:the|this) (?:\w+ ){0,2}(?:orders?|bookings?|reservations?|confirmations?|tickets?|accounts?|"
    r"appointments?|refunds?|payments?|flights?|cases?|invoices?|returns?|shipments?|deliver\w+|subscriptions?|cards?|"
    r"balance|tracking|claim|policy|itinerary|membership|purchase)\b"
)


_HOURS = re.compile(
    r"(?<![\w:.])(?:from|open|von|de|da) (\d{1,2}(?::\d\d)?) ?(?:h\b|[ap]m\b)? ?(?:-|to|until|till|bis|à|a|al) ?"
    r"(\d{1,2}(?::\d\d)?)(?![\w:]|\.\d| ?h\b)"
)
"""From 9 to 17."""


@dataclass(slots=True, eq=False)
class Claim:
    """A claimed value in an answer (``key`` is ``""``) or in the call argument ``key``. ``text``: the
    whole answer. ``sentence``: around the value, from ``begin``.
    """

    value: Value
    span_id: str
    text: str
    sentence: str
    begin: int
    key: str = ""
    call: ToolCall | None = None

    @property
    def around(self) -> str:
        if self.key:
            return self.text
        return " ".join(self.text[max(0, self.value.start - 40) : self.value.end + 40].split())

    @property
    def before(self) -> str:
        return self.sentence[: max(0, self.value.start - self.begin)]

    @property
    def after(self) -> str:
        return self.sentence[self.value.end - self.begin :]

    @property
    def reports(self) -> bool:
        """Whether the sentence reports a specific fact."""
        return bool(self.key) or not self.reads(_VAGUE)

    @property
    def is_harmless(self) -> bool:
        """Whether its call failed, has no captured result, or has a result that repeats the identifier."""
        if self.call is None:
            return False
        found = self.call.has_result and str(self.value.keys[0]) in squeezed(fold(str(self.call.result)))
        return found or not self.call.has_result or failed(self.call)

    @property
    def of_case(self) -> bool:
        """Whether it is about this case: "your booking XKJ482 is paid"."""
        return _CASE.search(self.sentence) is not None

    @property
    def of_own_work(self) -> bool:
        """Whether the agent reports its own work: "I opened ticket 4711-A"."""
        return OWN_WORK.search(self.before) is not None

    def is_beside(self, other: Claim) -> bool:
        """Return whether another claim is in the same sentence."""
        return (self.span_id, self.begin) == (other.span_id, other.begin)

    def reads(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern matches the sentence, with ``\\0`` for the value."""
        return pattern.search(f"{self.before}\0{self.after}") is not None


@cached_per_trace
def claims(trace: Trace) -> tuple[list[Claim], list[Claim], list[Claim]]:
    """Return the first typed values of answers, identifiers of changing calls, and numbers and measures of answers."""
    answers = [(turn.assistant, turn.span_id) for turn in trace.turns if turn.assistant]
    if not answers and trace.output:
        answers = [(trace.output, trace.root_span_id)]
    stated: list[Claim] = []
    for text, span_id in answers:
        stated += of_answer(fold(text[:_MOST_ANSWER]), span_id)
    numbers = [claim for claim in stated if claim.value.kind == "number"]
    typed = [claim for claim in stated if claim.value.kind != "number"]
    return typed[: MOST_CLAIMS + 1], [*islice(_in_calls(trace), MOST_CLAIMS + 1)], numbers[:MOST_CLAIMS]


def of_answer(text: str, span_id: str) -> Iterator[Claim]:
    prose = _CODE.sub(lambda code: " " * len(code[0]), text)
    values = {value.start: value for value in values_of(prose) if specific(value)}
    values |= {hour.start: hour for hour in _hours(prose)}
    ends = [match.start() for match in _SENTENCE.finditer(prose)] if values else []
    for value in values.values():
        place, after = bisect_right(ends, value.start), bisect_right(ends, value.end - 1)
        begin = max(ends[place - 1] + 1 if place else 0, value.start - _LONGEST_SENTENCE)
        stop = min(ends[after] + 1 if after < len(ends) else len(text), value.end + _LONGEST_SENTENCE)
        claim = Claim(value, span_id, text, text[begin:stop], begin)
        is_chosen = value.kind in ("identifier", "number") and claim.reads(_NO_NAME)
        if not is_chosen and (value.kind in ("identifier", "amount", "date") or claim.reports):
            yield claim


def _hours(prose: str) -> Iterator[Value]:
    for match in _HOURS.finditer(prose):
        for end in (1, 2):
            if keys := times(match[end]):
                yield Value("time", match[end], match.start(end), keys)


def specific(value: Value) -> bool:
    """Return whether a value can be a fabrication: not zero, a short number, a placeholder or a site's address."""
    match value.kind:
        case "url":
            return any(map(str.isdigit, value.text)) or value.text.rstrip("/").count("/") > 3
        case "identifier":
            return len(str(value.keys[0])) > 3 and _PLACEHOLDER.search(str(value.keys[0])) is None
    return value.number != 0 if value.kind == "amount" else len(value.text) >= _LEAST_NUMBER


@cached_per_trace
def changing(trace: Trace) -> list[ToolCall]:
    """Return the possibly state-changing calls with captured arguments."""
    hints = read_only_hints(trace)
    calls = [call for call in trace.tool_calls if call.has_arguments]
    return [call for call in calls if nature(call.name, hints.get(call.name)) is Nature.CHANGING]


def _in_calls(trace: Trace) -> Iterator[Claim]:
    for call in changing(trace):
        for key, item in arguments(call.arguments):
            if squeezed(key) in ARGUMENT_KEYS or _MADE_BY_AGENT.search(key) is not None:
                continue
            for value in _identifiers(key, fold(str(item)).strip()):
                around = f"{call.name}({key}={item})"
                yield Claim(value, call.span_id, around, "", 0, key, call)


def _identifiers(key: str, text: str) -> Iterator[Value]:
    if len(text) > _LONGEST_ARGUMENT:
        return
    for value in values_of(text):
        if value.kind == "number" and text.isdigit() and len(text) >= 3 and _IDENTITY.search(key):
            value = replace(value, kind="identifier", keys=(text, *value.keys))
        if value.kind == "identifier" and value.text == text and specific(value):
            yield value


def arguments(value: Any, key: str = "", depth: int = 12) -> Iterator[tuple[str, Any]]:
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
