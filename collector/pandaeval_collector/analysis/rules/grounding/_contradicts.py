"""Whether an answer says otherwise than what the agent did.

Only what a call changed is looked at, and only where the answer names something else instead of what was used: an
answer that names both may well explain why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules.grounding._claims import Claim, changing
from pandaeval_collector.analysis.rules.grounding._known import Known
from pandaeval_collector.analysis.rules.grounding._scan import scan
from pandaeval_collector.analysis.rules.grounding._sources import RESULT, USER
from pandaeval_collector.analysis.rules.grounding._value import DATE, IDENTIFIER, NUMBER, Value, fold
from pandaeval_otel.model import Trace

# How small numbers are spelled out.
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn",
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve",
    "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito "
    "dezenove",
    "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove",
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать",
)
_TENS = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
)
_HAN = "零一二三四五六七八九"


@lru_cache(maxsize=128)
def spelled(number: int) -> tuple[str, ...]:
    """Returns the words for 0..100 in eight languages; nothing for other numbers."""
    if not 0 <= number <= 100:
        return ()
    if number == 100:
        return "hundred", "hundert", "cent", "cien", "cem", "cento", "сто", "百"
    return (*_alphabetic(number), _han(number))


@lru_cache(maxsize=1)
def by_word() -> dict[str, int]:
    """Maps each number word (English and the others; compounds of English) to its number."""
    return {word: number for number in range(100) for word in spelled(number)}


def _alphabetic(number: int) -> list[str]:
    tens, unit = divmod(number, 10)
    if number < 20:
        return [words.split()[number] for words in _UNITS]
    names = [words.split()[tens - 2] for words in _TENS]
    if not unit:
        return names
    units = [words.split()[unit] for words in _UNITS]
    german = f"{'ein' if unit == 1 else units[1]}und{names[1]}"
    return [
        f"{names[0]}-{units[0]}",
        f"{names[0]} {units[0]}",
        german,
        f"{names[2]}-{units[2]}",
        f"{names[3]} y {units[3]}",
    ]


def _han(number: int) -> str:
    tens, unit = divmod(number, 10)
    if not tens:
        return _HAN[unit]
    return ("" if tens == 1 else _HAN[tens]) + "十" + (_HAN[unit] if unit else "")


_COUNTED = re.compile(r"(?<![\w.,:\-/])(\d{1,4})\s+([^\W\d_]{3,})")
_SHAPE = (re.compile(r"[a-z]+"), re.compile(r"\d+"))


@dataclass(slots=True)
class Used:
    """A value that a call was made with. ``key``: its argument; ``text``: as written; ``value``: parsed, if
    possible."""

    tool: str
    key: str
    text: str
    value: Value | None


def used(trace: Trace) -> list[Used]:
    """Returns the arguments of the changing calls that did not fail."""
    found: list[Used] = []
    for call in changing(trace):
        if failed(call) or not isinstance(call.arguments, dict):
            continue
        for key, item in _flat(call.arguments):
            text = fold(item).strip()
            values = scan(text)
            found.append(Used(call.name, key, text, values[0] if len(values) == 1 and values[0].text == text else None))
    return found


def instead(claim: Claim, done: Sequence[Used], answer: Sequence[Claim], known: Known) -> Used | None:
    """Returns the value used in place of an identifier or a date that the answer names; ``None`` without one."""
    kind, value = claim.value.kind, claim.value
    if kind not in (IDENTIFIER, DATE) or claim.key:
        return None
    values = [each.value for each in done if each.value is not None and each.value.kind == kind]
    alike = [each for each in values if _alike(each, value)]
    if not alike or not known.may_compare(len(done) + len(answer)):
        return None
    used, meant = _signs(alike), _signs([each.value for each in answer])
    if not _signs([value]).isdisjoint(_signs(values)) or not used.isdisjoint(meant):
        return None
    return (
        next(each for each in done if each.value is alike[0])
        if known.says(USER, value) and not known.says(RESULT, value)
        else None
    )


def miscounted(answer: str, done: Sequence[Used]) -> Iterator[tuple[Value, Used]]:
    """Yields each count in an answer ("3 passengers") that no call's argument of this key has, and one of those."""
    by_key: dict[str, list[tuple[int, Used]]] = {}
    for each in done:
        number = int(each.text) if each.text.isdecimal() else by_word().get(each.text.casefold())
        if number is not None:
            by_key.setdefault(_stem(each.key.rpartition("_")[2]), []).append((number, each))
    if not by_key:
        return
    for match in _COUNTED.finditer(answer):
        counted = by_key.get(_stem(match[2]))
        if counted and int(match[1]) not in {number for number, _ in counted} | {sum(number for number, _ in counted)}:
            yield Value(NUMBER, match[0], match.start(), "", (float(match[1]),)), counted[0][1]


def _flat(arguments: dict[str, object]) -> Iterator[tuple[str, str]]:
    for key, item in arguments.items():
        if isinstance(item, dict):
            yield from _flat(item)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            yield str(key), str(item)


def _alike(one: Value, other: Value) -> bool:
    """Returns whether two identifiers have the same shape (LH-0742 and LH-1315), or both are dates."""
    return one.kind == DATE or _shape(one.key) == _shape(other.key)


def _shape(key: str) -> str:
    letters, digits = _SHAPE
    return digits.sub(lambda run: "9" * len(run[0]), letters.sub(lambda run: run[0], key))


def _signs(values: Iterable[Value]) -> set[tuple[str, str | float]]:
    """Returns keys that are equal for equal values."""
    return {
        (value.kind, sign)
        for value in values
        for sign in ([day % 10000 for day in value.readings] if value.kind == DATE else [value.key])
    }


def _stem(word: str) -> str:
    word = word.casefold()
    return word[:-1] if word.endswith("s") and len(word) > 3 else word
