"""Runs our commands on a real terminal in this process."""

from __future__ import annotations

import os
import pty
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer
from typer.models import ArgumentInfo

from pandaeval_collector import cli
from pandaeval_collector.cli import _app
from pandaeval_collector.cli._terminal import harmless_arguments


@dataclass(slots=True)
class Terminal:
    """``shown``: all received bytes."""

    shown: bytearray = field(default_factory=bytearray)


@contextmanager
def _terminal(patch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Replace standard output and error with a terminal of 400 columns."""
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST  # output passes unchanged
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    patch.setenv("TERM", "xterm-256color")
    patch.setenv("COLUMNS", "400")
    terminal = Terminal()

    def read() -> None:
        try:
            while data := os.read(ours, 65536):
                terminal.shown += data
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, "w", encoding="utf-8", closefd=False) as out, open(theirs, "w", closefd=False) as error:
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", error)
        try:
            yield terminal
        finally:
            out.flush()
            error.flush()
            patch.undo()
    os.close(theirs)
    reader.join()
    os.close(ours)


@cache
def _built(harmless: bool) -> typer.Typer:
    return _app._build()


def run_on_terminal(*arguments: str) -> bytes:
    patch = pytest.MonkeyPatch()
    with _terminal(patch) as terminal:
        patch.setattr(sys, "argv", ["pandaeval", *arguments])
        patch.setattr(_app, "app", _built(harmless_arguments()))
        with pytest.raises(SystemExit):
            cli.main()
    return bytes(terminal.shown)


@dataclass(frozen=True, slots=True)
class Takes:
    """A command's parameters. ``words``: number of arguments; ``options``: types by name, without flags."""

    words: int
    options: dict[str, Any]


def commands(group: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Takes]]:
    for each in group.registered_commands:
        assert each.callback is not None
        name = each.name or each.callback.__name__.replace("_", "-")
        yield (*path, name), _takes(each.callback)
    for below in group.registered_groups:
        assert below.typer_instance is not None
        yield from commands(below.typer_instance, (*path, str(below.name)))


def _takes(callback: Callable[..., Any]) -> Takes:
    words, options = 0, {}
    for name, hint in get_type_hints(callback, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        kind, *about = get_args(hint)
        if isinstance(about[0], ArgumentInfo):
            words += 1
        elif kind is not bool:
            spelled = next((each for each in about[0].param_decls or () if each.startswith("--")), None)
            bare = [each for each in get_args(kind) if each is not type(None) and get_origin(kind) is not Literal]
            options[spelled or "--" + name.replace("_", "-")] = bare[0] if bare else kind
    return Takes(words, options)
