"""``pandaeval doctor``: looks at an installation, its store, its collector and what they need, and says what to do."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._config import StoreFolder, given, resolve_config
from pandaeval_collector.cli._doctor_checks import Diagnosis, examine
from pandaeval_collector.cli._output import console, many, progress, safe
from pandaeval_collector.cli._run_options import RunFormat
from pandaeval_collector.cli._terminal import write_json


def doctor(
    format_: Annotated[
        RunFormat, typer.Option("--format", help="table, or json: one array of all findings.")
    ] = RunFormat.table,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Check each row of a large store too, as `pandaeval store verify` does.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="Configuration file (YAML).")] = None,
    store: StoreFolder = None,
) -> None:
    """Check configuration, versions, clocks, the store, a running collector, sinks and the judge. Exit code 1 if
    something is wrong.

    Each finding says what to do about it. Nothing is changed, and no model is asked.
    """
    try:
        resolved = resolve_config(config, given(store))
    except UserError as error:
        found = [
            Diagnosis("configuration", "wrong", line, "put it right in the file or variable that it names")
            for line in str(error).splitlines()
        ]
    else:
        with progress(console(stderr=True), "checking the store") as told:
            found = list(examine(resolved, os.environ, deep, told))
    if as_json or format_ is RunFormat.json:
        write_json(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    else:
        _show(found)
    if any(each.state == "wrong" for each in found):
        raise typer.Exit(1)


def _show(found: list[Diagnosis]) -> None:
    for each in found:
        typer.echo(f"{each.state:<5}  {each.area}: {safe(each.what)}")
        if each.cure:
            typer.echo(f"       {safe(each.cure)}")
    wrong = sum(each.state == "wrong" for each in found)
    typer.echo(many(wrong, "thing") + (" is wrong" if wrong == 1 else " are wrong") if wrong else "nothing is wrong")
