"""``pandaeval export``: the rows of a filter as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import config_option, option, output_option
from pandaeval_collector.cli._output import binary_file, many, message
from pandaeval_collector.cli._run_place import ApiClient, with_api_or_store
from pandaeval_collector.cli._where_text import api_filters
from pandaeval_collector.show.report.export import WRITERS, Subject
from pandaeval_lab.cases.files import case_file, freeze
from pandaeval_lab.cli.cases import kept, members, redactor

_WHERE = "Filter of rows, such as failed=true,agent=NAME or time=7d..; default: all rows."
_OF = "Kind of object in each row. An incident is a group of failures with the same cause."
_Config = Annotated[Path | None, config_option("Configuration file (YAML), for redact in cases.")]


@with_api_or_store
def export(
    where: Annotated[str, option(_WHERE, metavar="KEY=VALUE,..", show_default=False)] = "",
    of: Annotated[Subject, option(_OF)] = "traces",
    format_: Annotated[
        Literal["json", "csv", "otlp", "case"],
        option("Output format: JSON lines, CSV, spans as OTLP, or a case for each run.", "--format"),
    ] = "json",
    output: Annotated[Path, output_option("Write to this file; default: standard output.")] = Path("-"),
    config: _Config = None,
    *,
    api: ApiClient,
) -> None:
    """Export traces, sessions, results or incidents.

    Traces and results are sorted by time, the newest first. OTLP and cases contain only runs whose spans are still
    stored.
    """
    if format_ in ("otlp", "case") and of not in ("traces", "sessions"):
        raise UserError(f"--format {format_} exports runs: use --of traces or --of sessions")
    asked = api_filters(where)
    with binary_file(output) as file:
        if format_ == "otlp":
            file.writelines(_spans(api, of, asked))
        elif format_ == "case":
            file.writelines(_cases(api, of, asked, config))
        else:
            file.writelines(WRITERS[format_](of, _rows(api, of, asked)))


def _rows(api: ApiClient, of: Subject, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    order = "newest" if of == "traces" else None
    return api.pages(f"/{of}", rows="incidents" if of == "incidents" else "items", order=order, limit=200, **asked)


def _runs(api: ApiClient, of: Subject, asked: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the trace IDs of each run: of a trace, or of a whole session in order."""
    for row in _rows(api, of, asked):
        if of == "traces":
            yield [row["trace_id"]]
        elif row["session_id"] is None:
            yield [row["worst"]["trace_id"]] if row["worst"] else []
        else:
            yield members(api, row["session_id"])


def _spans(api: ApiClient, of: Subject, asked: dict[str, Any]) -> Iterator[bytes]:
    done = gone = 0
    for trace_id in (id_ for run in _runs(api, of, asked) for id_ in run):
        data = api.file(f"/spans/{trace_id}")
        done, gone = done + bool(data), gone + (not data)
        yield data
    _tell(done, gone, "trace")


def _cases(api: ApiClient, of: Subject, asked: dict[str, Any], config: Path | None) -> Iterator[bytes]:
    hide, counts = redactor(config), [0, 0]

    def cases() -> Iterator[dict[str, Any]]:
        for ids in _runs(api, of, asked):
            runs = kept(api, ids)
            try:
                made = freeze(runs, f"frozen-{ids[0]}", hide=hide) if runs else None
            except ValueError:  # nothing was captured
                made = None
            counts[made is None] += 1
            if made is not None:
                yield made

    for text in case_file(cases()):
        yield text.encode()
    _tell(counts[0], counts[1], "case")


def _tell(done: int, gone: int, noun: str) -> None:
    left_out = f"; {many(gone, 'run')} left out: content or spans are not stored" if gone else ""
    message(f"{many(done, noun)}{left_out}")
