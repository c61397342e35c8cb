"""How large the rooms are, and how large ``budget.toml`` lets them be.

python tests/support/budget.py    # prints both, side by side
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_BUDGET = _ROOT / "budget.toml"
_SHARE = "one_caller_percent"
_UNITS = {_SHARE: "% of functions that are private and have one caller"}


def budget() -> dict[str, float]:
    """Returns what is allowed, by the names of ``measured``."""
    return tomllib.loads(_BUDGET.read_text(encoding="utf-8"))


def measured() -> dict[str, float]:
    """Returns the lines of Python that people wrote: of all packages, of each package and of each of its rooms
    (``package/room``); and the share of functions that are private and have one caller in their file, in percent."""
    lines: Counter[str] = Counter()
    functions = once = 0
    for folder in sorted([*_ROOT.glob("pandaeval_*/"), *_ROOT.glob("collector/pandaeval_*/")]):
        for file in folder.rglob("*.py"):
            if "_pb2" in file.name:
                continue
            text = file.read_text(encoding="utf-8")
            room = file.relative_to(folder).parts[0]
            for name in ("all", folder.name, f"{folder.name}/{room}")[
                : 2 if room.startswith("_") or "." in room else 3
            ]:
                lines[name] += text.count("\n")
            there, of_one_caller = _functions(text)
            functions += there
            once += of_one_caller
    return {**dict(sorted(lines.items())), _SHARE: round(100 * once / functions, 1)}


def complaints(there: Mapping[str, float], allowed: Mapping[str, float]) -> Iterator[str]:
    """Yields a sentence for each number above its budget, for each room without a budget, and for each budget of a
    room that there is not."""
    for name, number in there.items():
        unit = _UNITS.get(name, "lines")
        if name not in allowed:
            yield f"{name} has {number:,} {unit} and no budget: write one into budget.toml, with the reason beside it."
        elif number > allowed[name]:
            yield (
                f"{name} has {number:,} {unit}, and its budget is {allowed[name]:,}: make it smaller, or raise the "
                "number in budget.toml and write the reason beside it."
            )
    yield from (f"{name} is not there: take its budget out of budget.toml." for name in allowed if name not in there)


def _functions(text: str) -> tuple[int, int]:
    """Returns how many functions a file has, and how many of them are private and mentioned once beside their name."""
    words = Counter(re.findall(r"\w+", text))
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    names = [node.name for node in functions]
    private = (name for name in names if name.startswith("_") and not name.startswith("__"))
    return len(names), sum(words[name] == 2 for name in private)


if __name__ == "__main__":
    allowed = budget()
    print(f"{'':40}{'there':>10}{'budget':>10}")
    for name, number in measured().items():
        print(f"{name:40}{number:>10,}{allowed.get(name, 0):>10,}")
