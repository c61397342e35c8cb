"""``pandaeval init``: example programs by framework, or a suite of cases with an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import argument, output_option
from pandaeval_collector.config import closest

_PROGRAMS = Path(__file__).parent / "_programs"
_CASES = "cases"


def init(
    framework: Annotated[str | None, argument("Framework, or cases. If missing, list all frameworks.")] = None,
    output: Annotated[Path | None, output_option("Write to this new file, or for cases to this new folder.")] = None,
) -> None:
    """Print an example agent for a framework, ready to run.

    With the argument `cases`, write a suite of three cases with mocked tools, and an agent, into pandaeval-cases.
    """
    known = programs()
    if framework is None:
        for name in (*known, _CASES):
            typer.echo(f"pandaeval init {name}")
        return
    found = known.get(framework)
    if found is None and framework != _CASES:
        meant = closest(framework, [*known, _CASES])
        cure = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
        raise UserError(f"{framework}: no example program; {cure}")
    if found is not None and output is None:
        return typer.echo(found.read_text(encoding="utf-8"), nl=False)
    target = output or Path("pandaeval-cases")
    try:
        if found is not None:
            with target.open("x", encoding="utf-8") as file:
                file.write(found.read_text(encoding="utf-8"))
            return typer.echo(f"{target}: its first lines list the packages and the command to run it")
        target.mkdir(parents=True)
        for path in (_PROGRAMS / _CASES).iterdir():
            (target / path.name.removesuffix(".txt")).write_bytes(path.read_bytes())
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror}); name a new file or folder") from error
    typer.echo(f"pandaeval cases run {target / 'suite.yaml'} --agent {target / 'agent.py'}:answer")


def programs() -> dict[str, Path]:
    return {path.name.partition(".")[0]: path for path in sorted(_PROGRAMS.glob("*.txt"))}
