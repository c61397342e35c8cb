"""The models that were learned from labels, read from a folder and again when it changes."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from pandaeval_collector.analysis.stats.learned import LearnedModel

_log = logging.getLogger(__name__)

LOOK_EVERY = 5.0
"""Seconds after which the folder is looked at again: a model is in use soon after it was written, without a restart."""


class LearnedModels:
    """The models of one folder by level and agent. One thread."""

    def __init__(self, folder: str | None) -> None:
        """``folder``: may not exist yet; ``None``: there are no models."""
        self._folder = None if folder is None else Path(folder)
        self._seen: tuple[tuple[str, int], ...] = ()
        self._looked = -LOOK_EVERY
        self._found: dict[tuple[str, str], LearnedModel] = {}

    def of(self, level: str, agent: str) -> LearnedModel | None:
        """What was learned of an agent at a level (``session`` or ``trace``)."""
        self._look()
        return self._found.get((level, agent))

    @property
    def there(self) -> bool:
        """Whether there is any model."""
        self._look()
        return bool(self._found)

    def _look(self) -> None:
        if self._folder is not None and time.monotonic() - self._looked >= LOOK_EVERY:
            self._looked = time.monotonic()
            self._read(self._folder)

    def _read(self, folder: Path) -> None:
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        seen = tuple((str(file), _changed(file)) for file in files)
        if seen != self._seen:
            self._seen = seen
            self._found = {(each.level, each.agent): each for file in files if (each := _model(file)) is not None}


def _changed(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def _model(file: Path) -> LearnedModel | None:
    """A file that cannot be read is named, and costs no other."""
    try:
        return LearnedModel.of_json(file.read_bytes())
    except (OSError, ValueError) as error:
        _log.error("%s is left out: %s", file, error)
        return None
