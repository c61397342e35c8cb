"""The file of rulings, edited by people and the collector."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.config import Config, ConfigError, read_yaml
from pandaeval_collector.judge.rulings import Ruling

_NAME = "rulings.yaml"
_log = logging.getLogger(__name__)


def rulings_path(config: Config) -> Path:
    """Return ``judge.rulings``, or ``rulings.yaml`` in the data directory."""
    return Path(config.judge.rulings or Path(config.store.path) / _NAME)


def read_rulings(path: Path) -> list[Ruling]:
    """Read the file, if it exists. Raises ``UserError``."""
    if not path.exists():
        return []
    try:
        return TypeAdapter(list[Ruling]).validate_python(read_yaml(path) or [])
    except ConfigError as error:
        raise UserError("\n".join(f"judge.rulings: {problem}" for problem in error.problems)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        problem = one_printable_line(f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}")
        raise UserError(f"judge.rulings: {path}: {problem}") from error


def write_rulings(rulings: Sequence[Ruling], path: Path) -> None:
    """Replace the file atomically. Raises ``UserError``."""
    held = [each.model_dump(mode="json", exclude_defaults=True) for each in rulings]
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(yaml.safe_dump(held, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
        os.replace(new, path)
    except OSError as error:
        raise UserError(f"judge.rulings: {path} cannot be written ({error.strerror}); no ruling was changed") from error


class RulingsInForce:
    """The current rulings of a file, read again after each change.

    An unusable change is ignored; an unusable first read raises ``UserError``.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._state()
        self._rulings = tuple(read_rulings(path))

    def __call__(self) -> tuple[Ruling, ...]:
        if (state := self._state()) != self._seen:
            self._seen = state
            try:
                self._rulings = tuple(read_rulings(self._path))
            except UserError as error:
                _log.error("%s; the rulings that were read before stay in force", error)
        return self._rulings

    def _state(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._path)
        except OSError:
            return ()
        return found.st_ino, found.st_mtime_ns, found.st_size
