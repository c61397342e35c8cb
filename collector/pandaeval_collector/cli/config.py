"""``pandaeval config``: check, show and describe the configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from pandaeval_collector.cli import _model_keys
from pandaeval_collector.cli._config import ConfigFile, resolve_config, start_problems
from pandaeval_collector.cli._options import file_argument, option
from pandaeval_collector.cli._output import message, safe
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.config import check_machine, docs, effective, to_yaml

config = typer.Typer(help="Check, show and describe the configuration.", no_args_is_help=True)


@config.command("check")
def check(
    file: Annotated[Path | None, file_argument("Configuration file; default: check only the environment.")] = None,
    strict: Annotated[bool, option("Missing variables, files and packages are also problems.", "--strict")] = False,
) -> None:
    """Find all problems in the configuration.

    Exit code 2: the command found a problem.

    Without --strict, missing variables, files and packages are only notes, because the collector can run on another
    machine.
    """
    resolved = resolve_config(file, on_this_machine=strict)
    held = resolved.config
    found = [*check_machine(held, os.environ), *start_problems(held), *_model_keys.problems(held)]
    for problem in resolved.located(found):
        message(f"note: {problem}")
    typer.echo(f"{safe(str(file or 'the configuration'))} is valid")


@config.command("show")
def show(
    config: ConfigFile = None,
    output: Annotated[
        Literal["yaml", "json"], option("Output format. yaml shows the source of each value.", "--format")
    ] = "yaml",
) -> None:
    """Print the effective configuration, without secrets."""
    resolved = resolve_config(config)
    if output == "json":
        write_json(json.dumps(effective(resolved.config), indent=2, ensure_ascii=False))
    else:
        typer.echo(to_yaml(resolved.config, resolved.origins), nl=False)


@config.command("schema")
def schema(
    example: Annotated[bool, option("Print a YAML file that has every key with its default.", "--example")] = False,
) -> None:
    """Print the JSON schema or an example of the configuration."""
    if example:
        typer.echo(docs.example_yaml(), nl=False)
    else:
        write_json(json.dumps(docs.json_schema(), indent=2, ensure_ascii=False))
