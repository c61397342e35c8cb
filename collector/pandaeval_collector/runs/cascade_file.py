"""The file that says where a cheap judge decides (JSON), which ``pandaeval judge cascade --write`` makes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.judge.selection import CascadeStep

_log = logging.getLogger(__name__)
FORMAT = 1


class KeptRule(BaseModel):
    """Of one metric in one version. ``strong``: whose verdicts it was found by, ``""`` for people's."""

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
    """As :func:`read_rules` reads it. Raises ``UserError`` where it cannot be written."""
    held = {"format": FORMAT, "rules": [each.model_dump() for each in rules]}
    try:
        path.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def read_rules(path: Path) -> tuple[KeptRule, ...]:
    """Raises ``UserError`` for a file that :func:`write_rules` did not make."""
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
    """Where a cheap judge is asked first, by metric. ``judges``: model and version by metric, of what is judged now.
    Warns of rules that were found for another judge or version: their promise does not hold."""
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
