"""Case files, read with the place of everything: whatever is wrong with one is told at once, with its line."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pandaeval_collector.cases.graders import complete
from pandaeval_collector.cases.model import Case, Suite
from pandaeval_collector.errors import UserError
from pandaeval_collector.metric.registry import registry
from pandaeval_collector.untrusted.yaml_text import BadTextError, Place, read_json, read_yaml

_MOST_BYTES = 64 << 20


class CaseFileError(UserError):
    """A case file that cannot be used; a line for each problem."""


def read_suite(path: Path, modules: tuple[str, ...] = ()) -> Suite:
    """The cases of a file, YAML or JSON: a list, a map with ``cases``, or one case. ``modules``: the user's own
    metrics, which may be graders. Raises :class:`CaseFileError`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CaseFileError(f"{path}: is larger than {_MOST_BYTES >> 20} MiB; take cases apart into several files")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CaseFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CaseFileError(f"{path}: is not UTF-8 text ({error.reason})") from error
    known = [metric.name for metric in registry(modules).values() if metric.level == "trial"]
    return _suite(text, path, known)


def _suite(text: str, path: Path, known: Collection[str]) -> Suite:
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
        raise CaseFileError(f"{path}: holds no cases; write a list of them, or a map with the key cases")
    try:
        suite, faults = complete(Suite.model_validate(given), known)
    except ValidationError as error:
        raise CaseFileError("\n".join(_told(error, path, lines, inside))) from error
    if faults:
        raise CaseFileError("\n".join(_placed(path, place, text, lines, inside) for place, text in faults))
    return suite


def _told(error: ValidationError, path: Path, lines: dict[Place, int], inside: Place) -> Iterator[str]:
    found = error.errors(include_url=False)
    for each in found:
        # A list of which nothing is left, since all that was in it is told already, is no fault of its own.
        if each["type"] != "too_short" or len(found) == 1:
            yield _placed(path, each["loc"], _sentence(each), lines, inside)


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


def _sentence(problem: Any) -> str:
    """What is wrong and what to write instead."""
    match problem["type"]:
        case "extra_forbidden":
            return f"is no field of a case{_meant(problem['loc'][-1])}"
        case "missing":
            return "is missing"
        case "too_short":
            return "is empty; write a list of cases, such as - id: refund-3"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"is no map, such as {{id: refund-3}}, but {problem['input']!r:.60}"
        case "value_error":
            return str(problem["ctx"]["error"])
        case "string_type" if problem["loc"][-1] == "[key]":
            return f"the key {problem['input']!r} is no text; put it into quotes"
        case _:
            text = str(problem["msg"])
            return text[:1].lower() + text[1:]


def _meant(name: str | int) -> str:
    from difflib import get_close_matches

    found = get_close_matches(str(name), [*Case.model_fields, *Suite.model_fields], 1)
    return f"; did you mean {found[0]}?" if found else "; `pandaeval cases schema` lists them"
