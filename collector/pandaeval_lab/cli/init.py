"""``pandaeval init``: a whole program for a framework, whose runs are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._hand import output_option
from pandaeval_collector.config import closest

_PROGRAMS = Path(__file__).parent / "_programs"


def init(
    framework: Annotated[str | None, typer.Argument(help="Name of a framework; without it they are listed.")] = None,
    output: Annotated[Path | None, output_option("Write the program to this file, which must be new.")] = None,
) -> None:
    """Print one complete program for a framework: an agent with a tool, with the variables that capture content."""
    known = programs()
    if framework is None:
        for name in known:
            typer.echo(f"pandaeval init {name}")
        return
    found = known.get(framework)
    if found is None:
        meant = closest(framework, known)
        cure = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
        raise UserError(f"{framework}: there is no program for it; {cure}")
    text = found.read_text(encoding="utf-8")
    if output is None:
        return typer.echo(text, nl=False)
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror}); name a file that is not there") from error
    typer.echo(f"{output}: its first lines say what to install and how to run it")


def programs() -> dict[str, Path]:
    """Returns the file of each example program, by the name of its framework."""
    return {path.name.partition(".")[0]: path for path in sorted(_PROGRAMS.glob("*.txt"))}
