"""The application: what all commands share, and how errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._discovery import LazyGroup
from pandaeval_collector.cli._extras import hint
from pandaeval_collector.cli._terminal import harmless_arguments

_BROKEN_PIPE = 128 + 13  # as if the signal had ended us
_INTERRUPTED = 128 + 2
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


_UsageError: Any = typer.BadParameter.__mro__[1]
"""Click's base class of usage errors, whether Typer bundles Click or imports it."""


class Commands(LazyGroup):
    """Turns the errors that users can do something about into a message and an exit code; all others are ours and
    keep their traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the options of the whole command; leaves with 2 for an unknown one."""
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            raise _misused(error) from error

    def invoke(self, ctx: Any) -> Any:
        """Runs the command; leaves with 2 for a :class:`UserError` and for an extra that is not installed."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except _UsageError as error:
            raise _misused(error) from error
        except UserError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(error.exit_code) from error
        except ImportError as error:
            advice = hint(error)
            if advice is None:
                raise
            typer.echo(advice, err=True)
            raise typer.Exit(2) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(_INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader, such as `head`, has enough. Without this the interpreter complains when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_BROKEN_PIPE) from error
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            typer.echo(f"cannot write what was asked for: {error.strerror}; free space and try again", err=True)
            raise typer.Exit(2) from error
        return result


def _misused(error: Any) -> Exception:
    """Prints what is wrong with the command's arguments on one line, with where to read more, and returns the exit to
    raise. For a command that lacks all arguments it prints nothing and returns the error, which shows the help."""
    if "NoArgs" in type(error).__name__:
        return error  # type: ignore[no-any-return]
    command = "pandaeval" if error.ctx is None else error.ctx.command_path
    what = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    typer.echo(f"{command}: {what}{'' if what.endswith('?') else ';'} `{command} -h` says what it takes", err=True)
    return typer.Exit(2)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from pandaeval_collector.base.runtime.version import release

    typer.echo(release())
    raise typer.Exit


def _build() -> typer.Typer:
    built = typer.Typer(
        cls=Commands,
        help="Find out whether your AI agents did the job, inside the OpenTelemetry you already run.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,  # its tracebacks show local variables, secrets among them
        rich_markup_mode="rich" if sys.stdout.isatty() and harmless_arguments() else None,
    )
    built.callback()(_root)
    return built


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Typer wants a function to hang the options of the whole command on."""


app = _build()
