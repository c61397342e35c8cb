"""``pandaeval config``: check, show and describe the configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from pandaeval_collector.cli._config import resolve_config, start_problems
from pandaeval_collector.cli._options import config_option, file_argument
from pandaeval_collector.cli._output import safe
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.config import check_machine, docs, effective, to_yaml

config = typer.Typer(help="Check, show and describe the configuration.", no_args_is_help=True)


@config.command("check")
def check(
    file: Annotated[Path | None, file_argument("The file; without it the environment alone is checked.")] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on what a start would refuse on this machine: variables, files, packages."),
    ] = False,
) -> None:
    """Find every problem in the configuration at once, each with its place. Exit code 2 if there is any.

    What is missing on this machine only (variables, files, packages) is a note, as the collector may run on another.
    """
    resolved = resolve_config(file, on_this_machine=strict)
    held = resolved.config
    found = [*check_machine(held, os.environ), *start_problems(held)]
    for problem in resolved.located(found):
        typer.echo(f"note: {problem}", err=True)
    typer.echo(f"{safe(str(file or 'the configuration'))} is valid")


@config.command("show")
def show(
    config: Annotated[Path | None, config_option("The configuration file.")] = None,
    output: Annotated[
        Literal["yaml", "json"], typer.Option("--format", help="yaml says where each value came from.")
    ] = "yaml",
) -> None:
    """Print the effective configuration and the source of each value, without secrets."""
    resolved = resolve_config(config)
    if output == "json":
        write_json(json.dumps(effective(resolved.config), indent=2, ensure_ascii=False))
    else:
        typer.echo(to_yaml(resolved.config, resolved.origins), nl=False)


@config.command("schema")
def schema(
    example: Annotated[bool, typer.Option("--example", help="A YAML file with every key at its default.")] = False,
) -> None:
    """Print the JSON schema of the configuration file, for editors; or an example file."""
    if example:
        typer.echo(docs.example_yaml(), nl=False)
    else:
        write_json(json.dumps(docs.json_schema(), indent=2, ensure_ascii=False))
