"""Where values come from: a YAML file, the environment, the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.config._draft import Draft, without
from pandaeval_collector.config._keys import PREFIX, below, keys, variable
from pandaeval_collector.config._problem import KeyPath, Place, Problem, dotted
from pandaeval_collector.config._yaml import YamlReader


def read_file(path: Path, draft: Draft) -> list[Problem]:
    """Put the values of a YAML file into ``draft``."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        return [Problem("", _unreadable(error), Place(str(path)))]
    except UnicodeDecodeError:
        return [Problem("", "is not a text file in UTF-8", Place(str(path)))]
    reader = YamlReader(text, lambda line, column: Place(str(path), line + 1, column + 1), draft.mark)
    values = reader.read()
    if isinstance(values, dict):
        draft.values = without(values, reader.unread)
    elif values is not None:
        message = "must hold sections, such as `close:` with keys below it, not a list or a single value"
        reader.problems.append(Problem("", message, Place(str(path))))
    return reader.problems


def read_environ(environ: Mapping[str, str], draft: Draft) -> list[Problem]:
    """Put ``PANDAEVAL_SECTION__KEY`` variables into ``draft``. An empty variable counts as not set.

    Names without a double underscore belong to others, unless they are a key with the underscore forgotten.
    """
    problems: list[Problem] = []
    sections = {key.path for key in below(())}
    forgotten = {variable(path).replace("__", "_"): path for path in keys() if len(path) > 1}
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or not text.strip():
            continue
        path = tuple(part.lower() for part in name.removeprefix(PREFIX).split("__"))
        if len(path) > 1 or path in sections:
            problems += _assign_text(_map_entry(path), text, _place(name, _map_entry(path)), draft)
        elif name in forgotten:
            message = f"is not read; write {variable(forgotten[name])}, with two underscores below a section"
            problems.append(Problem("", message, _place(name, ())))
    if (data := environ.get("PANDAEVAL_DATA", "").strip()) and not draft.holds(("store", "path")):
        draft.assign(("store", "path"), data, _place("PANDAEVAL_DATA", ("store", "path")))
    return problems


def read_overrides(overrides: Mapping[str, Any], draft: Draft) -> None:
    """Put dotted keys with ready values (``{"judge.model": "openai/gpt-4o"}``) into ``draft``; ``None``: not given."""
    for name, value in overrides.items():
        if value is not None:
            draft.assign(_map_entry(tuple(name.split("."))), value, Place("command line"))


def _assign_text(path: tuple[str, ...], text: str, place: Place, draft: Draft) -> list[Problem]:
    key = keys().get(path)
    if key and key.is_text and text.strip() not in ("null", "~") and text.strip()[0] not in "\"'":
        draft.assign(path, text.strip(), place)
        return []
    marks: list[tuple[KeyPath, Place]] = []
    reader = YamlReader(text, lambda *_: place, lambda at, value, _: marks.append((at, value)), path)
    value = reader.read()
    if not reader.problems:
        draft.assign(path, value, place)
        for at, value_place in marks:
            draft.mark(at, value_place)
    return reader.problems


def _map_entry(path: tuple[str, ...]) -> tuple[str, ...]:
    """Names in a map may hold dots: ``(…, "thresholds", "trace", "coherence")`` is its entry ``trace.coherence``."""
    for length in range(1, len(path)):
        key = keys().get(path[:length])
        if key and key.is_map:
            return (*path[:length], ".".join(path[length:]))
    return path


def _place(name: str, path: tuple[str, ...]) -> Place:
    return Place(f"environment {name}", key=dotted(path))


def _unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return f"cannot be read: {error.strerror or error}"
