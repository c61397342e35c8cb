"""Loads a valid :class:`Config` from file, environment and options, or finds every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pandaeval_collector.base.untrusted.yaml_text import dotted
from pandaeval_collector.config._conflicts import conflicts
from pandaeval_collector.config._messages import to_problem
from pandaeval_collector.config._problem import ConfigError, KeyPath, Problem, WrittenAt
from pandaeval_collector.config._sources import Draft, read_environ, read_file, read_overrides, without
from pandaeval_collector.config._tree import Config

Check = Callable[[Config], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A valid configuration, and the origin of each value that is not a default."""

    config: Config
    origins: Mapping[KeyPath, WrittenAt]

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        places = {dotted(path): place for path, place in self.origins.items()}
        located = []
        for problem in problems:
            key = next((key for key in problem.keys if key in places), problem.key)
            located.append(replace(problem, key=key, place=problem.place or places.get(key)))
        return located


def load(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Config:
    """Return the configuration: defaults, YAML file, environment, then ``overrides`` (dotted keys).

    ``checks`` find further problems. Raises :class:`ConfigError` with all problems.
    """
    return resolve(path, environ, overrides, checks).config


def resolve(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Resolved:
    """Return the configuration as :func:`load`, with origins."""
    draft = Draft()
    problems: list[Problem] = []
    if path is not None:
        problems += read_file(path, draft)
    problems += read_environ(environ, draft)
    read_overrides(overrides or {}, draft)
    draft.drop_empty()
    config, invalid = _validate(draft)
    problems += invalid.values()
    resolved = Resolved(config, draft.origins())
    defaulted = [f"{dotted(path).replace('[', '.')}." for path in invalid]
    for check in (conflicts, *checks):
        found = [problem for problem in check(config) if not _rests_on(problem, defaulted)]
        problems += resolved.located(found)
    if problems:
        raise ConfigError(problems)
    return resolved


def _rests_on(problem: Problem, defaulted: Iterable[str]) -> bool:
    for key in problem.keys:
        key = f"{key.replace('[', '.')}."
        if any(key.startswith(other) or other.startswith(key) for other in defaulted):
            return True
    return False


def _validate(draft: Draft) -> tuple[Config, dict[KeyPath, Problem]]:
    invalid: dict[KeyPath, Problem] = {}
    bad: set[KeyPath] = set()
    while True:
        try:
            return Config.model_validate(without(draft.values, bad)), invalid
        except ValidationError as error:
            for details in error.errors(include_url=False):
                path, problem = to_problem(details, draft)
                invalid.setdefault(path, problem)
                # A section that lacks a key has to go as a whole.
                bad.add(path[:-1] if details["type"] == "missing" else path)
