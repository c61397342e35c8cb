"""Reads human verdicts from CSV or JSON lines, and writes them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.base.untrusted.user_files import read_text
from pandaeval_collector.config import MetricNames
from pandaeval_collector.labels.queue import about
from pandaeval_collector.show.view.texts import csv_cell
from pandaeval_collector.store.people import MOST_LABELS
from pandaeval_otel.base.names import bounded
from pandaeval_otel.wire.labels import MOST_COMMENT, HumanLabel, LabelError, verdict

COLUMNS = ("trace_id", "session_id", "metric", "label", "score", "annotator", "time", "comment", "probability")
_NEEDED = (("metric",), ("trace_id", "session_id"), ("label", "score"))
_MOST_TOLD = 20
_FORMULA = re.compile(r"'(?=[=+\-@\t\r])")
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LabelTable:
    """A file's labels. ``empty``: rows without a verdict. ``ignored``: unknown columns."""

    labels: list[HumanLabel]
    empty: int
    ignored: tuple[str, ...]


def read_labels(path: Path, names: MetricNames) -> LabelTable:
    """Read labels. Raises ``UserError`` with up to 20 mistakes; use no label then."""
    labels: list[HumanLabel] = []
    problems: list[str] = []
    seen: dict[str, None] = {}
    empty = 0
    for line, row in _rows(path):
        try:
            if isinstance(row, str):
                raise LabelError(row)
            seen.update(dict.fromkeys(row))
            if not _told(row, "label") and not _told(row, "score"):
                empty += 1
                continue
            labels.append(_label(row, names))
        except LabelError as error:
            problems.append(one_printable_line(f"{path}, line {line}: {error}"))
        if len(labels) > MOST_LABELS:
            raise UserError(f"{path} has more than {MOST_LABELS:,} labels, the maximum of a store; remove labels")
    if problems:
        more = [f"… and {len(problems) - _MOST_TOLD} more"] if len(problems) > _MOST_TOLD else []
        raise UserError("\n".join([*problems[:_MOST_TOLD], *more, "No label of this file was imported."]))
    if not labels and not empty:
        raise UserError(f"{path}: the file contains no labels")
    return LabelTable(labels, empty, tuple(one_printable_line(key) for key in seen if key not in COLUMNS))


def _rows(path: Path) -> Iterator[tuple[int, Row | str]]:
    text = read_text(path, "name a file of labels, such as `pandaeval labels next -o FILE` writes")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    yield from _json_rows(text) if text.lstrip().startswith("{") else _csv_rows(text, path)


def _json_rows(text: str) -> Iterator[tuple[int, Row | str]]:
    for line, each in enumerate(text.split("\n"), 1):
        if each.strip():
            try:
                row = json.loads(each)
            except (ValueError, RecursionError):
                row = None
            yield line, _named(row.items()) if isinstance(row, dict) else "not a JSON object; write one in each line"


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    head = text.partition("\n")[0]
    mark = max(",;\t", key=head.count)
    rows = csv.reader(io.StringIO(text), delimiter=mark)
    try:
        named = [*map(_column, next(rows, []))]
        missing = [" or ".join(names) for names in _NEEDED if not {*names} & {*named}]
        if missing:
            known = ", ".join(COLUMNS)
            raise UserError(
                f"{path}, line 1: no column {', '.join(missing)}. The first line must name columns: {known}"
            )
        for row in rows:
            if any(row):
                yield rows.line_num, _named(zip(named, map(_plain, row), strict=False))
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num}: not valid CSV ({error}); save the file as CSV again") from error


def _column(name: str) -> str:
    return name.strip().lower()


def _named(pairs: Any) -> Row:
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = _column(str(key))
        if name not in found or found[name] in (None, ""):
            found[name] = value
    return found


def _plain(cell: str) -> str:
    if cell.startswith("'"):
        return _FORMULA.sub("", cell.strip(), count=1)
    return cell.strip()


def _label(row: Row, names: MetricNames) -> HumanLabel:
    score, passed = verdict(row.get("score"), _told(row, "label"))
    unit, metric = about(_told(row, "trace_id").lower(), _told(row, "session_id"), _told(row, "metric"), names)
    return HumanLabel(
        unit=unit,
        metric=metric,
        score=score,
        passed=passed,
        annotator=bounded(_told(row, "annotator")),
        at=_time(row.get("time")),
        comment=_told(row, "comment")[:MOST_COMMENT],
        probability=_probability(row.get("probability")),
    )


def _time(value: Any) -> float:
    if value is None or value == "":
        return 0.0
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, int | float) or re.fullmatch(r"[\d.]+", str(value)):
            return datetime.fromtimestamp(float(value), UTC).timestamp()
        found = datetime.fromisoformat(str(value))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise LabelError(f"the time {str(value)[:40]!r} is not a time such as 2026-01-31T08:00:00Z") from None


def _probability(value: Any) -> float | None:
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0.0 <= found <= 1.0:
        raise LabelError(
            f"the probability {str(value)[:40]!r} is not a number from 0 to 1; keep the value of "
            "`pandaeval labels next`, or leave it empty"
        )
    return found


def _told(row: Row, key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value).strip()


# Writes verdicts and label lists in the format that is read above.


def row_of(label: HumanLabel) -> dict[str, Any]:
    level = label.metric.partition(".")[0]
    return {
        "trace_id": label.unit if level in ("trace", "turn") else None,
        "session_id": label.unit if level == "session" else None,
        "metric": label.metric,
        "label": {None: None, True: "pass", False: "fail"}[label.passed],
        "score": label.score,
        "annotator": label.annotator or None,
        "time": datetime.fromtimestamp(label.at, UTC).isoformat() if label.at else None,
        "comment": label.comment or None,
        "probability": label.probability,
    }


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Write labels as CSV. Formula-like cells get a leading ``'``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([csv_cell(row.get(column)) for column in COLUMNS] for row in rows)
    return text.getvalue()


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    filled_rows = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in filled_rows)


def written(rows: Iterable[Mapping[str, Any]], path: Path | None) -> str:
    """Write JSON lines for ``.jsonl`` or ``.ndjson``, else CSV."""
    if path is not None and path.suffix.lower() in (".jsonl", ".ndjson"):
        return as_json(rows)
    return as_csv(rows)
