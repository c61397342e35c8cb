"""``pandaeval api``: what the collector's HTTP API offers, for programs and people."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pandaeval_collector.cli._terminal import write_json
from pandaeval_lab.cli import _api_page as docs


def api(page: Annotated[bool, typer.Option("--page", help="The reference page in Markdown.")] = False) -> None:
    """Print the OpenAPI document of the collector's HTTP API, or its reference page."""
    if page:
        typer.echo(docs.reference_page(), nl=False)
    else:
        write_json(json.dumps(docs.document(), indent=2, ensure_ascii=False))
