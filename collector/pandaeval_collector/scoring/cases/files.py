"""Case files, read with the place of everything: whatever is wrong with one is told at once, with its line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.yaml_text import (
    BadTextError,
    Place,
    TooLongError,
    read_json,
    read_text,
    read_yaml,
)
from pandaeval_collector.scoring.cases.graders import complete
from pandaeval_collector.scoring.cases.mistakes import as_told, sentence
from pandaeval_collector.scoring.cases.model import Suite
from pandaeval_collector.scoring.registry import registry

_MOST_BYTES = 64 << 20
_CURE = "write a list of them, such as - id: refund-3, or a map with the key cases"
_OTLP = ("resourceSpans", "resource_spans", "resourceLogs")


class CaseFileError(UserError):
    """A case file that cannot be used; a line for each problem."""


def read_suite(path: Path, modules: tuple[str, ...] = ()) -> Suite:
    """The cases of a file, YAML or JSON: a list, a map with ``cases``, or one case. ``modules``: the user's own
    metrics, which may be graders. Raises :class:`CaseFileError`."""
    try:
        text = read_text(path, _MOST_BYTES)
    except TooLongError as error:
        told = f"{path}: is larger than {_MOST_BYTES >> 20} MiB; take cases apart into several files"
        raise CaseFileError(told) from error
    except OSError as error:
        cure = "name a case file (docs/cases.md)"
        raise CaseFileError(f"{path}: cannot be read: {error.strerror}; {cure}") from error
    except UnicodeDecodeError as error:
        raise CaseFileError(f"{path}: is not UTF-8 text ({error.reason})") from error
    known = [metric.name for metric in registry(modules).values() if metric.level == "trial"]
    return _suite(text, path, known)


def _suite(text: str, path: Path, known: Collection[str]) -> Suite:
    if any(f'"{key}"' in text[:200] for key in _OTLP):
        raise CaseFileError(f"{path}: holds traces and no cases; cases go to --cases, and traces beside evaluate")
    if not text.strip():
        raise CaseFileError(f"{path}: is empty; {_CURE}")
    try:
        given, lines = read_json(text) if path.suffix == ".json" else read_yaml(text)
    except BadTextError as error:
        told = (f"{path}{f':{line}' if line else ''}: {fault}" for line, fault in error.faults)
        raise CaseFileError("\n".join(told)) from error
    inside: Place = ()
    if isinstance(given, list):
        given, inside = {"cases": given}, ("cases",)
    elif isinstance(given, dict) and "id" in given and "cases" not in given:
        given, inside = {"cases": [given]}, ("cases", 0)
    if not isinstance(given, dict):
        raise CaseFileError(f"{path}: holds no cases; {_CURE}")
    try:
        suite, faults = complete(Suite.model_validate(given), known)
    except ValidationError as error:
        raise CaseFileError("\n".join(_told(error, path, lines, inside))) from error
    if faults:
        raise CaseFileError("\n".join(_placed(path, place, text, lines, inside) for place, text in faults))
    return suite


def _told(error: ValidationError, path: Path, lines: dict[Place, int], inside: Place) -> Iterator[str]:
    found = as_told(error.errors(include_url=False))
    for each in sorted(found, key=lambda each: _line(each["loc"], lines, inside) or 0):
        yield _placed(path, each["loc"], sentence(each), lines, inside)


def _placed(path: Path, place: Place, text: str, lines: dict[Place, int], inside: Place) -> str:
    line = _line(place, lines, inside)
    return f"{path}{f':{line}' if line else ''}: {_dotted(place)}: {text}"


def _line(place: Place, lines: dict[Place, int], inside: Place) -> int | None:
    """Of the value, or of the innermost that holds it and stands in the file."""
    found = tuple(place[len(inside) :])
    if "graders" in found and found[: found.index("graders") + 1] not in lines:  # its other spelling
        found = (*found[: found.index("graders")], "grader")
    while found not in lines and found:
        found = found[:-1]
    return lines.get(found)


def _dotted(place: Place) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
