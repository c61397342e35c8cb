"""The person at the terminal: name and consent."""

from __future__ import annotations

import getpass

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import message


def user_name() -> str:
    """Return the user's login name, or ``""`` if the user ID has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # which of them depends on the Python version
        return ""


def confirm(question: str, refused: str) -> None:
    """Ask, and end the command with 0 after a no. Raises ``UserError`` without an answer."""
    try:
        if typer.confirm(question):
            return
    except typer.Abort as error:
        raise UserError(f"{refused}: confirm, or add --yes") from error
    message(refused)
    raise typer.Exit
