"""Asks a collector's HTTP API: over the network, or within this process."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import httpx
from starlette.types import ASGIApp

from pandaeval_collector.api.place import API
from pandaeval_collector.untrusted.printable import one_printable_line

_TIMEOUT_S = 20.0
_MOST_TOLD = 500


class AskError(Exception):
    """A question that was not answered: why, and what to do, on one line."""


class Asker:
    """Asks one collector. Close it at the end. On one event loop."""

    def __init__(self, client: httpx.AsyncClient, where: str) -> None:
        self._client, self._where = client, where

    @classmethod
    def over_http(cls, url: str, token: str | None) -> Asker:
        """``url``: such as ``http://127.0.0.1:4328``. Raises :class:`AskError` for a text that is none."""
        host = _host(url)
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        # A proxy for the internet knows no collector on this machine.
        client = httpx.AsyncClient(
            base_url=url.rstrip("/") + API, headers=headers, timeout=_TIMEOUT_S, trust_env=not _is_here(host)
        )
        return cls(client, url)

    @classmethod
    def within(cls, api: ASGIApp) -> Asker:
        """``api``: the application that is mounted at ``/api/v1``."""
        transport = httpx.ASGITransport(api)
        return cls(httpx.AsyncClient(transport=transport, base_url="http://localhost"), "this process")

    async def get(self, path: str, **parameters: Any) -> Any:
        """The answer's JSON; what is ``None`` is not said. Raises :class:`AskError`."""
        try:
            answer = await self._client.get(path, params={k: v for k, v in parameters.items() if v is not None})
            if answer.status_code == 200:
                return answer.json()
        except httpx.TransportError as error:
            raise AskError(
                f"no collector answers at {one_printable_line(self._where)} ({type(error).__name__}): start one with "
                "`pandaeval collector`, or say where it is with --url"
            ) from error
        except (ValueError, httpx.DecodingError, httpx.InvalidURL) as error:
            raise AskError(f"what answers at {one_printable_line(self._where)} is no collector's API") from error
        raise AskError(self._refused(answer))

    async def close(self) -> None:
        """Ends its connections."""
        await self._client.aclose()

    def _refused(self, answer: httpx.Response) -> str:
        if answer.status_code == 401:
            return "the collector wants its token: set PANDAEVAL_TOKEN to the one that server.token_env names there"
        try:
            told = str(answer.json()["detail"])
        except (ValueError, KeyError, TypeError):
            told = f"what answers at {self._where} said {answer.status_code}; is it the server.http of a collector?"
        return one_printable_line(told)[:_MOST_TOLD]


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.hostname
    except (ValueError, httpx.InvalidURL):
        pass
    raise AskError(f"'{one_printable_line(url)}' is no address of a collector: write http://HOST:PORT")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
