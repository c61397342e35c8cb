"""A running collector's API, as commands speak to it: what goes wrong becomes a sentence."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

_ADDRESS = "Address of the collector's HTTP listener; else port 4328 of this machine."
Url = Annotated[str, typer.Option(metavar="URL", envvar="PANDAEVAL_URL", show_default=False, help=_ADDRESS)]
TokenEnv = Annotated[str, typer.Option(help="Name of the variable that holds the token, where one is demanded.")]
URL, TOKEN_ENV = "http://127.0.0.1:4328", "PANDAEVAL_TOKEN"
_TIMEOUT_S = 600.0
"""A dry run of many traces takes minutes on a busy machine."""


class Api:
    """One collector. A context manager."""

    def __init__(self, url: str, token_env: str) -> None:
        import httpx

        from pandaeval_collector.errors import UserError
        from pandaeval_collector.untrusted.printable import one_printable_line

        token = os.environ.get(token_env)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._url = url
        # A self-signed certificate is told by the usual variable (SSL_CERT_FILE).
        try:
            self._client = httpx.Client(base_url=f"{url.rstrip('/')}/api/v1", headers=headers, timeout=_TIMEOUT_S)
        except httpx.InvalidURL as error:
            raise UserError(f"--url {one_printable_line(url)}: {error}") from error

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """The answer's JSON. Raises ``UserError``."""
        return self._asked("GET", path, params={key: value for key, value in parameters.items() if value is not None})

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        """The same for what changes something. ``key``: asking twice with it is asking once."""
        return self._asked("POST", path, json=body or {}, headers={"idempotency-key": key} if key else {})

    def delete(self, path: str) -> None:
        """Raises ``UserError``."""
        self._asked("DELETE", path, headers={"content-type": "application/json"})

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

    def _asked(self, method: str, path: str, **given: Any) -> Any:
        import httpx

        from pandaeval_collector.errors import UserError
        from pandaeval_collector.untrusted.printable import one_printable_line

        try:
            answer = self._client.request(method, path, **given)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise UserError(f"no collector answers at {self._url} ({error}); --url names another") from error
        if answer.is_success:
            return answer.json() if answer.content else None
        try:
            told = str(answer.json()["detail"])
        except (ValueError, KeyError, TypeError):
            told = answer.text[:500] or f"status {answer.status_code}"
        raise UserError(one_printable_line(told))


def watched(api: Api, run_id: str, every: float = 1.0) -> dict[str, Any]:
    """Waits until a run has ended, with a bar on a terminal; the run as it is then."""
    from pandaeval_collector.cli._output import console
    from pandaeval_collector.cli._progress import progress

    with progress(console(stderr=True), f"run {run_id}") as tell:
        while True:
            run: dict[str, Any] = api.get(f"/runs/{run_id}")
            if run["ended_at"] is not None:
                return run
            tell(run["done"] + run["failed"], run["traces"])
            time.sleep(every)
