"""Numbers, dates and times in texts, and one pattern that finds where specific values begin and end."""

from __future__ import annotations

import re
from datetime import date

from pandaeval_collector.base.lazy_pattern import lazily

# Dates and times as people and programs write them.
_MONTHS = (
    "january jan januar janvier enero janeiro gennaio январь января januari",
    "february feb februar février febrero fevereiro febbraio февраль февраля februari",
    "march mar märz mars marzo março март марта maart",
    "april apr avril abril aprile апрель апреля",
    "may mai mayo maio maggio май мая mei",
    "june jun juni juin junio junho giugno июнь июня",
    "july jul juli juillet julio julho luglio июль июля",
    "august aug août agosto август августа augustus",
    "september sep sept septembre septiembre setembro settembre сентябрь сентября",
    "october oct oktober okt octobre octubre outubro ottobre октябрь октября",
    "november nov novembre noviembre novembro ноябрь ноября",
    "december dec dezember dez décembre diciembre dezembro dicembre декабрь декабря",
)
_MONTH_OF = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
MONTHS = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_DAY = r"\d{1,2}"
_APART = r"(?<![A-Za-z0-9_])"

_OF = r"(?:(?:day )?of |de |di )"
DATE = (
    rf"{_APART}\d{{4}}[-/.]{_DAY}[-/.]{_DAY}(?!\d)"
    rf"|{_APART}{_DAY}[-/.]{_DAY}[-/.](?:\d{{4}}|\d{{2}})(?!\d|[.:]\d)"
    rf"|(?:\d{{4}}\s?[年년]\s?)?{_DAY}\s?[月월]\s?{_DAY}\s?[日일号]"
    rf"|{_APART}{_DAY}(?:st|nd|rd|th|\.|º)?\s?{_OF}?-?(?:{MONTHS})\b\.?(?:,?[ -](?:de |del )?\d{{4}}\b)?"
    rf"|{_APART}(?:{MONTHS})\.?[ -]{_DAY}(?:st|nd|rd|th)?(?!\d|[.,]\d|:)\b(?:,? \d{{4}}\b)?"
)
TIME = (
    rf"(?:(?<=\d)T|(?<![A-Za-z0-9_:.])){_DAY}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?!\d|:)(?:\s?[ap]\.?m\b\.?)?"
    rf"|{_APART}{_DAY}(?:[0-5]\d)?\s?[ap]\.?m\b\.?"
    rf"|{_APART}{_DAY}(?:[.:]\d{{2}})? Uhr(?: \d{{2}})?|{_APART}{_DAY} ?h ?\d{{2}}(?!\d)"
    rf"|(?:午前|午後|上午|下午|晚上|早上|오전|오후)?\s?{_DAY}\s?[时時点點시](?!间|間|간|長)(?:\s?\d{{1,2}}\s?[分분]|半)?"
)
_ALPHA = re.compile(rf"({MONTHS})\b", re.IGNORECASE)
_NUMERAL = re.compile(r"\d+")
_AFTERNOON = re.compile(r"p\.?m|午後|下午|晚上|오후", re.IGNORECASE)
_MORNING = re.compile(r"a\.?m|午前|上午|早上|오전", re.IGNORECASE)


def dates(text: str) -> tuple[float, ...]:
    """Returns the days that a text may mean, as ``y * 10000 + m * 100 + d`` (year 0 if missing): two for 03/04/2026."""
    numbers = [int(each) for each in _NUMERAL.findall(text)]
    name = _ALPHA.search(text)
    if name is not None:
        month = _MONTH_OF[name[1].casefold()]
        day, year = numbers[0], numbers[1] if len(numbers) > 1 else 0
        found = [_day(year, month, day)]
    elif len(numbers) == 2:
        found = [_day(0, numbers[0], numbers[1])]
    elif numbers[0] > 31:
        found = [_day(*numbers[:3])]
    else:
        year = numbers[2] if numbers[2] > 99 else 2000 + numbers[2]
        found = [_day(year, numbers[1], numbers[0]), _day(year, numbers[0], numbers[1])]
    return tuple(dict.fromkeys(float(each) for each in found if each))


def minutes(text: str) -> tuple[float, ...]:
    """Returns the minutes since midnight that a text may mean: two where 3:15 may be in the afternoon."""
    numbers = [int(each) for each in _NUMERAL.findall(text)[:2]]
    if numbers[0] > 99:  # 515 AM, as weather services write
        numbers = list(divmod(numbers[0], 100))
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else (30 if "半" in text else 0)
    if hour > 24 or minute > 59:
        return ()
    if _AFTERNOON.search(text):
        return (float(hour % 12 * 60 + 720 + minute),)
    if _MORNING.search(text):
        return (float(hour % 12 * 60 + minute),)
    at = float(hour % 24 * 60 + minute)
    return (at, at + 720.0) if 0 < hour <= 12 and at < 720.0 else (at,)


def ordinal(day: float) -> int | None:
    """Returns the days since the year 1; ``None`` without a year, or for February 29th of a year without one."""
    year, rest = divmod(int(day), 10000)
    try:
        return date(year, rest // 100, rest % 100).toordinal()
    except ValueError:
        return None


def _day(year: int, month: int, day: int) -> int:
    """Returns the day as a number, 0 where there is no such day."""
    try:
        date(year or 2024, month, day)  # a leap year
    except ValueError:
        return 0
    return year * 10000 + month * 100 + day


# Numbers in any format: 1,234.50, 1.234,50, 1 234,5, 1'234, 12,34,567, 1.2k, 3 million, 12万.
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
    """Returns what a number may stand for, the likeliest first, and the unit of its last digit. No readings for what is
    no number (a version such as 1.2.3, too many digits)."""
    found = _PARTS.match(text)
    if found is None or len(found[1]) > _MOST_DIGITS:
        return (), 1.0
    digits, word = found[1], (found[2] or "").strip(" -.").casefold()
    scale = _SCALES.get(word, 1.0)
    spelled = _spellings(digits)
    decimals = max((len(each.partition(".")[2]) for each in spelled[-1:]), default=0)
    return tuple(float(each) * scale for each in spelled), scale * 10.0**-decimals


def _spellings(digits: str) -> list[str]:
    """Returns the number with a decimal point, without separators of groups; two where it may be both."""
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


_FREE = r"(?<![A-Za-z0-9_])(?<!\d[.,])"
CODES = (
    "USD|EUR|GBP|JPY|CNY|RMB|INR|CHF|SEK|NOK|DKK|PLN|CZK|HUF|BRL|CAD|AUD|NZD|MXN|ZAR|KRW|SGD|HKD|TRY|RUB|AED|THB|ILS"
)
_CURRENCIES = "$€£¥₹₩₽₺₫฿₴₪"
SIGNS = _CURRENCIES + "+("
"""Signs that a value may begin with."""
_SIGN = rf"(?:R\$|US\$|[{_CURRENCIES}])"
_AFTER = (
    rf"(?:[€£¥₹₩₽₺₫฿₴₪円元원]|\$(?!\d)|(?:{CODES})\b"
    r"|(?:dollars?|euros?|pounds?|yen|rupees?|cents?|francs?|kr|zł|Kč|(?-i:Ft))\b)"
)
_MINUTES = r"(?:m|mins?|minutes?|Minuten)\b"
_UNIT = (
    r"(?:st|nd|rd|th|[KMGT]i?B|[kmc]?m|[km]?g|mg|ms|s|h|min|mins|hrs?|x|px|k?W|k?Wh|V|mAh|[KMG]?Hz|°?[CF]|m?L|ml|oz|lbs?"
    r"|ft|in|mph|k|K|M|B|bn|D|G|pt|em|fps|dpi|p|s?qm)"
)

_ALTERNATIVES = {
    "uuid": r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b",
    "date": DATE,
    "skip": r"24/7\b",
    "amount": rf"(?:{_SIGN}|\b(?:{CODES}))\s?-?{NUMBER}|{_FREE}{NUMBER}\s?{_AFTER}",
    "phone": r"(?<![\dA-Za-z])(?:\+\d{1,3}[ \-.]?)?(?:\(\d{2,4}\)|\d{3})[ \-.]\d{3}[ \-.]\d{4}(?!\d)|\+\d{8,15}\b",
    "duration": rf"{_FREE}\d{{1,4}}[ \-]?(?:h|hrs?|hours?|Stunden)\b(?:,? ?(?:and |und )?\d{{1,2}} ?{_MINUTES})?"
    rf"|{_FREE}\d{{1,4}}[ \-]?{_MINUTES}",
    "time": TIME,
    "percentage": rf"{_FREE}(?:{PLAIN})\s?(?:%|percent\b|Prozent\b|per cent\b)",
    "unit": rf"{_FREE}(?:{PLAIN}){_UNIT}(?![A-Za-z0-9_\-])|{_FREE}\d{{1,4}}(?=-[a-z]{{3,}}\b)",
    "identifier": r"(?<![A-Za-z0-9_])(?=[A-Za-z0-9_\-]{0,63}\d)(?=[0-9_\-]{0,63}[A-Za-z_])"
    r"[A-Za-z0-9]+(?:[\-_]+[A-Za-z0-9]+)*",
    "number": rf"{_FREE}{NUMBER}",
}
VALUE = lazily("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ALTERNATIVES.items()))
"""Matched where a value may begin; the groups tell its kind."""
ADDRESS = lazily(
    r"(?P<url>\b(?:https?://|www\.)(?:[^\s<>\"'()\]}|`]|\([^\s<>\"'()]*\))+)|(?P<email>(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+)",
    0,
)
"""An e-mail address only begins where no such sign precedes it: else a long word would take quadratic time."""
QUOTED = lazily(r'"([^"\n]{3,60})"|[「『《]([^」』》\n]{2,40})[」』》]', 0)
FENCED = lazily(r"```.*?(?:```|\Z)|\bdata:[a-z]+/[^\s)\"'>]+", re.DOTALL)
_STANDARDS = (
    "AES|ANSI|ARIA|ASTM|BS|CAT|CDMA|CO|CSS|CVE|DDR|DIN|EIP|EN|ERC|ES|FIPS|GDDR|GPT|HB|HIPAA|HTML|HTTP|I|IEC|IEEE|IP|"
    "IPV|ISO|LTE|MD|MP|MPEG|NFPA|NIST|OAUTH|OMEGA|PCI|PEP|PM|PS|RAID|RFC|RJ|RSA|RTX|SAE|SHA|SOC|SPF|SQL|SR|SSL|STD|TLS|"
    "TOP|UL|USB|US|UTF|UV|WCAG|WPA"
)
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|IA|ID|IL|IN|KS|KY|LA|MA|MD|ME|MI|MN|MO|MS|MT|NC|ND|NE|NH|NJ|NM|NV|NY|OH|OK|OR|PA|"
    "RI|SC|SD|TN|TX|UT|VA|VT|WA|WI|WV|WY"
)
IDIOM = lazily(
    rf"(?:(?:{_STATES})-\d{{1,3}}|(?:{_STANDARDS})[-_ ]?\d{{1,4}}[a-z]?(?:-\d{{1,4}})?"
    r"|(?:mid|early|late|low|lower|high|upper|pre|post|sub|top|non|over|under|age|ages|aged)-?\d+s?(?:-\d+s?)?|\d+s?-\d+s|\d+-?[a-z]{1,5}-?\d+"
    r"|\d+(?:x\d+)+[a-z]{0,2}|\d+-\d+-?[a-z]{1,6}|\d{1,4}-[a-z]+(?:-[a-z]+)*|[a-z]+(?:-[a-z]+)+-\d{1,2}"
    r"|[a-z]+\d+(?:_[a-z]{3,})+)$"
)
"""What has letters and digits and names nothing of a case: standards, roads, models; decades, spans, sizes, odds;
functions (aes256_encrypt)."""
