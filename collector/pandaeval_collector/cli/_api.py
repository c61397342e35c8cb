"""A running collector's API, as commands speak to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from pandaeval_collector.cli._hand import in_place_of

if TYPE_CHECKING:
    from pandaeval_collector.show.api.client import Asker

_ADDRESS = "Address of the collector's HTTP listener; else port 4328 of this machine."
Url = Annotated[str, typer.Option(metavar="URL", envvar="PANDAEVAL_URL", show_default=False, help=_ADDRESS)]
TokenEnv = Annotated[
    str, typer.Option(metavar="VARIABLE", help="Name of the variable that holds the token, where one is demanded.")
]
URL, TOKEN_ENV = "http://127.0.0.1:4328", "PANDAEVAL_TOKEN"


class ApiClient:
    """An API, asked by a command that does one thing after the other. A context manager; what goes wrong is a
    ``UserError``."""

    def __init__(self, asker: Asker) -> None:
        import asyncio

        self._asker = asker
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._asker.close())
        self._loop.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """The answer's JSON."""
        return self._loop.run(self._asker.get(path, **parameters))

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        """Asks for a change and returns the answer's JSON. ``key``: asking twice with it is asking once."""
        return self._loop.run(self._asker.post(path, body, key))

    def delete(self, path: str) -> None:
        self._loop.run(self._asker.delete(path))

    def pause(self, seconds: float) -> None:
        """Waits; returns earlier where something happened meanwhile."""
        time.sleep(seconds)

    def pages(self, path: str, most: int | None = None, **parameters: Any) -> Iterator[dict[str, Any]]:
        """All items of a list, at most so many."""
        cursor, shown = None, 0
        while True:
            page = self.get(path, cursor=cursor, **parameters)
            for item in page["items"]:
                if most is not None and shown >= most:
                    return
                shown += 1
                yield item
            cursor = page.get("next")
            if cursor is None:
                return


class Api(ApiClient):
    """That of a running collector."""

    def __init__(self, url: str, token_env: str) -> None:
        from pandaeval_collector.show.api.client import Asker

        super().__init__(Asker.over_http(url, token_env))


at_collector = in_place_of("api", {"url": (Url, URL), "token_env": (TokenEnv, TOKEN_ENV)}, Api)
"""Gives a command the options that say where the collector is, in place of its parameter ``api``."""


def watched(api: ApiClient, run_id: str, every: float = 1.0) -> dict[str, Any]:
    """Waits until a run has ended, with a bar on a terminal; the run as it is then."""
    from pandaeval_collector.cli._output import console, progress

    with progress(console(stderr=True), f"run {run_id}") as tell:
        while True:
            run: dict[str, Any] = api.get(f"/runs/{run_id}")
            if run["ended_at"] is not None:
                return run
            tell(run["done"] + run["failed"], run["traces"])
            api.pause(every)
