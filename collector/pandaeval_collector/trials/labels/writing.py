"""Writes people's verdicts, and lists to be filled in, as :mod:`reading` reads them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.trials.labels.files import COLUMNS
from pandaeval_otel.wire.labels import HumanLabel

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def row_of(label: HumanLabel) -> dict[str, Any]:
    """Returns the columns of a label; what it does not say is ``None``."""
    level = label.metric.partition(".")[0]
    return {
        "trace_id": label.unit if level in ("trace", "turn") else None,
        "session_id": label.unit if level == "session" else None,
        "metric": label.metric,
        "label": None if label.passed is None else "pass" if label.passed else "fail",
        "score": label.score,
        "annotator": label.annotator or None,
        "time": datetime.fromtimestamp(label.at, UTC).isoformat() if label.at else None,
        "comment": label.comment or None,
        "probability": label.probability,
    }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Writes labels as CSV. A cell that a spreadsheet would take for a formula gets a ``'`` before it: ids and comments
    come from others."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(row.get(column)) for column in COLUMNS] for row in rows)
    return text.getvalue()


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Writes labels as one object a line, without what is not said."""
    told = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in told)


def written(rows: Iterable[Mapping[str, Any]], path: Path | None) -> str:
    """Writes labels in the form that the name of the file asks for; CSV where it asks for none."""
    return as_json(rows) if path is not None and path.suffix.lower() in (".jsonl", ".ndjson") else as_csv(rows)


def save(path: Path, text: str) -> None:
    """Writes a file. Raises ``UserError`` where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
