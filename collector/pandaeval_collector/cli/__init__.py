"""The ``pandaeval`` command; each public module holds a command or a group.

Command modules are imported on demand.

Imports analysis, app, base, config, judge, receivers, scoring, show, store.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.runtime.logs import set_up_command
from pandaeval_collector.cli._extras import hint

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line and exit. A user error prints a sentence, and the exit code is 2."""
    for number in {getattr(signal, "SIGHUP", signal.SIGTERM), signal.SIGTERM}:  # Windows has no SIGHUP
        if signal.getsignal(number) is signal.SIG_DFL:  # else nohup ignores it
            signal.signal(number, _end_as_interrupted)
    expect_imports()
    set_up_command()
    try:
        from pandaeval_collector.cli._app import app
        from pandaeval_collector.cli._terminal import guarded

        with guarded():
            app(prog_name="pandaeval")
    except ImportError as error:
        advice = hint(error)
        if advice is None:
            raise
        print(advice, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def _end_as_interrupted(number: int, _: object) -> None:
    """End as on Ctrl-C, and ignore the next signal: a closing terminal sends two."""
    signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


def __getattr__(name: str) -> Any:
    # The package must be importable without Typer, which belongs to the extra.
    if name == "app":
        from pandaeval_collector.cli._app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
