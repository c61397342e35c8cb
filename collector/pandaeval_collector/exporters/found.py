"""Finds exporters in this folder and in packages (entry points ``pandaeval.exporters``).

A module defines ``exporters``, from settings to exporters, and optionally ``SETTINGS``, its config model. Its section
is named after it.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.section import Section
from pandaeval_collector.exporters import Exporter, Repeating, Surroundings
from pandaeval_otel.base.component_errors import ERRORS, EXPORTER
from pandaeval_otel.base.plugins import NotUsableError, Plugin, find_by_module, installed, told

_log = logging.getLogger(__name__)

_PACKAGE, _GROUP = "pandaeval_collector.exporters", "pandaeval.exporters"
_PLUGINS = {"kafka": "pandaeval_collector.kafka.exporters"}
"""Our modules of exporters outside the folder, by the names of their sections."""
_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")
_TAKEN = frozenset({"scrape_results"})
"""Names used by the surrounding section."""
_SOURCES = ("logs", "results", "traces")

Make = Callable[[Any, Surroundings], Iterable[Exporter | Repeating]]


@dataclass(frozen=True, slots=True)
class Way:
    """A kind of exporter.

    ``name``: its section. ``settings``: its model, if any. ``origin``: its package, ``""`` for ours.
    """

    name: str
    settings: type[Section] | None
    make: Make | None = None
    origin: str = ""

    def exporters(self, settings: Any, around: Surroundings) -> Iterator[Exporter | Repeating]:
        """Create the section's exporters. Raises :class:`UserError`; other third-party exceptions are logged."""
        if self.make is None:
            return
        if not self.origin:
            yield from self.make(settings, around)
            return
        try:
            made = list(self.make(settings, around))
            each: Any
            for each in made:  # cannot run, or would use another exporter's rows in the store
                if not isinstance(each, Exporter | Repeating):
                    kind = type(each).__name__
                    raise NotUsableError(f"it gave a value of type {kind}: neither an Exporter nor a Repeating")
                if each.name != self.name and not each.name.startswith(f"{self.name}."):
                    cure = f"call it {self.name} or {self.name}.something"
                    raise NotUsableError(f"its exporter is called {each.name}; {cure}")
                if isinstance(each, Exporter) and each.source not in _SOURCES:
                    raise NotUsableError(f"its source is {each.source}, and none of {', '.join(_SOURCES)}")
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - an error of foreign code affects only that code
            _log.error("exporters.%s is left out: %s does not open: %s", self.name, self.origin, told(error))
            ERRORS.note(EXPORTER, self.name, error)
        else:
            yield from made


@cache
def ways() -> tuple[Way, ...]:
    """Find all kinds: ours by name, then packages'. Broken packages keep their section valid."""
    settings, makes = find_by_module(_PACKAGE, "SETTINGS"), find_by_module(_PACKAGE, "exporters")
    for name, path in _PLUGINS.items():
        module = importlib.import_module(path)
        settings[name], makes[name] = module.SETTINGS, module.exporters
    ours = [Way(name, settings.get(name, Section), makes.get(name)) for name in sorted({*settings, *makes})]
    return (*ours, *_installed({way.name for way in ours}))


def _installed(taken: set[str]) -> Iterator[Way]:
    def check(plugin: Plugin) -> None:
        _check_name(plugin.name, taken)
        taken.add(plugin.name)
        if not callable(plugin.value):
            raise NotUsableError("its exporters is no function")
        _check_settings(_settings(plugin))

    ours = frozenset(taken)
    found = installed(_GROUP, "exporters", check)
    yield from (Way(plugin.name, _settings(plugin), plugin.value, plugin.origin) for plugin in found.found)
    working = {plugin.name for plugin in found.found}
    for name in sorted({*found.lost} - working - ours):
        if _NAME.fullmatch(name) and not _is_taken(name, ours):
            yield Way(name, None)


def _settings(plugin: Plugin) -> Any:
    return getattr(plugin.module, "SETTINGS", Section)


def _check_name(name: str, taken: set[str]) -> None:
    if not _NAME.fullmatch(name):
        raise NotUsableError("the name of the entry point has to be small letters, digits and single underscores")
    if _is_taken(name, taken):
        raise NotUsableError(f"exporters.{name} exists already")


def _check_settings(settings: Any) -> None:
    if not (isinstance(settings, type) and issubclass(settings, Section)):
        raise NotUsableError("its SETTINGS is not derived from pandaeval_collector.base.section.Section")
    settings()  # every key has a default, or the section could not be left out


def _is_taken(name: str, taken: Iterable[str]) -> bool:
    return name in taken or name in _TAKEN or hasattr(Section, name)
