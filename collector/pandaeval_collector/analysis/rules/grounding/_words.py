"""How small numbers are spelled out."""

from __future__ import annotations

from functools import lru_cache

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
    """The words for 0..99 and 100 in eight languages; nothing for other numbers."""
    if not 0 <= number <= 100:
        return ()
    if number == 100:
        return "hundred", "hundert", "cent", "cien", "cem", "cento", "сто", "百"
    return (*_alphabetic(number), _han(number))


@lru_cache(maxsize=1)
def by_word() -> dict[str, int]:
    """The number of each word (English and the others; compounds of English)."""
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
