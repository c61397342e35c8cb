"""A command group that lists by default."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class ListGroup(TyperGroup):
    """Reads ``pandaeval traces --since 2h`` as ``pandaeval traces list --since 2h``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])
