"""The thresholds that a calibration suggests, from the file that ``pandaeval calibrate --write`` made."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from pydantic import AliasPath, BaseModel, ConfigDict, Field, ValidationError

from pandaeval_collector.analysis.stats.corrected_rate import LEAST_LABELS
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.given_files import read_given
from pandaeval_collector.base.untrusted.printable import one_printable_line

_log = logging.getLogger(__name__)

FORMAT = 1


class Kept(BaseModel):
    """The part of a stored calibration that a collector uses."""

    model_config = ConfigDict(frozen=True)

    metric: str
    judge: str
    version: str
    n: int = Field(ge=0)
    suggested: float | None = Field(ge=0.0, le=1.0, validation_alias=AliasPath("suggested_threshold", "value"))


class _File(BaseModel):
    format: int = Field(ge=FORMAT, le=FORMAT)
    calibrations: tuple[Kept, ...]


def read(path: Path) -> tuple[Kept, ...]:
    """Reads a calibration. Raises ``UserError`` for a file that the command did not make."""
    try:
        return _File.model_validate_json(read_given(path)).calibrations
    except OSError as error:
        raise UserError(f"judge.calibration: {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        said = one_printable_line(f"judge.calibration: {path}: {place}: {first['msg']}")
        raise UserError(f"{said}; make it with `pandaeval calibrate --write`") from error


def thresholds(kept: Iterable[Kept], judges: Mapping[str, tuple[str, str]]) -> dict[str, float]:
    """Returns the suggested thresholds by metric key. ``judges``: the present judge's model and version by metric key.
    Warns of metrics calibrated only for another judge or version, or with fewer than 50 labels, and leaves them out."""
    by_metric: dict[str, list[Kept]] = defaultdict(list)
    for each in kept:
        by_metric[each.metric].append(each)
    found: dict[str, float] = {}
    for metric in by_metric.keys() & judges.keys():
        fitting = [each for each in by_metric[metric] if (each.judge, each.version) == judges[metric]]
        if not fitting:
            other, now = by_metric[metric][-1], judges[metric]
            _warn(
                f"{metric} was calibrated for {other.judge} (version {other.version}), and {now[0]} (version {now[1]}) "
                "judges: calibrate anew"
            )
        elif fitting[-1].n < LEAST_LABELS:
            _warn(f"{metric} was calibrated with {fitting[-1].n} labels; a threshold takes {LEAST_LABELS}")
        elif fitting[-1].suggested is not None:
            found[metric] = fitting[-1].suggested
    return found


@cache  # settings are made more than once at a start
def _warn(what: str) -> None:
    _log.warning("judge.calibration: %s", what)
