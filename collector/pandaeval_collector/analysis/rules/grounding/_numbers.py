"""Numbers in any format: 1,234.50, 1.234,50, 1 234,5, 1'234, 12,34,567, 1.2k, 3 million, 12万."""

from __future__ import annotations

import re

_SCALES = {
    **dict.fromkeys(("k", "thousand", "tausend", "mille", "mil", "тыс", "千"), 1e3),
    **dict.fromkeys(("万", "萬", "만"), 1e4),
    **dict.fromkeys(("lakh", "lakhs"), 1e5),
    **dict.fromkeys(("m", "mn", "mio", "million", "millions", "millionen", "millones", "млн"), 1e6),
    **dict.fromkeys(("crore", "crores"), 1e7),
    **dict.fromkeys(("亿", "億", "억"), 1e8),
    **dict.fromkeys(("tn", "trillion", "trillions", "billionen", "biljoen", "трлн", "万亿", "兆", "조"), 1e12),
    **dict.fromkeys(("b", "bn", "billion", "billions", "milliarden", "mrd", "milliards", "млрд"), 1e9),
}
_LONG = "|".join(sorted((word for word in _SCALES if len(word) > 3), key=len, reverse=True))
SCALE = rf"(?:[kKmMbB](?![\w'])|(?:mn|mio|bn|mrd|tn)\b\.?| ?(?:万亿|[万萬만亿億억千兆조])|[ \-]?(?:{_LONG})\b)"
PLAIN = r"\d{1,3}(?:[ ']\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*"
NUMBER = rf"(?:{PLAIN})(?:{SCALE})?"
_PARTS = re.compile(rf"({PLAIN})\s?-?({SCALE})?", re.IGNORECASE)
_MOST_DIGITS = 40


def readings(text: str) -> tuple[tuple[float, ...], float]:
    """What the number may stand for, the likeliest first, and the unit of its last digit. Nothing for what is none
    (a version such as 1.2.3, more digits than any number has)."""
    found = _PARTS.match(text)
    if found is None or len(found[1]) > _MOST_DIGITS:
        return (), 1.0
    digits, word = found[1], (found[2] or "").strip(" -.").casefold()
    scale = _SCALES.get(word, 1.0)
    spelled = _spellings(digits)
    decimals = max((len(each.partition(".")[2]) for each in spelled[-1:]), default=0)
    return tuple(float(each) * scale for each in spelled), scale * 10.0**-decimals


def _spellings(digits: str) -> list[str]:
    """The number with a point for the decimals and nothing between groups; two where it may be both."""
    plain = digits.replace(" ", "").replace("'", "")
    commas, points = plain.count(","), plain.count(".")
    if not commas and not points:
        return [plain]
    if commas and points:
        decimal = "," if plain.rfind(",") > plain.rfind(".") else "."
        if plain.count(decimal) > 1:
            return []
        return [plain.replace("." if decimal == "," else ",", "").replace(",", ".")]
    sign = "," if commas else "."
    head, *groups = plain.split(sign)
    grouped = len(head) <= 3 and all(len(each) in (2, 3) for each in groups) and len(groups[-1]) == 3
    if len(groups) > 1:
        return ["".join((head, *groups))] if grouped else []
    decimal_reading = f"{head}.{groups[0]}"
    if grouped and head != "0":
        return [head + groups[0], decimal_reading] if sign == "," else [decimal_reading, head + groups[0]]
    return [decimal_reading]
