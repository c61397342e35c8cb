"""YAML files of judged metrics: a definition, a list, or a list under ``metrics``."""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.base.untrusted.user_files import TooLongError, read_given
from pandaeval_collector.base.untrusted.yaml_text import BadTextError, parse
from pandaeval_collector.scoring.custom.definition import Definition, LabelDefinition, Scale
from pandaeval_collector.scoring.custom.functions import build
from pandaeval_collector.scoring.metric import Metric

SUFFIXES = (".yaml", ".yml")
_MAX_BYTES = 1 << 20
_TOLD = 20
"""Maximum listed errors of a file."""
_CURES = {
    "criteria": "write the criteria of the judge",
    "labels": "give two or more, such as {polite: 1, rude: 0}",
    "name": "write a name in small letters, as in name: tone",
    "score": "write a number 0..1, as in rude: 0 or rude: {score: 0, severity: high}",
    "scale": "write both ends, as in scale: {min: 1, max: 5}",
    "min": "write both ends, as in scale: {min: 1, max: 5}",
    "max": "write both ends, as in scale: {min: 1, max: 5}",
}


def metrics_of(path: str) -> tuple[Metric, ...]:
    """Read the metrics of a file once per process.

    Raises :class:`ModuleLoadError` that lists every error with file, key and correction.
    """
    return _read(Path(path).expanduser().resolve())


@cache
def _read(path: Path) -> tuple[Metric, ...]:
    metrics: list[Metric] = []
    wrong: list[str] = []
    for index, entry in enumerate(_entries(path)):
        name = entry.get("name") if isinstance(entry, dict) else None
        where = f"{path}: metrics[{index}]" + (f" ({name:.100})" if isinstance(name, str) else "")
        try:
            metrics.append(build(Definition.model_validate(entry)))
        except ValidationError as error:
            wrong += [f"{where}: {_keyed(each)}" for each in error.errors(include_url=False)]
        except ValueError as error:  # the metric is invalid, for example its name or level
            wrong.append(f"{where}: {error}")
    if wrong:
        more = [f"and {len(wrong) - _TOLD} more"] if len(wrong) > _TOLD else []
        raise ModuleLoadError(one_printable_line("; ".join([*wrong[:_TOLD], *more])))
    return tuple(metrics)


def _entries(path: Path) -> list[Any]:
    held = _loaded(path)
    entries = held.get("metrics", [held]) if isinstance(held, dict) else held
    if isinstance(held, dict) and "metrics" in held and len(held) > 1:
        beside = next(key for key in held if key != "metrics")
        raise ModuleLoadError(f"{path}: {beside}: must be inside metrics; indent it")
    if not isinstance(entries, list) or not entries:
        raise ModuleLoadError(f"{path}: the file has no metric; write a list: - name: tone …")
    return entries


def _keyed(error: ErrorDetails) -> str:
    key = ".".join(str(part) for part in error["loc"])
    return f"{key}: {_sentence(error)}" if key else _sentence(error)


def _loaded(path: Path) -> Any:
    try:
        if path.exists() and not path.is_file():  # reading a pipe without a writer would block the start
            raise ModuleLoadError(f"{path} is no file of its own; a path counts from the working directory")
        return parse(read_given(path, _MAX_BYTES).decode("utf-8-sig")).value
    except TooLongError as error:
        raise ModuleLoadError(f"{path}: it has more than {_MAX_BYTES >> 20} MiB; is it the right file?") from error
    except FileNotFoundError as error:
        raise ModuleLoadError(f"there is no file {path}; a path counts from the working directory") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ModuleLoadError(f"{path} cannot be read: {error}") from error
    except BadTextError as error:
        line = f"line {error.spot.line}: " if error.spot else ""
        raise ModuleLoadError(one_printable_line(f"{path}: {line}{error}")) from error


def _sentence(error: ErrorDetails) -> str:
    key = str(error["loc"][-1]) if error["loc"] else ""
    match error["type"]:
        case "extra_forbidden":
            inside = str(error["loc"][0]) if len(error["loc"]) > 1 else ""
            models: dict[str, type[BaseModel]] = {"labels": LabelDefinition, "scale": Scale}
            known = [*models.get(inside, Definition).model_fields]
            meant = difflib.get_close_matches(key, known, n=1)
            return f"unknown key; did you mean {meant[0]}?" if meant else f"unknown key; known are {', '.join(known)}"
        case "missing":
            return f"is missing; {_CURES.get(key, 'add it')}"
        case "value_error":
            return str(error["ctx"]["error"])
        case "model_type" | "dict_type" | "model_attributes_type":
            return _CURES.get(key, "is not a map, such as {name: tone, criteria: …}")
    cure = f"; {_CURES[key]}" if key in _CURES else ""
    return f"{error['input']!r:.60}: {error['msg'][0].lower()}{error['msg'][1:]}{cure}"
