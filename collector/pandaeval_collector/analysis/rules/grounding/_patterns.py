"""Where specific values begin and end in a text: one pattern, tried from left to right."""

from __future__ import annotations

import re

from pandaeval_collector.analysis.rules.grounding._dates import DATE, TIME
from pandaeval_collector.analysis.rules.grounding._numbers import NUMBER, PLAIN
from pandaeval_collector.base.lazy_pattern import lazily

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
VALUE = lazily("|".join(f"(?P<{name}>{pattern})" for name, pattern in _ALTERNATIVES.items()), re.IGNORECASE)
"""Matched where a value may begin; the groups tell its kind."""
ADDRESS = lazily(
    r"(?P<url>\b(?:https?://|www\.)(?:[^\s<>\"'()\]}|`]|\([^\s<>\"'()]*\))+)|(?P<email>(?<![A-Za-z0-9._%+\-])[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+)"
)
"""An e-mail address begins where such signs begin: else a long word would take the square of its length."""
QUOTED = lazily(r'"([^"\n]{3,60})"|[「『《]([^」』》\n]{2,40})[」』》]')
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
    r"|[a-z]+\d+(?:_[a-z]{3,})+)$",
    re.IGNORECASE,
)
"""What has letters and digits and names nothing of a case: standards, roads, models; decades, spans, sizes, odds;
functions (aes256_encrypt)."""
