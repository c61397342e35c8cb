"""Reads typed values in canonical form, in linear time. Ambiguous values (3/4/2026) keep all meanings."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Literal

from pandaeval_collector.base.lazy_pattern import lazily

Kind = Literal["identifier", "amount", "number", "date", "time", "address", "url"]
NUMBERS = ("amount", "number")
# One spelling for digits, dashes, blanks and quotation marks of all scripts.
_PLAIN_SIGNS = str.maketrans("‐‑‒–—−“”„‟«»’‘‛´٫٬،", '------""""""\'\'\'\'.,,')
_FOREIGN = re.compile(r"[^\x00-\x7f]{1,64}")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_BETWEEN = re.compile(r"[\W_]+")
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
_DIGITS = re.compile(r"[0-9]+")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[-/.](?=\d)")
_AFTERNOON = re.compile(r"p\.?m|午後|下午|晚上|오후", re.IGNORECASE)
_MORNING = re.compile(r"a\.?m|午前|上午|早上|오전", re.IGNORECASE)
_PARTS_OF_DAY = "午前|午後|上午|下午|晚上|早上|오전|오후"
_APART = r"(?<![A-Za-z0-9_])"
_DAY = r"\d{1,2}"
_TIME = (
    rf"(?:(?<=\d)T|(?<![A-Za-z0-9_:.])){_DAY}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?!\d|:)(?:\s?[ap]\.?m\b\.?)?"
    rf"|{_APART}{_DAY}(?:[0-5]\d)?\s?[ap]\.?m\b\.?"
    rf"|{_APART}{_DAY}(?:[.:]\d{{2}})? Uhr(?: \d{{2}})?|{_APART}{_DAY} ?h ?[0-5]\d(?![\dA-Za-z]| ?min)"
    rf"|(?:{_PARTS_OF_DAY})?\s?{_DAY}\s?[时時点點시](?!间|間|간|長)(?:\s?\d{{1,2}}\s?[分분]|半)?"
)
# Numbers in any format: 1,234.50, 1.234,50, 1 234,5, 1'234, 12,34,567, 1.2k, 3 million, 12万; and their units.
_SCALES = {
    word: size
    for size, words in {
        1e3: "k thousand tausend mille mil тыс 千", 1e4: "万 萬 만", 1e5: "lakh lakhs", 1e7: "crore crores",
        1e6: "m mn mio million millions millionen millones млн", 1e8: "亿 億 억",
        1e9: "b bn billion billions milliarden mrd milliards млрд",
        1e12: "tn trillion trillions billionen biljoen трлн 万亿 兆 조",
    }.items()
    for word in words.split()
}  # fmt: skip
_SMALL, _MYRIAD = {"千": 1e3, "천": 1e3, "百": 1e2, "백": 1e2}, 1e4
_PLAIN = r"\d{1,3}(?:[ ']\d{3})++(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++)*"
_FIRST_DIGIT = re.compile(r"[0-9]")
_MOST_DIGITS = 40
_FREE = r"(?<![A-Za-z0-9_])(?<!\d[.,])"
_CODES = (
    "USD EUR GBP JPY CNY RMB INR CHF SEK NOK DKK PLN CZK HUF BRL CAD AUD NZD MXN ZAR KRW SGD HKD TRY RUB AED THB ILS "
    "VND IDR MYR PHP TWD COP CLP ARS UAH BGN RSD ISK SAR QAR KWD BHD OMR EGP NGN KES GHS PKR BDT LKR KZT IRR IQD"
)
_CURRENCIES = """
dollar dollars dólar dólares dolar dolarów dolary dolarů dollari dollaria доллар доллара долларов δολάρια دولار دولارا
euro euros euroa eur eura evro evrov eurot eurų евро євро ευρώ يورو יורו यूरो
pound pounds libra libras livre livres funt funty funtów фунт фунта фунтов جنيه جنيها جنيهات
yen иен иены yenes yuan yuans юаней renminbi
rupee rupees rupia rupias roupies rupiah рупий रुपये रुपए रुपया টাকা taka ரூபாய் ரூபாய்கள் روپے روپیہ
cent cents céntimos centavos centimes centesimi Cent копеек копейки groszy grosze haléřů øre öre
franc francs franken franco francos franchi frank frankov
kr krone kroner kronor krona krónur króna koruna koruny korun korún
zł złoty złote złotych złotego zlotych forint forintot forintért fillér
руб рубль рубля рублей грн гривня гривні гривень hryvnia тенге теңге теңгесі tenge
lira liras lirası lire liret ليرة lei leu lev leva лв лева лев kuna kuna dinar dinars dinara динар динара دينار دينارا
baht บาท đồng dong ₫ ringgit peso pesos piso reais soles colones bolívares quetzales
rial riyal riyals درهم ريال ريالا ریال تومان dirham dirhams shekel shekels שקל שקלים
naira cedi shilling shillings shilingi eurá evri evra eiro eurai euras
""".split()  # noqa: SIM905 - a readable list of words
"""Names of currencies as they follow a number, in their usual forms, by CLDR: of about forty languages."""
_GLUED_CURRENCIES = (
    "人民币 人民幣 欧元 歐元 美元 美金 日元 日圓 英镑 英鎊 港元 港币 港幣 加元 澳元 台币 台幣 新币 韩元 卢布 块 塊 "
)
_GLUED_CURRENCIES += "ドル ユーロ ポンド ウォン 달러 유로 위안 파운드 엔 元 円 圓 원 บาท"
"""Names of currencies that follow a number without a blank, in scripts without word boundaries."""
_UNIT = (
    r"(?:(?:[KMGT]i?B|[kcm]?m|[km]?g|mg|ms|s|x|px|k?W|k?Wh|V|mAh|[KMG]?Hz|[CF]|m?L|ml|oz|lbs?|ft|in|mph|km/h|kmh|D|G|pt|"
    r"em|fps|dpi|p|s?qm)|[ \-]?(?:°\s?[CF]|[KMGT]B|km/h|kmh|mph|km|kg|lbs?|cm|mm|ft|miles?|kilomet(?:er|re)s?|"
    r"met(?:er|re)s?|days?|weeks?|months?|years?|hours?|hrs?|minutes?|mins?|seconds?|secs?))"
)
_ADDRESSES = lazily(
    r"(?P<url>\b(?:https?://|www\.)[^\s<>\"'()\]}|`]++(?:\([^\s<>\"'()]*+\)[^\s<>\"'()\]}|`]*+)*+)"
    r"|(?P<address>(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]++@[A-Za-z0-9\-]++(?:\.[A-Za-z0-9\-]++)++)",
    0,
)
_TECHNICAL = (
    "AES|ANSI|ARIA|ASTM|BS|CAT|CDMA|CO|CSS|CVE|DDR|DIN|EIP|EN|ERC|ES|FIPS|GDDR|GPT|HB|HIPAA|HTML|HTTP|I|IEC|IEEE|IP|"
    "IPV|ISO|LTE|MD|MP|MPEG|NFPA|NIST|OAUTH|OMEGA|PCI|PEP|PM|PS|RAID|RFC|RJ|RSA|RTX|SAE|SHA|SOC|SPF|SQL|SR|SSL|STD|TLS|"
    "TOP|UL|USB|US|UTF|UV|WCAG|WPA|UINT|INT|FLOAT|VARCHAR|COVID|Q|H|V|AL|AK|AZ|AR|CA|CT|DE|FL|GA|HI|IA|ID|IL|KS|KY|LA|"
    "MA|ME|MI|MN|MO|MS|MT|NC|ND|NE|NH|NJ|NM|NV|NY|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VA|VT|WI|WV|WY"
)
_IDIOM = lazily(
    rf"(?:(?:{_TECHNICAL})[-_ ]?\d{{1,4}}[a-z]?(?:-\d{{1,4}})?"
    r"|(?:mid|early|late|low|lower|high|upper|pre|post|sub|top|non|over|under|age|ages|aged)-?\d+s?(?:-\d+s?)?|\d+s?-\d+s"
    r"|\d+-?[a-z]{1,5}-?\d+|\d+(?:x\d+)+[a-z]{0,2}|\d+-\d+-?[a-z]{1,6}|\d{1,4}-[a-z]+(?:-[a-z]+)*|[a-z]+(?:-[a-z]+)+-\d{1,2}"
    r"|[a-z]+\d+(?:_[a-z]{3,})+|[a-z]{2,}[ -]?\d{1,2}|\d{1,4}[a-z]{1,2})$"
)
"""Words of letters and digits that identify no case: standards, roads, types, models; decades, spans, sizes, odds,
durations; functions (aes256_encrypt)."""
_CODE = re.compile(r"(?=[A-Z0-9]{6,8}$)(?:[A-Z]+[0-9][A-Z]+|[B-DF-HJ-NP-TV-Z]+[0-9]|[0-9][B-DF-HJ-NP-TV-Z]+)$")
"""A code with a single digit, such as a booking's (YAX4DR): capitals on both sides of the digit, or no vowel."""
_LONGEST_TOKEN, _LONGEST_PREFIX = 64, 12
"""Characters read before a digit; without a limit a text of dashes would take quadratic time."""
_BEFORE = re.compile(rf"(?:{_PARTS_OF_DAY}|(?<![^\W\d_])([^\W\d_]+)\.?|[RUS]{{0,2}}[$€£¥₹₩₽₺₫฿₴₪₱₦₡₲₵₸₼₾৳]|[+(])\Z")
_SIGNS_BEFORE = "rs rp rm kr fr nt hk php"
_WORDS_BEFORE = frozenset([*_MONTH_OF, *_CODES.casefold().split(), *_SIGNS_BEFORE.split()])
_LONG = 6
"""Minimum digits of a number without separators that is an identifier, and minimum length of a word of capitals and
digits that is an identifier."""


@dataclass(slots=True)
class Value:
    """A value in a text. ``text``: as written, at ``start`` of the folded text. ``keys``: possible readings, likeliest
    first. Identifiers and addresses without case and separators; numbers; days as ``y * 10000 + m * 100 + d`` (year 0
    if missing); minutes of a day. ``unit``: of a measure.
    """

    kind: Kind
    text: str
    start: int
    keys: tuple[float | str, ...]
    unit: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def sign(self) -> tuple[str, float | str]:
        return self.kind, self.keys[0]

    @property
    def number(self) -> float:
        """The likeliest reading as a number; 0 for an identifier or address."""
        return self.keys[0] if self.keys and isinstance(self.keys[0], float) else 0.0


def fold(text: str) -> str:
    """Return the text with ASCII digits and plain dashes, blanks and quotes. ASCII texts are unchanged."""
    return text if text.isascii() else _FOREIGN.sub(lambda signs: _folded(signs[0]), text)


@lru_cache(maxsize=1024)
def _folded(signs: str) -> str:
    plain = unicodedata.normalize("NFKC", signs.translate(_PLAIN_SIGNS)).translate(_PLAIN_SIGNS)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def squeezed(text: str) -> str:
    """Return only letters and digits, without case."""
    return _BETWEEN.sub("", text.casefold())


def _any_of(words: Iterable[str]) -> str:
    ordered = sorted(words, key=len, reverse=True)
    return rf"(?=[{''.join(dict.fromkeys(word[0] for word in ordered))}])(?:{'|'.join(ordered)})"


_MONTH = _any_of(_MONTH_OF)
_MONTH_NAME = re.compile(rf"({_MONTH})\b", re.IGNORECASE)
_DATE = (
    rf"{_APART}\d{{4}}[-/.]{_DAY}[-/.]{_DAY}(?!\d)"
    rf"|{_APART}{_DAY}[-/.]{_DAY}[-/.](?:\d{{4}}|\d{{2}})(?!\d|[.:]\d)"
    rf"|(?:\d{{4}}\s?[年년]\s?)?{_DAY}\s?[月월]\s?{_DAY}\s?[日일号]"
    rf"|{_APART}(?:{_DAY} ?- ?)?{_DAY}(?:st|nd|rd|th|\.|º)?\s?(?:(?:day )?of |de |di )?-?(?:{_MONTH})\b\.?"
    r"(?:,?[ -](?:de |del )?\d{4}\b)?"
    rf"|{_APART}(?:{_MONTH})\.?[ -]{_DAY}(?:st|nd|rd|th)?(?!\d|[.,]\d|:)\b"
    rf"(?: ?- ?{_DAY}(?:st|nd|rd|th)?(?![\d:/]|[.,]\d))?(?:,? \d{{4}}\b)?"
)


def _dates(text: str) -> tuple[float, ...]:
    numbers = [int(each) for each in _DIGITS.findall(text)]
    if len({*_BETWEEN_DIGITS.findall(text)}) > 1:  # 9.4/10
        return ()
    name = _MONTH_NAME.search(text)
    if name is not None:  # a day, or several: October 12-14, 2026
        year = numbers.pop() if len(numbers) > 1 and numbers[-1] > 31 else 0
        found = [(year, _MONTH_OF[name[1].casefold()], day) for day in range(numbers[0], numbers[-1] + 1)]
    elif len(numbers) == 2:
        found = [(0, numbers[0], numbers[1])]
    elif numbers[0] > 31:
        found = [(numbers[0], numbers[1], numbers[2])]
    else:
        year = numbers[2] if numbers[2] > 99 else 2000 + numbers[2]
        found = [(year, numbers[1], numbers[0]), (year, numbers[0], numbers[1])]
    days = [float(year * 10000 + month * 100 + day) for year, month, day in found if _is_day(year, month, day)]
    return tuple(dict.fromkeys(days))


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year or 2024, month, day)
    except ValueError:
        return False
    return True


def times(text: str) -> tuple[float, ...]:
    """Return the possible minutes of the day: two for 9:30, one for 21:30, none for 27:00."""
    numbers = [int(each) for each in _DIGITS.findall(text)[:2]]
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


_LONG_SCALES = _any_of(word for word in _SCALES if len(word) > 3)
_SCALE = rf"(?:[kKmMbB](?![\w'])|(?:mn|mio|bn|mrd|tn)\b\.?| ?(?:万亿|[万萬만亿億억千兆조])|[ \-]?(?:{_LONG_SCALES})\b)"
_MYRIADS = "万亿|[万萬만亿億억兆조]"
_COUNTED = (
    rf"\d[\d,]*+(?:\.\d++)?\s?(?:{_MYRIADS}|[千천])(?:\s?\d[\d,]*+\s?(?:{_MYRIADS}|[千천百백]))*+"
    r"(?:\s?\d[\d,]*+(?![\d.,]|\s?[月日年時时分点點월일년시분]))?"
)
"""A number in groups of ten thousands: 12万8千, 1億2,000万, 3만5000."""
_NUMBER = rf"(?:{_COUNTED}|(?:{_PLAIN})(?:{_SCALE})?)"
_COUNTED_PART = re.compile(rf"(\d[\d,]*+(?:\.\d++)?)\s?({_MYRIADS}|[千천百백])?")
_IS_COUNTED = re.compile(_COUNTED)
_PARTS = re.compile(rf"({_PLAIN})\s?-?({_SCALE})?", re.IGNORECASE)
_CODE_NAMES = _any_of(_CODES.split())
_SIGN = r"(?:R\$|US\$|NT\$|HK\$|[$€£¥₹₩₽₺₫฿₴₪₱₦₡₲₵₸₼₾৳]|(?:Rs|Rp|kr|Fr)\.?(?=\s?\d)|(?-i:RM)(?=\s?\d))"
_MONEY_AFTER = (
    rf"(?:[€£¥₹₩₽₺₫฿₴₪₱₦₡₲₵₸₼₾৳]|\$(?!\d)|(?:{_CODE_NAMES})\b|(?:{_any_of(_GLUED_CURRENCIES.split())})"
    rf"|(?:{_any_of(_CURRENCIES)})(?!\w)|Kč|(?-i:Ft)\b)"
)
_NO_UNIT = re.compile(r"[\d.,'\s-]+")


def readings(text: str) -> tuple[float, ...]:
    """Return a text's possible numbers, likeliest first; none for a version such as 1.2.3."""
    counted = _IS_COUNTED.match(text)
    if counted is not None and len(parts := _COUNTED_PART.findall(counted[0])) > 1 and len(text) <= _MOST_DIGITS:
        return (_counted(parts),)
    found = _PARTS.match(text)
    if found is None or len(found[1]) > _MOST_DIGITS:
        return ()
    scale = _SCALES.get((found[2] or "").strip(" -.").casefold(), 1.0)
    return tuple(float(each) * scale for each in _spellings(found[1].replace(" ", "").replace("'", "")))


def _counted(parts: Sequence[tuple[str, str]]) -> float:
    total = group = 0.0
    for digits, unit in parts:
        size = _SMALL.get(unit) or _SCALES.get(unit, 1.0)
        group += float(digits.replace(",", "")) * (size if size < _MYRIAD else 1.0)
        if size >= _MYRIAD:
            total, group = total + group * size, 0.0
    return total + group


def _spellings(plain: str) -> list[str]:
    commas, points = plain.count(","), plain.count(".")
    if commas and points:
        decimal = "," if plain.rfind(",") > plain.rfind(".") else "."
        if plain.count(decimal) > 1:
            return []
        return [plain.replace("." if decimal == "," else ",", "").replace(",", ".")]
    head, *groups = plain.split("," if commas else ".")
    if not groups:
        return [plain]
    grouped = len(head) <= 3 and all(len(each) in (2, 3) for each in groups) and len(groups[-1]) == 3
    if len(groups) > 1:
        return ["".join((head, *groups))] if grouped else []
    as_decimal, as_group = f"{head}.{groups[0]}", head + groups[0]
    if not grouped or head == "0":
        return [as_decimal]
    return [as_group, as_decimal] if commas else [as_decimal, as_group]


_ALTERNATIVES = {
    "date": _DATE,
    "amount": rf"(?:{_SIGN}|\b(?:{_CODE_NAMES}))\s?-?{_NUMBER}|{_FREE}{_NUMBER}\s?{_MONEY_AFTER}",
    "phone": r"(?<![\dA-Za-z])(?:\+\d{1,3}[ \-.]?)?(?:\(\d{2,4}\)|\d{3})[ \-.]\d{3}[ \-.]\d{4}(?!\d)|\+\d{8,15}\b",
    "time": _TIME,
    "percentage": rf"{_FREE}(?:{_PLAIN})\s?(?:%|percent\b|Prozent\b|per cent\b)",
    "measured": rf"{_FREE}(?:{_PLAIN}){_UNIT}(?![A-Za-z0-9_\-/])",
    "identifier": r"(?<![A-Za-z0-9_])(?=[A-Za-z0-9_\-]{0,63}\d)(?=[0-9_\-]{0,63}[A-Za-z_])"
    r"[A-Za-z0-9]++(?:[\-_]++[A-Za-z0-9]++)*",
    "number": rf"{_FREE}{_NUMBER}",
}
_VALUE = lazily("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ALTERNATIVES.items()))


def scan(text: str) -> Sequence[Value]:
    """Return the values of a folded text in order; single digits are numbers."""
    found: list[Value] = []
    if "@" in text or "://" in text or "www." in text:
        for address in _ADDRESSES.finditer(text):
            written = address[0].rstrip(".,;:!?*_")
            kind: Kind = "url" if address.lastgroup == "url" else "address"
            found.append(Value(kind, written, address.start(), (squeezed(written),)))
        if found:
            text = _ADDRESSES.sub(lambda written: " " * len(written[0]), text)
    done, digit = 0, _FIRST_DIGIT.search(text)
    while digit is not None:
        at = digit.start()
        match = _match(text, done, at)
        value = _read(match.lastgroup or "", match[0], match.start()) if match is not None else None
        if value is not None:
            found.append(value)
        run = match or _DIGITS.match(text, at)
        done = max(run.end(), at + 1) if run is not None else at + 1
        digit = _FIRST_DIGIT.search(text, done)
    return sorted(found, key=lambda value: value.start)


values_of = lru_cache(maxsize=256)(scan)
"""Cached ``scan`` of an answer or argument, which each later trace of a session repeats. Do not change the result."""


def _match(text: str, done: int, at: int) -> re.Match[str] | None:
    start, least = at, max(done, at - _LONGEST_TOKEN)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_-") and text[start - 1] < "\u2e80":
        start -= 1
    end = start - 1 if start > done and text[start - 1] in " -" else start
    before = _BEFORE.search(text, max(done, end - _LONGEST_PREFIX), end)
    if before is not None and before[1] and before[1].casefold() not in _WORDS_BEFORE:
        before = None
    for begin in dict.fromkeys((before.start() if before is not None else start, start, at)):
        match = _VALUE.match(text, begin)
        if match is not None and match.end() > at:
            return match
    return None


def _read(kind: str, text: str, start: int) -> Value | None:
    match kind:
        case "date":
            days = _dates(text)
            return Value("date", text, start, days) if days else None
        case "time":
            minutes = times(text)
            return Value("time", text, start, minutes) if minutes else None
        case "phone":
            return Value("identifier", text, start, (squeezed(text),))
        case "identifier":
            return Value("identifier", text, start, (squeezed(text),)) if _is_identifier(text) else None
    return _numeric(kind, text, start)


def _is_identifier(text: str) -> bool:
    if _CODE.match(text):
        return True
    is_long = len(text) >= _LONG and text.isupper() and text.isalnum()
    return sum(map(str.isdigit, text)) > 1 and (is_long or _IDIOM.match(text) is None)


def _numeric(kind: str, text: str, start: int) -> Value | None:
    first = _FIRST_DIGIT.search(text)
    numbers = readings(text[first.start() :]) if first is not None else ()
    if not numbers:
        return None
    if kind == "amount":
        return Value("amount", text, start, numbers)
    if kind == "number" and text.isdigit() and len(text) >= _LONG and not (len(text) >= 7 and text.endswith("000")):
        return Value("identifier", text, start, (text, *numbers))
    unit = "" if kind == "number" else _NO_UNIT.sub("", text).casefold().removesuffix("s")
    return Value("number", text, start, numbers, unit)
