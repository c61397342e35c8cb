"""Two files that judges go by: where a cheap one decides, and the file of guidelines (YAML), which people write and
``pandaeval judge align`` goes on writing::

- metric: trace.task_completion
  agent: helpdesk                    # left out: all agents
  text: A refund is done only when the tool's result says "refunded".
  state: candidate                   # candidate, adopted, rejected or withdrawn

A judge heeds what is ``adopted``, whoever wrote that word. ``source`` and ``figures`` tell who proposed a guideline and
how it did.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.config import ConfigError, read_yaml
from pandaeval_collector.judge.rubric import MOST_CHARS, Guideline
from pandaeval_collector.judge.selection import CascadeStep

# The file that says where a cheap judge decides (JSON), which ``pandaeval judge cascade --write`` makes.
_log = logging.getLogger(__name__)
FORMAT = 1


class KeptRule(BaseModel):
    """A cascade's rule for one version of a metric. ``strong``: the model it was found by, ``""`` for people."""

    model_config = ConfigDict(frozen=True)

    metric: str
    version: str
    cheap: str
    strong: str
    low: float = Field(ge=0.0, le=1.0)
    high: float = Field(ge=0.0, le=1.0)
    n: int = Field(ge=1)
    asked: float
    agreed: float


class _File(BaseModel):
    format: int = Field(ge=FORMAT, le=FORMAT)
    rules: tuple[KeptRule, ...]


def write_rules(rules: Sequence[KeptRule], path: Path) -> None:
    """Writes the file that :func:`read_rules` reads. Raises ``UserError`` where that is not possible."""
    held = {"format": FORMAT, "rules": [each.model_dump() for each in rules]}
    try:
        path.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def read_rules(path: Path) -> tuple[KeptRule, ...]:
    """Reads the rules of a cascade. Raises ``UserError`` for a file that :func:`write_rules` did not make."""
    try:
        return _File.model_validate_json(read_given(path)).rules
    except OSError as error:
        raise UserError(f"judge.cascade: {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        said = one_printable_line(
            f"judge.cascade: {path}: {'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
        )
        raise UserError(f"{said}; make it with `pandaeval judge cascade --write`") from error


def steps(rules: Iterable[KeptRule], judges: Mapping[str, tuple[str, str]]) -> dict[str, CascadeStep]:
    """Returns the cheap judge to ask first, by metric. ``judges``: the present judge's model and version by metric.
    Warns of rules found for another judge or version, whose promise does not hold, and leaves them out."""
    found = {}
    for rule in rules:
        now = judges.get(rule.metric)
        if now is None:
            continue
        if rule.strong not in ("", now[0]) or rule.version != now[1]:
            _warn(
                f"{rule.metric} was calibrated with {rule.strong or 'people'} (version {rule.version}), and {now[0]} "
                f"(version {now[1]}) judges: the strong judge is asked always; calibrate anew"
            )
        else:
            found[rule.metric] = CascadeStep(rule.cheap, rule.low, rule.high)
    return found


@cache  # settings are made more than once at a start
def _warn(what: str) -> None:
    _log.warning("judge.cascade: %s", what)


State = Literal["candidate", "adopted", "rejected", "withdrawn"]


class WrittenGuideline(BaseModel):
    """A guideline as it stands in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    metric: Annotated[str, Field(pattern=r"^(trace|turn|session)\.[\w.]+$")]
    agent: str = ""
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]
    state: State = "candidate"
    source: str = "people"
    why: str = ""
    figures: Mapping[str, float] = {}

    @property
    def guideline(self) -> Guideline:
        """The guideline in the form that a judge uses."""
        return Guideline(self.metric, self.text, self.agent)


def read_guidelines(path: Path) -> list[WrittenGuideline]:
    """Reads the guidelines file. Raises ``UserError`` for a file that cannot be used."""
    try:
        return TypeAdapter(list[WrittenGuideline]).validate_python(read_yaml(path) or [])
    except ConfigError as error:
        raise UserError("\n".join(f"judge.guidelines: {problem}" for problem in error.problems)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        said = one_printable_line(f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}")
        raise UserError(f"judge.guidelines: {path}: {said}") from error


def write_guidelines(entries: Sequence[WrittenGuideline], path: Path) -> None:
    """Writes the guidelines file atomically, in place of an older one."""
    held: list[dict[str, Any]] = [each.model_dump(mode="json", exclude_defaults=True) for each in entries]
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(yaml.safe_dump(held, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    os.replace(beside, path)


def adopted(entries: Sequence[WrittenGuideline]) -> tuple[Guideline, ...]:
    """Returns the guidelines that a judge uses: those with state ``adopted``."""
    return tuple(each.guideline for each in entries if each.state == "adopted")


def withdraw_last(entries: Sequence[WrittenGuideline]) -> tuple[list[WrittenGuideline], WrittenGuideline | None]:
    """Returns the entries with the last adopted one marked ``withdrawn``, and that entry, if any."""
    found = list(entries)
    for at in range(len(found) - 1, -1, -1):
        if found[at].state == "adopted":
            found[at] = found[at].model_copy(update={"state": "withdrawn"})
            return found, found[at]
    return found, None
