"""Counts true flags of our metrics in the ledger of ``tests/lab/flags.py``."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pandaeval_collector.analysis.stats.quantiles import wilson

LEDGER = Path(__file__).parents[1] / "lab/flags-ledger.jsonl"
VERDICTS = ("true", "general_knowledge", "wrong")
KEYS = ("flag", "metric", "version", "set", "verdict", "cause", "reader")
_Z95 = 1.959963984540054
_CAUSES = 5
_LONGEST_CAUSE = 100


def recorded(path: Path = LEDGER) -> list[dict[str, str]]:
    """Return a ledger's lines, or none without a file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def record(
    verdicts: Iterable[Mapping[str, Any]], index: Iterable[Mapping[str, str]], reader: str, ledger: Path = LEDGER
) -> tuple[int, int]:
    """Add verdicts to the ledger; return numbers added and still missing.

    Raises ``ValueError`` for an unknown flag, unknown verdict or missing cause.
    """
    known = {each["number"]: each for each in index}
    lines = {(line["flag"], line["reader"]): line for line in recorded(ledger)}
    taken = set()
    for row in verdicts:
        number, verdict = str(row["flag"]).removesuffix(".txt").zfill(3), row["verdict"]
        if number not in known or verdict not in VERDICTS:
            raise ValueError(f"{dict(row)}: the flag is one of the folder's, the verdict one of {', '.join(VERDICTS)}")
        cause = " ".join(str(row.get("cause", "")).split())[:_LONGEST_CAUSE]
        if not cause and verdict != "true":
            raise ValueError(f"flag {number}: say in a few words why it is {verdict}")
        flag = known[number]
        line = {**{key: flag[key] for key in KEYS if key in flag}, "verdict": verdict, "cause": cause, "reader": reader}
        lines[flag["flag"], reader] = {key: line[key] for key in KEYS}
        taken.add(number)
    ordered = sorted(lines.values(), key=lambda line: (line["metric"], int(line["version"]), line["set"], line["flag"]))
    ledger.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in ordered), encoding="utf-8")
    return len(taken), len(known) - len(taken)


def table(lines: Sequence[Mapping[str, str]]) -> str:
    """Return a Markdown table by metric and version, newest first. The majority decides; ties are not true."""
    by_metric: dict[tuple[str, int], dict[str, list[Mapping[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        by_metric[line["metric"], int(line["version"])][line["flag"]].append(line)
    head = ("metric", "version", "flags read", "true, 95 %", "general knowledge", "wrong", "why they are not true")
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (metric, version), flags in sorted(by_metric.items(), key=lambda item: (item[0][0], -item[0][1])):
        verdicts = {flag: _most([line["verdict"] for line in read]) for flag, read in flags.items()}
        count, n = Counter(verdicts.values()), len(flags)
        low, high = wilson(count["true"] / n, n, _Z95)
        share = f"{count['true'] / n:.2f} [{low:.2f}, {high:.2f}]"
        sets = Counter(read[0]["set"] for read in flags.values())
        of_sets = ", ".join(f"{name} {number}" for name, number in sorted(sets.items()))
        causes = Counter(
            next(line["cause"] for line in read if line["verdict"] == verdicts[flag])
            for flag, read in flags.items()
            if verdicts[flag] != "true"
        )
        why = "; ".join(
            f"{cause}{f' ({number})' if number > 1 else ''}" for cause, number in causes.most_common(_CAUSES)
        )
        why += f"; {len(causes) - _CAUSES} more" if len(causes) > _CAUSES else ""
        cells = (f"`{metric}`", version, f"{n} ({of_sets})", share, count["general_knowledge"], count["wrong"])
        rows.append("| " + " | ".join(map(str, (*cells, why.replace("|", "/") or "–"))) + " |")
    return "\n".join(rows) if by_metric else "No flag was read yet."


def _most(verdicts: Sequence[str]) -> str:
    """Return the majority, the least favourable for ties."""
    count = Counter(verdicts)
    return max(reversed(VERDICTS), key=lambda verdict: count[verdict])
