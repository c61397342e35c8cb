"""What ``pandaeval evaluate`` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pandaeval_collector.cli._github import AnnotationTarget
from pandaeval_collector.cli._where import Where


class ResultFormat(StrEnum):
    """How results are written."""

    table = "table"
    json = "json"
    junit = "junit"
    html = "html"


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    """The options of the command, each explained where the command declares it. ``metrics``: names, ``None`` for the
    configured ones; ``where``: ``None`` for all traces; ``output``: ``None`` for standard output."""

    files: Sequence[str]
    config: Path | None = None
    metrics: Sequence[str] | None = None
    model: str | None = None
    cases: Path | None = None
    cases_report: Path | None = None
    where: Where | None = None
    baseline: Path | None = None
    format: ResultFormat = ResultFormat.table
    output: Path | None = None
    annotations: AnnotationTarget = AnnotationTarget.auto
