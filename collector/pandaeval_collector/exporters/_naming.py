"""OpenTelemetry's names as Prometheus has them, so that a series has the same name by scrape and by OTLP.

After Prometheus' otlptranslator, strategy UnderscoreEscapingWithSuffixes.
"""

from __future__ import annotations

import re

_UNITS = {"s": "seconds", "ms": "milliseconds", "By": "bytes", "%": "percent", "1": "ratio"}


def metric_name(name: str, unit: str) -> tuple[str, str]:
    """The name of a metric family with its unit as suffix (counters get ``_total`` besides), and the unit; ``""`` for
    units that are words in braces."""
    escaped = _escape(name)
    word = "" if unit.startswith("{") else _UNITS.get(unit, "")
    if word and word not in escaped.split("_"):
        escaped = f"{escaped}_{word}"
    return escaped, word if escaped.endswith(f"_{word}") else ""


def label_name(key: str) -> str:
    """The name of a label."""
    return _escape(key)


def _escape(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_:]+", "_", name)
