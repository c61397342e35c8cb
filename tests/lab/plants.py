"""Measures how many planted values ``grounding`` detects.

    python tests/lab/plants.py SET [--half even|odd|all] [--draw 40] [--seed 1] [--limit SESSIONS] [--missed]

Replaces a known value in a good session's answer with an unknown value. *contradiction*: the turn has a single value
of that kind or key. *digit*: one changed digit. *named*: fails the run; *listed*: at least suspect; *sent*: at least
judged. Turns without calls count separately. ``--missed`` prints undetected values.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from lab._sessions import HALVES, SETS, sessions, with_before  # noqa: E402
from pandaeval_collector.base.score import Score, Unscored  # noqa: E402
from pandaeval_collector.scoring.metric import Texts, TraceContext  # noqa: E402
from pandaeval_collector.scoring.metrics.trace.grounding import METRIC  # noqa: E402
from pandaeval_otel.model import Message, Text, Trace  # noqa: E402

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_KINDS = {
    "amount": re.compile(r"\$\d+(?:,\d{3})*(?:\.\d\d)?(?![\w,.]\d|[kKmMbB])"),
    "date": re.compile(rf"(?<![=/\w])(?:\b\d{{4}}-\d\d-\d\d\b|\b(?:{'|'.join(_MONTHS)}) \d{{1,2}}\b(?! ?[-–]))"),
    "time": re.compile(r"(?<![+:\w-])\d{1,2}:\d\d(?![:\d])(?: ?[AaPp][Mm]\b)?"),
    "identifier": re.compile(
        r"(?<![\w$%/=.+`-])(?:#\w{0,3}\d{4,}|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{6,10}|[A-Za-z]{2,}[A-Za-z_-]*[_-]?\d{3,})(?![\w.-])"
    ),
}
_CONTRADICTED = ("amount", "date", "time")
_LONG = re.compile(
    r"(?<![\w.,/-])(?:\$\d{4,}|\$\d{1,3}(?:,\d{3})+|\d{1,3}(?:,\d{3}){2,}|\d{2,3},\d{3}|\d{5,})(?:\.\d\d?)?(?![\w,%-]|\.\d)"
)


def context(earlier: Any) -> TraceContext:
    """Return the metric's input besides the trace."""
    return TraceContext(Texts({}, (), "none", None), METRIC.threshold or 0.0, before=earlier)


def fails(found: Any) -> bool:
    return isinstance(found, Score) and (found.failed or found.value < (METRIC.threshold or 0.0))


def made_up(kind: str, value: str, draw: random.Random) -> str:
    """Return another value of the same form."""
    if kind == "date":
        month, day = draw.randint(1, 12), draw.randint(1, 28)
        if value[0].isdigit():
            return f"{value[:4]}-{month:02d}-{day:02d}"
        return f"{_MONTHS[month - 1]} {day}"
    if kind == "time":
        hour, minute = draw.randint(1, 12 if value[-1] in "mM" else 23), draw.randint(0, 59)
        return re.sub(r"\d{1,2}:\d\d", f"{hour:02d}:{minute:02d}", value)

    def other(sign: re.Match[str]) -> str:
        if sign[0].isdigit():
            return draw.choice("123456789")
        return draw.choice("BCDFGHJKLMNPQRSTVWXZ") if value.isupper() else sign[0]

    return re.sub(r"[0-9]|[A-Z]", other, value)


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield texts and numbers of a result with keys."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, key)
    elif value is not None and not isinstance(value, bool):
        yield key, str(value)


def contradicts(trace: Trace, value: str) -> bool:
    """Return whether results have a single value of this kind or key."""
    kind = next(kind for kind, pattern in _KINDS.items() if pattern.fullmatch(value))
    plain = value.strip("$").replace(",", "")
    found = [leaf for call in trace.tool_calls for leaf in leaves(call.result)]
    keys = {key for key, text in found if plain in (text, f"{text}.00", f"{text}0")}
    worth = re.compile("price|cost|fee|amount|total|fare|balance", re.IGNORECASE)
    texts = [text for key, text in found if key in keys or (worth.search(key) if kind == "amount" else True)]
    alike = {text for text in texts if kind == "amount" or _KINDS[kind].search(text)}
    line = next(line for line in (trace.output or "").splitlines() if value in line).casefold()
    for key in keys:
        words = re.findall("[a-z]{3,}", re.sub("(?<=[a-z])(?=[A-Z])", " ", key).casefold().replace("_", " "))
        if words and all(word in line for word in words) and len({text for name, text in found if name == key}) == 1:
            return True
    return bool(keys) and len(alike) == 1


def slipped(value: str, draw: random.Random) -> str:
    """Return a number with a changed digit."""
    whole, point, cents = value.strip("$").replace(",", "").partition(".")
    at, how = draw.randrange(len(whole) - 1), draw.choice(("drop", "double", "swap"))
    if how == "swap":
        whole = whole[:at] + whole[at + 1] + whole[at] + whole[at + 2 :]
    else:
        whole = whole[:at] + whole[at] * (2 if how == "double" else 0) + whole[at + 1 :]
    grouped = f"{int(whole):,}" if "," in value else whole
    return f"{'$' if value[0] == '$' else ''}{grouped}{point}{cents}"


def planted(trace: Trace, old: str, new: str) -> Trace:
    """Return the trace with a replaced answer value."""

    def message(each: Message) -> Message:
        parts = (
            replace(part, text=part.text.replace(old, new)) if isinstance(part, Text) else part for part in each.parts
        )
        return replace(each, parts=tuple(parts))

    spans = tuple(replace(s, output=tuple(map(message, s.output)) if s.output else s.output) for s in trace.spans)
    turns = tuple(
        replace(t, assistant=t.assistant.replace(old, new) if t.assistant else t.assistant) for t in trace.turns
    )
    output = trace.output.replace(old, new) if trace.output else trace.output
    return replace(trace, spans=spans, turns=turns, output=output)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--half", choices=HALVES, default="even")
    parser.add_argument("--draw", type=int, default=40, help="values of each kind, with calls in the turn and without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="sessions that are read at most")
    parser.add_argument("--missed", action="store_true", help="show what was not named")
    asked = parser.parse_args()
    draw = random.Random(asked.seed)
    chances = defaultdict(list)
    for _, good, traces in sessions(asked.set, asked.half, asked.limit):
        for trace, earlier in with_before(traces) if good else ():
            passes = not fails(METRIC.evaluate(trace, context(earlier)))
            if trace.output and passes:
                held = str((earlier.found if earlier else (), [span.input for span in trace.spans], trace.tool_calls))
                for kind, pattern in _KINDS.items():
                    there = [each for each in dict.fromkeys(pattern.findall(trace.output)) if each.strip("#$") in held]
                    if there:
                        chances[kind, bool(trace.tool_calls)].append((trace, earlier, draw.choice(there), held))
                    single = [each for each in there if kind in _CONTRADICTED and contradicts(trace, each)]
                    if single:
                        chances["contradiction", True].append((trace, earlier, draw.choice(single), held))
                results = re.findall(r"[\d.]+", str([call.result for call in trace.tool_calls]))
                long = [each for each in _LONG.findall(trace.output) if each.replace(",", "") in results]
                if long:
                    chances["digit", True].append((trace, earlier, draw.choice(long), held))
    count: Counter[tuple[str, bool, str]] = Counter()
    for (kind, calls), all_of_kind in sorted(chances.items()):
        for trace, earlier, old, held in draw.sample(all_of_kind, min(asked.draw, len(all_of_kind))):
            form = next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(old)), kind)
            tries = (slipped(old, draw) if kind == "digit" else made_up(form, old, draw) for _ in range(99))
            new = next((each for each in tries if each.strip("#$") not in held), None)
            if new is None:
                continue
            found = METRIC.evaluate(planted(trace, old, new), context(earlier))
            bare = new.strip("#$")
            entries = {
                key: found.metadata.get(key, []) if isinstance(found, Score | Unscored) else []
                for key in ("not_grounded", "suspect", "for_judge")
            }
            named = fails(found) and any(
                bare in each["value"] or each["value"] in bare for each in entries["not_grounded"]
            )
            listed = named or any(bare in each["value"] or each["value"] in bare for each in entries["suspect"])
            sent = listed or any(bare in each["value"] or each["value"] in bare for each in entries["for_judge"])
            count.update(
                [
                    (kind, calls, "all"),
                    *[(kind, calls, "named")] * named,
                    *[(kind, calls, "listed")] * listed,
                    *[(kind, calls, "sent")] * sent,
                ]
            )
            if asked.missed and not named:
                at = (trace.output or "").find(old)
                print(
                    f"{kind} {old} -> {new} calls={calls} listed={listed} sent={sent} {type(found).__name__} "
                    f"{(trace.output or '')[max(0, at - 90) : at + 60]!r}"
                )
    for kind in (*_KINDS, "contradiction", "digit"):
        for calls in (True, False):
            of = count[kind, calls, "all"]
            print(
                f"{kind:10} {'calls' if calls else 'no call'}: named {count[kind, calls, 'named']} of {of}, "
                f"listed {count[kind, calls, 'listed']}, sent {count[kind, calls, 'sent']}"
            )


if __name__ == "__main__":
    main()
