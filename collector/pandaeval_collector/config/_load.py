"""From files and environment to a valid :class:`Config`, or to every reason why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pandaeval_collector.config._messages import to_problem
from pandaeval_collector.config._problem import ConfigError, KeyPath, Problem, WrittenAt, dotted
from pandaeval_collector.config._rules import conflicts
from pandaeval_collector.config._sources import Draft, read_environ, read_file, read_overrides, without
from pandaeval_collector.config._tree import Config

Check = Callable[[Config], Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A valid configuration, and where each value that was set came from (defaults are absent)."""

    config: Config
    origins: Mapping[KeyPath, WrittenAt]

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """Adds places in files to problems, where somebody has set their keys."""
        places = {dotted(path): place for path, place in self.origins.items()}
        return [replace(problem, place=problem.place or places.get(problem.key)) for problem in problems]


def load(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Config:
    """Returns the configuration: defaults, then the YAML file, then the environment, then ``overrides`` (dotted keys of
    the command line; ``None`` values are passed over).

    ``checks`` find problems that only others can know, such as names of metrics. Reads no file but ``path`` and no
    environment but ``environ``. Raises :class:`ConfigError` with all problems.
    """
    return resolve(path, environ, overrides, checks).config


def resolve(
    path: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    checks: Iterable[Check] = (),
) -> Resolved:
    """Returns the configuration as ``load`` does, with the origin of each value."""
    draft = Draft()
    problems = read_file(path, draft) if path is not None else []
    problems += read_environ(environ, draft)
    read_overrides(overrides or {}, draft)
    draft.drop_empty()
    config, invalid = _validate(draft)
    problems += invalid.values()
    for names, message in conflicts(config):
        paths = [tuple(name.split(".")) for name in names]
        if not any(bad[: len(path)] == path or path[: len(bad)] == bad for path in paths for bad in invalid):
            blamed = next(filter(draft.holds, paths), paths[0])
            problems.append(Problem(dotted(blamed), message, draft.value_at(blamed)))
    resolved = Resolved(config, draft.origins())
    # A problem of a value that was invalid is one of the default in its place.
    unsure = tuple(f"{dotted(path)}{mark}" for path in invalid for mark in ".[")
    found = (problem for check in checks for problem in resolved.located(check(config)))
    problems += [problem for problem in found if not f"{problem.key}.".startswith(unsure)]
    if problems:
        raise ConfigError(problems)
    return resolved


def _validate(draft: Draft) -> tuple[Config, dict[KeyPath, Problem]]:
    """Returns the config with defaults in place of what is invalid, and what is invalid by path."""
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
