"""Finds claims contradicted by a single other value in the turn's calls or results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules.grounding.claims import Claim, changing
from pandaeval_collector.analysis.rules.grounding.evidence import Field, KnownContent, form, parsed_content
from pandaeval_collector.analysis.rules.grounding.values import NUMBERS, Value, squeezed, values_of
from pandaeval_collector.base.lazy_pattern import lazily
from pandaeval_otel.model import Trace

MOST_DOUBTED = 60
"""Maximum values of a trace that are compared with its results."""
_MOST_FIELDS, _MOST_NUMBERS = 1_000, 24
_LEAST_DIGITS = 4
_CENT = 0.01
_TIMES = range(1, 7)
"""Counts that an answer need not write down: 2 × $174."""
_VALUE, _NEXT_WORD = re.compile(r"\d[\d.,:]*"), re.compile(r"\W{0,3}([^\W\d_]+)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_NO_LABEL = frozenset("the and for usd eur gbp number value data date time text content result".split())  # noqa: SIM905
"""Words that name no single value."""
_CHANGES = frozenset("difference new old remaining additional extra each per more less average".split())  # noqa: SIM905
"""Words that change the meaning of a label: the price difference is no price."""
_CONVERTED = lazily(
    r"\b(?:each|every|per|up to|at (?:most|least)|within|by|until|before|after|next|days?|weeks?|tomorrow|today"
    r"|(?-i:[A-Z]{1,2}[SD]?T|UTC|GMT))\b"
)
"""Words next to a rule, or to a converted date or time. A value with such a word contradicts only a value with the same
label."""


class Contradiction(NamedTuple):
    """``known_value``: the value in calls or results, as text. ``is_sure``: it is the only contradicting value."""

    known_value: str
    is_sure: bool = True


class TurnComparison:
    """Compares answers with arguments and results of a trace's calls."""

    def __init__(self, trace: Trace, had: KnownContent, stated: Sequence[Claim]) -> None:
        self._trace = trace
        self._had = had
        self._doubted = 0
        self._claims = stated
        self._stated = {claim.value.sign for claim in stated}

    @cached_property
    def _results(self) -> list[Field]:
        """The values in results of calls and in retrieved documents."""
        texts = [call.result for call in self._trace.tool_calls if call.has_result and not failed(call)]
        texts += [document for span in self._trace.spans for document in span.documents]
        return [field for text in texts for field in parsed_content(text).fields][:_MOST_FIELDS]

    @cached_property
    def _given(self) -> list[Field]:
        """The identifiers in arguments of successful changing calls."""
        calls = [call for call in changing(self._trace) if not failed(call)]
        return [
            field
            for call in calls
            for field in parsed_content(call.arguments).fields
            if field.value.kind == "identifier"
        ]

    def replaced(self, claim: Claim) -> Contradiction | None:
        """Return the identifier with the same label that a changing call used instead of the stated identifier."""
        value = claim.value
        if value.kind != "identifier" or claim.key or not self._given:
            return None
        words = _words_beside(claim)
        fields = [field for field in self._given if form(field.value) == form(value) and _names(field, words)]
        others, known = {field.value.sign for field in fields}, {field.value.sign for field in self._results}
        if len(others) != 1 or others & {value.sign, *self._stated} or value.sign in known:
            return None
        return Contradiction(f"the call used {fields[0].label} {fields[0].value.text}")

    def contradiction_of(self, claim: Claim) -> Contradiction | None:
        """Return the value of the results that contradicts an ungrounded value."""
        value = claim.value
        self._doubted += 1
        if self._doubted > MOST_DOUBTED:
            return None
        if value.kind == "identifier":
            return self._slip(claim, self._had.results())
        if not claim.reports or claim.sentence.rstrip().endswith("?") or _is_scaled(value):
            return None
        fields = [field for field in self._results if _alike(field, value)]
        words = _words_beside(claim)
        labelled = [field for field in fields if _names(field, words)]
        slip = self._slip(claim, fields)
        if slip is not None and not self._is_computed(claim, labelled, is_sure=True):
            return slip
        is_bare = value.kind == "number" and not value.unit
        if not labelled and (is_bare or words & _CHANGES or claim.reads(_CONVERTED)):
            return None
        other = self._other(claim, fields, labelled)
        return None if other is None or self._is_computed(claim, labelled or fields, bool(labelled)) else other

    def _other(self, claim: Claim, fields: Sequence[Field], labelled: Sequence[Field]) -> Contradiction | None:
        sentence = squeezed(claim.sentence)
        shapes = {_shape(each.value) for each in self._claims if each.is_beside(claim)}
        rows = {id(field.row) for field in fields if _shape(field.value) in shapes and field.row}
        pool = [field for field in labelled or fields if id(field.row) in rows or _is_owned(field, sentence)]
        if not pool and (labelled or claim.value.kind == "amount"):
            pool = [*(labelled or fields)]
        others = {field.value.sign: field for field in pool if _shape(field.value) not in shapes}
        if not others or (len(others) > 1 and not labelled) or not self._stated.isdisjoint(others):
            return None
        first = next(iter(others.values()))
        return Contradiction(f"tool results contain {first.value.text} ({first.label.strip(' :')})", len(others) == 1)

    def _slip(self, claim: Claim, fields: Iterable[Field]) -> Contradiction | None:
        digits = _digits(claim.value)
        if len(digits) < _LEAST_DIGITS + (claim.value.kind == "number"):
            return None
        for field in fields:
            if _is_slip(digits, _digits(field.value)) and field.value.sign not in self._stated:
                return Contradiction(f"tool results contain {field.value.text}")
        return None

    def _is_computed(self, claim: Claim, known: Sequence[Field], is_sure: bool) -> bool:
        """Return whether arithmetic leads to a number: a single step with numbers of the answer and known amounts. If
        not ``is_sure``, also several steps, or a step with any amount that the agent had."""
        wanted, numbers = claim.value.number, _numbers(claim, known)
        is_number = claim.value.kind in NUMBERS
        if not is_number or any(abs(each - wanted) <= _CENT for each in _steps(numbers)):
            return is_number
        if is_sure:
            return False
        wholes = {round(abs(wanted + sign * number), 2) for number in numbers for sign in (1, -1)}
        if self._had.knows({*wholes, *(wanted / times for times in _TIMES)}):
            return True
        pairs = {sign * one + other for one, other in product(numbers, (0.0, *numbers)) for sign in (1, -1)}
        return wanted == int(wanted) and any(wanted / times - pair in pairs for times in _TIMES for pair in pairs)


def _numbers(claim: Claim, known: Sequence[Field]) -> list[float]:
    beside = [value for value in values_of(claim.text) if value.kind in NUMBERS and value.number != claim.value.number]
    amounts = [field.value.number for field in known]
    return [*dict.fromkeys((*(value.number for value in beside), *amounts, sum(amounts)))][:_MOST_NUMBERS]


def _steps(numbers: Sequence[float]) -> Iterator[float]:
    """Yield multiples of sums and differences, products and shares of two numbers."""
    for one, other in product(numbers, (0.0, *numbers)):
        for times in _TIMES:
            yield from ((one + other) * times, (one - other) * times)
        yield from (one * other, one * other / 100, one * (1 - other / 100))


def _is_owned(field: Field, sentence: str) -> bool:
    names = [squeezed(name) for name in field.row]
    return any(len(name) > 2 and name in sentence for name in names)


def _alike(field: Field, value: Value) -> bool:
    """Return whether a field has the kind and unit of a value. URLs and addresses are never alike."""
    if value.kind in ("url", "address"):
        return False
    if field.value.kind == "number" and value.kind == "amount":
        return not field.value.unit and not field.label
    return (field.value.kind, field.value.unit) == (value.kind, value.unit)


def _words_beside(claim: Claim) -> set[str]:
    before = _VALUE.split(claim.before)[-1]
    behind = _NEXT_WORD.match(claim.after)
    return set(_words(f"{before} {behind[1] if behind is not None else ''}"))


def _words(text: str) -> list[str]:
    return [word.removesuffix("s") for word in _WORD.findall(_CAMEL.sub(" ", text).casefold())]


@lru_cache(maxsize=4096)
def _label(text: str) -> frozenset[str]:
    return frozenset(_words(text)[-2:]) - _NO_LABEL


def _names(field: Field, words: set[str]) -> bool:
    label = _label(field.label)
    return bool(label) and label <= words and words & _CHANGES <= label


def _digits(value: Value) -> str:
    if value.kind == "identifier":
        return value.text if value.text.isdigit() else ""
    if value.kind not in NUMBERS or _is_scaled(value):
        return ""
    return f"{value.number:.2f}".removesuffix(".00").replace(".", "")


def _is_scaled(value: Value) -> bool:
    return value.kind in NUMBERS and value.number >= 10.0 ** sum(map(str.isdigit, value.text))


def _shape(value: Value) -> str:
    """Return the digits without zeros at the ends, the same for a number in another unit; the reading of others."""
    return re.sub(r"\D", "", value.text).strip("0") if value.kind in NUMBERS else str(value.keys[0])


def _is_slip(wrong: str, right: str) -> bool:
    if abs(len(wrong) - len(right)) > 1 or wrong == right:
        return False
    places = range(len(right))
    dropped = (right[:at] + right[at + 1 :] for at in places)
    doubled = (right[: at + 1] + right[at:] for at in places)
    swapped = (right[:at] + right[at + 1 : at + 2] + right[at : at + 1] + right[at + 2 :] for at in places)
    return wrong in (*dropped, *doubled, *swapped)
