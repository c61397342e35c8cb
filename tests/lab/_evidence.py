"""A flag with its evidence for human review."""

from __future__ import annotations

import re
from calendar import month_name
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lab._transcript import Item, transcript
from pandaeval_collector.base.result import Result
from pandaeval_otel.model import Trace

QUESTIONS = {
    "trace.grounding": "Is the flagged value made up (or does it contradict the record as the flag says)?\n"
    "  true: nothing that the agent had gives it, nor does it follow from that by plain arithmetic, and the answer\n"
    "    states it as a fact of this case; or the contradiction is there.\n"
    "  general_knowledge: it is not in the record, and states what is known of the world, an estimate or a proposal.\n"
    "  wrong: the record has it or it follows from the record, or it is no claim at all.",
    "trace.response": "Did the run end as the label says (error, silence, a call without an answer, a failed change)?\n"
    "  true or wrong. Not done and said so is still not done: `unrecovered_tool_error` is true there.",
    "trace.tool_loop": "Does the agent go round in circles: calls that are repeated in vain?\n"
    "  true or wrong. A call that is made again after something changed, or for news, is no loop.",
    "trace.loop_detection": "Does the answer say again what an earlier answer of the session said, without need?\n"
    "  true or wrong. What the user asked to hear again is no loop.",
    "trace.coherence": "Is the answer about something else than what was asked?\n  true or wrong.",
    "turn.tool_call_behavior_failure": "Did the turn repeat calls that could bring nothing new?\n  true or wrong.",
}
QUESTIONS |= {
    f"{metric}.suspect": QUESTIONS[metric]
    for metric in ("trace.grounding", "trace.loop_detection", "trace.coherence", "turn.tool_call_behavior_failure")
}
_SCREENS = 9_000
"""Characters of a flag's text."""
_PLACES = 12
_MONTHS = {name[:3].casefold(): number for number, name in enumerate(month_name) if name}
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a flag. ``entry``: value of ``grounding``. ``traces``: session around the flag at ``place``."""

    metric: str
    version: str
    result: Result
    entry: dict[str, Any] | None
    traces: Sequence[Trace]
    place: int

    def page(self) -> str:
        """Return a short version."""
        items = transcript(self.traces)
        before = [item for item in items if item.trace <= self.place]
        lines = [*self._claim(), ""]
        if self.entry is not None:
            lines += ["--- where parts of the value stand in what the agent had", *self._places(before), ""]
        room = _SCREENS - sum(len(line) + 1 for line in lines)
        after = self._shortened([item for item in items if item.trace > self.place], room // 4, False)
        room -= sum(len(line) + 1 for line in after)
        lines += ["--- the record, newest last (>> marks the flagged run, ** the steps that the result names)"]
        lines += self._shortened(before, room, True)
        if after:
            lines += ["", "--- what came after in the session", *after]
        return "\n".join(lines) + "\n"

    def record(self) -> str:
        """Return the full text."""
        return "\n\n".join(f"{self._mark(item)} {item.role}: {item.text}" for item in transcript(self.traces)) + "\n"

    def _claim(self) -> list[str]:
        result, finding = self.result, self.result.finding
        lines = [f"metric {self.metric}, version {self.version}", QUESTIONS[self.metric], ""]
        score = "" if result.score is None else f"{result.score:.3g}"
        lines += [f"--- the flag: {result.label}, score {score}", f"reason: {finding.reason}"]
        if self.entry is not None:
            lines += [f"THE FLAGGED VALUE: {self.entry['value']!r} ({self.entry['kind']})"]
            lines += [f"  said in: {self.entry['text']}"]
            lines += [f"  {key}: {self.entry[key]}" for key in ("argument", "but") if key in self.entry]
            others = [each["value"] for key in ("not_grounded", "suspect") for each in finding.metadata.get(key, ())]
            others = [each for each in dict.fromkeys(others) if each != self.entry["value"]]
            lines += [f"(also listed, not to be judged here: {', '.join(map(repr, others[:8]))})"] if others else []
        else:
            lines += [f"  {key}: {str(value)[:400]}" for key, value in finding.metadata.items()]
        return lines

    def _places(self, items: Sequence[Item]) -> list[str]:
        patterns = _patterns(str((self.entry or {})["value"]))
        lines = []
        for pattern in patterns:
            found: dict[str, str] = {}
            for item in items:
                for at in list(pattern.finditer(item.text))[:3]:
                    cut = " ".join(item.text[max(0, at.start() - 90) : at.end() + 90].split())
                    found.setdefault(cut, f"  {item.role}{' of this run' * (item.trace == self.place)}: …{cut}…")
            most = max(3, _PLACES // len(patterns))
            lines += [f"{pattern.pattern}: {len(found)} places", *list(found.values())[:most]]
        return lines or ["  (no part to look for)"]

    def _mark(self, item: Item) -> str:
        named = item.span_id and item.span_id in getattr(self.result.finding, "span_ids", ())
        return ("**" if named else "  ") + (">>" if item.trace == self.place else "  ")

    def _shortened(self, items: Sequence[Item], room: int, from_end: bool) -> list[str]:
        """Return fitting items, newest first with ``from_end``."""
        patterns = _patterns(str(self.entry["value"])) if self.entry is not None else []
        kept: list[str] = []
        runs = [(next(run), 1 + sum(1 for _ in run)) for _, run in groupby(items, lambda item: (item.role, item.text))]
        order = runs[::-1] if from_end else runs
        for count, (item, times) in enumerate(order):
            own = item.trace == self.place
            most = 400 if item.role == "instructions" else (1_800 if item.role != "call" else 1_100) if own else 500
            if self.metric == "trace.loop_detection" and item.role == "assistant":
                most = 1_200
            text = _cut(item.text, most, patterns)
            line = f"{self._mark(item)} {item.role}{f' ({times} times alike)' * (times > 1)}: {text}"
            if len(line) > room:
                kept.append(f"(… {len(order) - count} more in records/)")
                break
            room -= len(line) + 1
            kept.append(line)
        return kept[::-1] if from_end else kept


def _cut(text: str, most: int, patterns: Sequence[re.Pattern[str]]) -> str:
    """Shorten text around a pattern's first match."""
    if len(text) <= most:
        return text
    at = next((found.start() for pattern in patterns if (found := pattern.search(text))), None)
    if at is not None and at > most // 2:
        begin = min(max(0, at - most // 2), len(text) - most)
        return f"{text[:150]} […] {text[begin : begin + most - 150]} […]"
    if at is not None:
        return text[:most] + " […]"
    return f"{text[: 2 * most // 3]} […] {text[-most // 3 :]}"


def _patterns(value: str) -> list[re.Pattern[str]]:
    """Return patterns of numbers, long words and dates."""
    month = next((number for name, number in _MONTHS.items() if re.search(rf"\b{name}", value.casefold())), None)
    texts = []
    for number in dict.fromkeys(_NUMBER.findall(value)):
        digits = number.replace(",", "").removesuffix(".00")
        whole, _, rest = digits.partition(".")
        if month is not None and len(whole) <= 2 and not rest:
            name = month_name[month]
            texts.append(
                rf"0?{month}[-/]0?{int(whole)}\b|{name[:3]}\w*\.? 0?{int(whole)}\b|\b0?{int(whole)}\w* {name[:3]}"
            )
            continue
        grouped = f"{int(whole):,}" if whole.isdigit() and len(whole) < 16 and not whole.startswith("0") else whole
        body = whole if grouped == whole else f"(?:{whole}|{grouped})"
        tail = rf"\.{rest.rstrip('0')}" if rest.rstrip("0") else ""
        texts.append(rf"(?<!\d){body}{tail}(?!\d)")
    texts += [re.escape(word) for word in dict.fromkeys(_WORD.findall(value)) if word[:3].casefold() not in _MONTHS]
    return [re.compile(text, re.IGNORECASE) for text in texts[:6]]
