"""Sources of read commands: a running collector or a data directory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.base.untrusted.printable import one_printable_line, shown_address
from pandaeval_collector.cli._options import option
from pandaeval_collector.show.api.client import AsyncApiClient
from pandaeval_collector.store.connection import FILE_NAME

_ADDRESS = "Address of the collector; default: port 4328 of this machine."
Url = Annotated[str, option(_ADDRESS, metavar="URL", envvar="PANDAEVAL_URL", show_default=False)]
URL = "http://127.0.0.1:4328"
_LOOK = "Data directory to read, also while a collector uses it."
StoreOption = Annotated[Path | None, option(_LOOK, "--store", metavar="FOLDER")]


class ApiClient:
    """A blocking API client and context manager. Request errors are ``UserError``."""

    def __init__(self, asker: AsyncApiClient, *place: str) -> None:
        """``place``: option that selects this source in other commands."""
        self._asker, self.place = asker, place
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._asker.close())
        self._loop.close()

    def get(self, path: str, **parameters: Any) -> Any:
        return self._loop.run(self._asker.get(path, **parameters))

    def file(self, path: str) -> bytes:
        return self._loop.run(self._asker.file(path))

    def post(self, path: str, body: Any = None) -> Any:
        return self._loop.run(self._asker.post(path, body))

    def delete(self, path: str) -> None:
        self._loop.run(self._asker.delete(path))

    def pages(
        self, path: str, most: int | None = None, rows: str = "items", **parameters: Any
    ) -> Iterator[dict[str, Any]]:
        cursor, shown = None, 0
        while True:
            page = self.get(path, cursor=cursor, **parameters)
            for item in page[rows]:
                if most is not None and shown >= most:
                    return
                shown += 1
                yield item
            cursor = page.get("next")
            if cursor is None:
                return


def over_http(url: str = URL) -> ApiClient:
    place = () if url == os.environ.get("PANDAEVAL_URL", URL) else ("--url", url)
    return ApiClient(AsyncApiClient.over_http(url), *place)


@contextmanager
def api_or_store_client(url: str = URL, store: Path | None = None) -> Iterator[ApiClient]:
    """Yield a client of a running collector, or of a data directory (``store``)."""
    if store is None:
        with over_http(url) as api:
            yield api
        return
    from pandaeval_collector.show.api.app import read_only_app  # not needed for requests to a collector

    with read_only_app(store) as app, ApiClient(AsyncApiClient.within(app), "--store", str(store)) as api:
        yield api


def with_collector_api(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a client of a running collector, in place of its parameter ``api``."""
    return in_place_of("api", {"url": (Url, URL)}, over_http)(command)


def with_api_or_store(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a client of a running collector or of a data directory, in place of its parameter ``api``."""
    return in_place_of("api", {"url": (Url, URL), "store": (StoreOption, None)}, api_or_store_client)(command)


def data_directory(url: str = "") -> Path:
    """Return the data directory of a running collector. Raises ``UserError`` if it is not on this machine."""
    url = url or os.environ.get("PANDAEVAL_URL", URL)
    with over_http(url) as api:
        data = api.get("/overview")["data"]
    if data is None or not (Path(data) / FILE_NAME).is_file():
        raise UserError(
            f"--url {shown_address(url)}: its data directory {one_printable_line(str(data))} is not on this machine"
        )
    return Path(data)
