"""Measures the codebase against the limits in ``budget.toml``.

python tests/support/budget.py    # prints both
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_BUDGET = _ROOT / "budget.toml"
_PACKAGES = ("pandaeval_otel", "collector/pandaeval_collector", "collector/pandaeval_lab")
_HEAVY = 25
_COUNTED = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.If, ast.For, ast.While, ast.AsyncFor, ast.Match)
_WRAPPERS = (ast.Try, ast.With, ast.AsyncWith)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NESTED = (*_FUNCTIONS, ast.Lambda)


@dataclass
class Code:
    """Counts over files, without docstrings, comments and blank lines."""

    lines: int = 0
    tokens: int = 0
    conditional_expressions: int = 0
    heavy_functions: int = 0
    scattered_constants: int = 0
    """Files that define two or more constants after their first function or class."""

    def add(self, text: str) -> None:
        tree = ast.parse(text)
        code_lines = _code_lines(text, tree)
        self.lines += len(code_lines)
        self.tokens += sum(
            token.type in _COUNTED and token.start[0] in code_lines
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
        )
        for node in ast.walk(tree):
            self.conditional_expressions += isinstance(node, ast.IfExp)
            if isinstance(node, _FUNCTIONS):
                self.heavy_functions += function_weight(node) > _HEAVY
        self.scattered_constants += _late_constants(tree) >= 2


def budget() -> dict[str, float]:
    """Return the limits by name."""
    return tomllib.loads(budget_text())


def measured() -> dict[str, float]:
    """Return the repository's numbers by name."""
    total = Code()
    numbers: dict[str, float] = {}
    for package in _PACKAGES:
        code = Code()
        for file in sorted((_ROOT / package).rglob("*.py")):
            if "_pb2" in file.name or "_proto" in file.parts:
                continue
            text = file.read_text(encoding="utf-8")
            code.add(text)
            total.add(text)
        numbers[f"tokens_{package.rpartition('/')[2]}"] = code.tokens
    return {
        "tokens": total.tokens,
        **numbers,
        "heavy_functions": total.heavy_functions,
        "tokens_per_line": round(total.tokens / total.lines, 2),
        "conditional_expressions_per_1000_lines": round(1000 * total.conditional_expressions / total.lines, 1),
        "files_with_scattered_constants": total.scattered_constants,
        "configuration_keys": _configuration_keys(),
        "package_changes": _package_changes(),
    }


def complaints(numbers: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence for each exceeded, unknown or missing limit."""
    for name, number in numbers.items():
        if name not in limits:
            yield f"{name} is {number:,} and has no limit: add it to budget.toml."
        elif number > limits[name]:
            yield f"{name} is {number:,}, above the limit of {limits[name]:,} in budget.toml: remove something."
    for name in limits:
        if name not in numbers:
            yield f"{name} is not measured: remove it from budget.toml."


def raised_without_reason(before: str, after: str) -> Iterator[str]:
    """Yield a sentence for each raised limit without a new ``# raised: …`` comment."""
    limits = tomllib.loads(before)
    reasons = _reasons(before)
    for name, number in tomllib.loads(after).items():
        if number <= limits.get(name, number):
            continue
        reason = _reasons(after).get(name)
        if not reason or reason == reasons.get(name):
            yield f"{name} rises from {limits[name]:,} to {number:,}: add '# raised: REASON' to its line."


def budget_text() -> str:
    return _BUDGET.read_text(encoding="utf-8")


def earlier_budget() -> str | None:
    """Return the earlier ``budget.toml``: at the merge base, or at the parent commit.

    ``None`` if it is unavailable.
    """
    head = _git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        base = _git("merge-base", "HEAD", branch)
        if base and base != head:
            break
    else:
        base = _git("rev-parse", "HEAD^")
    text = _git("show", f"{base.strip()}:budget.toml") if base else None
    return text if text and "heavy_functions" in text else None


def function_weight(function: ast.AST) -> int:
    return _weight(function, 0)


def _weight(node: ast.AST, depth: int) -> int:
    total = 0
    for child in ast.iter_child_nodes(node):
        own, deeper = _step(child, depth)
        total += own + _weight(child, depth + deeper)
    return total


def _step(node: ast.AST, depth: int) -> tuple[int, int]:
    """Return the weight of a node and its added levels."""
    if isinstance(node, (*_LOOPS, ast.IfExp, *_COMPREHENSIONS)):
        return 1 + depth, 1
    if isinstance(node, _WRAPPERS):
        return 1, 1
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1, 0
    return 0, int(isinstance(node, _NESTED))


def _code_lines(text: str, tree: ast.Module) -> set[int]:
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                docstrings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return {
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and number not in docstrings and not line.lstrip().startswith("#")
    }


def _late_constants(tree: ast.Module) -> int:
    seen_definition = False
    late = 0
    for node in tree.body:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            seen_definition = True
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            late += seen_definition
    return late


def _configuration_keys() -> int:
    from pandaeval_collector.config import Config

    schema = Config.model_json_schema()
    return sum(1 for _ in _leaves(schema, schema.get("$defs", {})))


def _package_changes() -> int:
    """Count package changes of two traces in a fresh interpreter; see ``support.walk``."""
    command = [sys.executable, str(Path(__file__).with_name("walk.py")), "--total"]
    return int(subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout)


def _leaves(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[None]:
    node = _section(node, definitions)
    if not node.get("properties"):
        yield None
        return
    for child in node["properties"].values():
        yield from _leaves(child, definitions)


def _section(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow the reference of a schema node, also of an optional section."""
    for choice in (node, *node.get("anyOf", ())):
        if "$ref" not in choice:
            continue
        section = definitions[choice["$ref"].rpartition("/")[2]]
        if section.get("properties"):
            return dict(section)
    return node


def _reasons(text: str) -> dict[str, str]:
    reasons = {}
    for line in text.splitlines():
        name, _, rest = line.partition("=")
        _, marker, reason = rest.partition("# raised:")
        if marker:
            reasons[name.strip().strip('"')] = reason.strip()
    return reasons


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None if done.returncode == 0 else None


if __name__ == "__main__":
    limits = budget()
    print(f"{'':42}{'measured':>10}{'limit':>10}")
    for name, number in measured().items():
        print(f"{name:42}{number:>10,}{json.dumps(limits.get(name)):>10}")
