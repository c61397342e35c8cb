"""Tests all product regular expressions with adversarial texts.

Texts consist of prefix, repetition and mismatching end. Runtime patterns are not covered.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import re._constants as code
import re._parser as parser
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POOL = " a\n1A-_.,/(['\"=:\\é<*#)]}{`««x0\t|~%$?!+&;@^\u2026ne"
"""Characters that repetitions are tested with."""
SIZES = (24, 32, 48, 96, 192, 1_536, 6_144)
"""Sizes of the texts, smallest first."""
MOST_SECONDS = 0.01
"""Seconds below which timing is not significant."""
MOST_RATIO = 6.0
"""Maximum time ratio for four times the text: linear is 4, quadratic 16."""


@dataclass(frozen=True)
class Pattern:
    """A pattern and its method, default ``search``."""

    place: str
    text: str
    flags: int
    method: str

    @property
    def compiled(self) -> re.Pattern[Any]:
        return re.compile(self.text, self.flags)


@dataclass(frozen=True)
class Slow:
    """A text with more than linear time."""

    pattern: Pattern
    start: str
    middle: str
    end: str
    characters: int
    seconds: float
    ratio: float

    def __str__(self) -> str:
        return (
            f"{self.pattern.place}: {self.start!r} + {self.middle!r} * n + {self.end!r}: {self.seconds:.2f} s for "
            f"{self.characters} characters, x{self.ratio:.0f} for x4: {self.pattern.text[:120]!r}"
        )


def patterns(packages: Iterable[str]) -> list[Pattern]:
    modules = [module for package in packages for module in _modules(package)]
    trees = {module.__name__: ast.parse(Path(str(module.__file__)).read_text()) for module in modules}
    asked = {name: _asked_by(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        for node in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
            for alias in node.names:
                methods = asked[name].get(alias.asname or alias.name, set())
                asked.get(str(node.module), {}).setdefault(alias.name, set()).update(methods)
    patterns: dict[tuple[str, int, str], Pattern] = {}
    for module in modules:
        place = module.__name__
        held = [
            Pattern(
                f"{place}.{name}", held.pattern, held.flags & ~re.UNICODE, _costliest(asked[place].get(name, set()))
            )
            for name, value in vars(module).items()
            for held in _held(value)
        ]
        for pattern in [*held, *_written_out(trees[place], place)]:
            patterns.setdefault((pattern.text, pattern.flags, pattern.method), pattern)
    return list(patterns.values())


def _costliest(methods: set[str]) -> str:
    return next((method for method in ("search", "match", "fullmatch") if method in methods), "search")


def slow_texts(pattern: Pattern) -> Iterator[Slow]:
    ask = getattr(pattern.compiled, pattern.method)
    plain = _cpu(ask, "x y " * (SIZES[-1] // 4))
    for start, middle, end in sorted(_pumps(pattern)):
        for size in SIZES:
            seconds = _cpu(ask, _pumped(start, middle, end, size))
            if seconds > max(MOST_SECONDS, 3 * plain):
                tries = 3 if seconds < 0.5 else 1
                ratio = _ratio(ask, start, middle, end, size, tries)
                for _ in range(2 * (tries > 1)):  # a busy machine may be slower for one of the two texts
                    if ratio > MOST_RATIO:
                        ratio = min(ratio, _ratio(ask, start, middle, end, size, tries))
                if ratio > MOST_RATIO and seconds < 10 * MOST_SECONDS and size < SIZES[-1]:
                    continue  # a bounded repetition takes linear time beyond its bound
                if ratio > MOST_RATIO:
                    yield Slow(pattern, start, middle, end, size, seconds, ratio)
                break


def _pumped(start: str, middle: str, end: str, size: int) -> str:
    return start + middle * (size // min(4, len(middle)) + 1) + end


def _ratio(ask: Any, start: str, middle: str, end: str, size: int, tries: int) -> float:
    """Measure the time ratio for a text four times as long."""
    small, large = (_pumped(start, middle, end, n) for n in (size // 4, size))
    fast, slow = (
        min(_cpu(ask, text) for _ in range(times)) for text, times in ((small, 3), (large[: 4 * len(small)], tries))
    )
    return slow / max(fast, 1e-6)


def _cpu(ask: Any, text: str) -> float:
    begun = time.thread_time()
    ask(text)
    return time.thread_time() - begun


def _modules(package: str) -> Iterator[Any]:
    root = importlib.import_module(package)
    yield root
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def _held(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        text = value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
        yield re.compile(text, value.flags & ~re.UNICODE)
    elif type(value).__name__ == "_Uncompiled":
        yield re.compile(*value.__dict__["_arguments"])
    elif depth < 4 and isinstance(value, dict):
        for item in [*value.keys(), *value.values()]:
            yield from _held(item, depth + 1)
    elif depth < 4 and isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _held(item, depth + 1)
    elif depth < 4 and not isinstance(value, type) and type(value).__module__.startswith("pandaeval"):
        for name in [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]:
            yield from _held(getattr(value, name, None), depth + 1)


def _asked_by(tree: ast.Module) -> dict[str, set[str]]:
    """Return the methods applied to each name; default: search."""
    nodes = list(ast.walk(tree))
    called = {id(n.value): n.attr for n in nodes if isinstance(n, ast.Attribute)}
    standing = {
        id(item): table.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and isinstance(table := node.targets[0], ast.Name)
        for item in ast.walk(node.value)
    }
    standing |= {
        id(loop.iter): loop.target.id
        for loop in nodes
        if isinstance(loop, ast.comprehension | ast.For) and isinstance(loop.target, ast.Name)
    }
    loaded: dict[str, list[ast.Name]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loaded.setdefault(node.id, []).append(node)

    def asked(name: str, depth: int = 0) -> set[str]:
        methods: set[str] = set()
        for node in loaded.get(name, ()):
            if id(node) in standing and depth < 4:
                methods |= asked(standing[id(node)], depth + 1)
            else:
                method = called.get(id(node), "search")
                methods.add(method if method in ("match", "fullmatch") else "search")
        return methods

    return {name: asked(name) for name in loaded}


def _written_out(tree: ast.Module, module: str) -> Iterator[Pattern]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in (node for function in functions for node in ast.walk(function)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        owner, first = node.func.value, node.args[0]
        if not (isinstance(owner, ast.Name) and owner.id == "re" and isinstance(first, ast.Constant)):
            continue
        if isinstance(first.value, str) and node.func.attr != "escape":
            method = node.func.attr if node.func.attr in ("match", "fullmatch") else "search"
            yield Pattern(f"{module}:{node.lineno}", first.value, 0, method)


def _pumps(pattern: Pattern) -> set[tuple[str, str, str]]:
    tree = parser.parse(pattern.text, pattern.flags)
    pumps: set[tuple[str, str, str]] = set()
    for lead, bodies, rest in _repetitions(tree, "", "", pattern.flags):
        for body in bodies:
            pumps |= {(lead, body, "\x00"), (lead, body, f"{rest}\x00"), ("", lead + body, "\x00")}
        pumps.add(("", lead, "\x00"))
    whole = _sample(tree, pattern.flags)
    pumps |= {("", whole, "\x00"), ("", whole[:-1], "\x00")}
    return {pump for pump in pumps if pump[1]}


def _repetitions(tree: Any, lead: str, rest: str, flags: int) -> Iterator[tuple[str, list[str], str]]:
    """Yield prefix, bodies and suffix of each unbounded repetition."""
    for at, (op, given) in enumerate(tree):
        behind = _sample(tree[at + 1 :], flags, full=True) + rest
        if op in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            least, most, body = given
            if most > 8:
                yield lead, _bodies(body, flags), behind
            yield from _repetitions(body, lead, behind, flags)
            lead += _sample(body, flags) * int(least)
            continue
        for inner in _inner(op, given):
            yield from _repetitions(inner, lead, behind, flags)
        lead += _sample([(op, given)], flags)


def _inner(op: Any, given: Any) -> list[Any]:
    if op is code.SUBPATTERN:
        return [given[3]]
    if op is code.BRANCH:
        return list(given[1])
    if op in (code.ASSERT, code.ASSERT_NOT):
        return [given[1]]
    if op is code.ATOMIC_GROUP:
        return [given]
    return []


def _bodies(body: Any, flags: int) -> list[str]:
    samples = {_sample(body, flags)}
    if len(body) == 1 and body[0][0] in (code.IN, code.ANY, code.NOT_LITERAL, code.CATEGORY):
        takes = [c for c in POOL if _takes(body[0], c, flags)]
        samples.update(takes[:8])
        samples.update(f"a{mark}" for mark in takes[:6] if "a" in takes and not mark.isalnum())
    if len(body) == 1 and body[0][0] in (code.BRANCH, code.SUBPATTERN):
        for inner in _inner(*body[0]):
            samples.add(_sample(inner, flags))
    return sorted(samples - {""})


def _takes(node: Any, character: str, flags: int) -> bool:
    op, given = node
    if op is code.ANY:
        return character != "\n" or bool(flags & re.DOTALL)
    if op is code.NOT_LITERAL:
        return ord(character) != given
    if op is code.CATEGORY:
        given = [(op, given)]
    negated, hit = False, False
    for kind, value in given:
        if kind is code.NEGATE:
            negated = True
        elif kind is code.LITERAL:
            hit |= ord(character) == value
        elif kind is code.RANGE:
            hit |= value[0] <= ord(character) <= value[1]
        elif kind is code.CATEGORY:
            hit |= _in_category(value, character)
    return hit != negated


def _in_category(category: Any, character: str) -> bool:
    name = str(category)
    is_in = {
        "DIGIT": character.isdigit(),
        "SPACE": character.isspace(),
        "WORD": character.isalnum() or character == "_",
    }[name.rsplit("_", 1)[-1]]
    return is_in != ("NOT" in name)


def _sample(tree: Any, flags: int, full: bool = False) -> str:
    """Return a matching text. ``full``: with optional parts."""
    text = ""
    for op, given in tree:
        if op is code.LITERAL:
            text += chr(given)
        elif op in (code.IN, code.ANY, code.NOT_LITERAL, code.CATEGORY):
            text += next((c for c in "xa1 -.:/(\n" + POOL if _takes((op, given), c, flags)), "") or _listed(given)
        elif op in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
            text += _sample(given[2], flags, full) * max(int(given[0]), full)
        elif op is code.SUBPATTERN:
            text += _sample(given[3], flags, full)
        elif op is code.BRANCH:
            text += _sample(given[1][0], flags, full)
        elif op is code.ATOMIC_GROUP:
            text += _sample(given, flags, full)
    return text


def _listed(given: Any) -> str:
    for kind, value in given if isinstance(given, list) else []:
        if kind is code.LITERAL:
            return chr(value)
        if kind is code.RANGE:
            return chr(value[0])
    return ""
