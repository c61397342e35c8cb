"""A client of the HTTP API, over the network or in process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback
from pandaeval_collector.base.untrusted.printable import shown_address
from pandaeval_collector.show import API
from pandaeval_collector.show.view.texts import redacted_line

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_TIMEOUT_S, _LONG_S = 20.0, 600.0
"""Time limits in seconds. The second is for POST, because a dry run of many traces can take minutes."""
_MOST_TOLD = 500
TOKEN_ENV = "PANDAEVAL_TOKEN"  # noqa: S105 - a variable's name
"""Name of the variable with the token."""


class ApiRequestError(UserError):
    """A failed request, with cause and fix on one line."""


class AsyncApiClient:
    """A client of a collector's API, on one event loop. Close it at the end."""

    def __init__(self, client: httpx.AsyncClient, where: str) -> None:
        self._client, self._where = client, where

    @classmethod
    def over_http(cls, url: str) -> AsyncApiClient:
        """Return a network client for a URL such as ``http://127.0.0.1:4328``. Raises :class:`ApiRequestError`."""
        host = _host(url)
        token = os.environ.get(TOKEN_ENV, "").strip()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        client = httpx.AsyncClient(
            base_url=url.rstrip("/") + API,
            headers=headers,
            timeout=_TIMEOUT_S,
            # A proxy for the internet knows no collector on this machine.
            trust_env=not is_loopback(host),
            # The usual variable SSL_CERT_FILE names a self-signed certificate, also on this machine.
            verify=httpx.create_ssl_context() if url.startswith("https:") else True,
        )
        return cls(client, shown_address(url))

    @classmethod
    def within(cls, api: ASGIApp) -> AsyncApiClient:
        transport = httpx.ASGITransport(api)
        return cls(httpx.AsyncClient(transport=transport, base_url="http://localhost"), "this process")

    async def get(self, path: str, **parameters: Any) -> Any:
        """Return the answer's JSON, without parameters that are ``None``. Raises :class:`ApiRequestError`."""
        return await self._asked("GET", path, params={k: v for k, v in parameters.items() if v is not None})

    async def file(self, path: str) -> bytes:
        """Return the bytes of the answer, empty if there is no such object. Raises :class:`ApiRequestError`."""
        content: bytes = await self._asked("GET", path, is_file=True)
        return content

    async def post(self, path: str, body: Any = None) -> Any:
        return await self._asked("POST", path, json=body or {}, timeout=_LONG_S)

    async def delete(self, path: str) -> None:
        await self._asked("DELETE", path, headers={"content-type": "application/json"})

    async def close(self) -> None:
        await self._client.aclose()

    async def _asked(self, method: str, path: str, is_file: bool = False, **given: Any) -> Any:
        try:
            answer = await self._client.request(method, path, **given)
            del answer.stream  # it refers to the answer, which would wait for the garbage collector
            if is_file and answer.status_code in (200, 404):
                return answer.content if answer.is_success else b""
            if answer.is_success:
                return answer.json() if answer.content else None
        except httpx.ReadTimeout as error:
            raise ApiRequestError(f"{self._where} did not answer in time: try again, or request less") from error
        except httpx.TransportError as error:
            raise ApiRequestError(
                f"no collector answers at {self._where} ({type(error).__name__}): start one with "
                "`pandaeval collector`, or give its address with --url"
            ) from error
        except (ValueError, httpx.DecodingError, httpx.InvalidURL) as error:
            raise ApiRequestError(f"{self._where} is not the API of a collector") from error
        raise ApiRequestError(self._refused(answer))

    def _refused(self, answer: httpx.Response) -> str:
        if answer.status_code == 401:
            return f"the collector requires a token: set {TOKEN_ENV} to the value of its variable in server.token_env"
        try:
            return redacted_line(answer.json()["detail"], _MOST_TOLD)  # it can contain values from spans
        except (ValueError, KeyError, TypeError):
            return f"{self._where} answered with status {answer.status_code}; is it the server.http of a collector?"


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return parts.hostname
    except (ValueError, httpx.InvalidURL):
        pass
    raise ApiRequestError(f"'{shown_address(url)}' is not the address of a collector: write http://HOST:PORT")
