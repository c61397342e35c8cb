"""OTLP over HTTP, as protobuf."""

from __future__ import annotations

import asyncio
import gzip
import logging

import httpx

from pandaeval_collector.exporters._otlp.answers import MAX_RESPONSE_BYTES, http_error
from pandaeval_collector.exporters._otlp.transport import TIMEOUT_S, USER_AGENT, SignalTarget, Trust, cure
from pandaeval_collector.exporters._protocol import RetryLaterError

logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request that went well
_HEADERS = {
    "content-type": "application/x-protobuf",
    "content-encoding": "gzip",
    "accept": "application/x-protobuf",
    "accept-encoding": "identity",  # so that the cap counts the bytes that are sent
    "user-agent": USER_AGENT,
}


class HttpTransport:
    """Implements ``Transport``. Does not follow redirects: content goes where it was configured to go."""

    def __init__(self, target: SignalTarget, trust: Trust | None = None) -> None:
        self._target, self._trust = target, trust or Trust()
        self._client: httpx.AsyncClient | None = None

    async def open(self) -> None:
        self._client = httpx.AsyncClient(
            headers={**_HEADERS, **dict(self._target.headers)},
            timeout=TIMEOUT_S,
            trust_env=not self._target.is_loopback,
            verify=self._trust.for_http() if self._target.secure else False,
        )

    async def send(self, request: bytes) -> bytes:
        if self._client is None:
            await self._renew()
        if self._client is None:
            raise RuntimeError("the client is closed")
        body = await asyncio.to_thread(gzip.compress, request, 3, mtime=0)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                async with self._client.stream("POST", self._target.url, content=body) as response:
                    if response.is_success:
                        return await _read(response)
                    raise http_error(response.status_code, response.headers)
        except (httpx.HTTPError, TimeoutError) as error:
            if self._target.secure:
                await self._renew()
            details = f"{type(error).__name__}: {error}"
            raise RetryLaterError(details + cure(details, self._target.secure)) from error

    async def _renew(self) -> None:
        """Opens a new client: the certificates may have been renewed."""
        await self.close()
        try:
            await self.open()
        except OSError as error:
            raise RetryLaterError(f"a certificate cannot be read: {error}") from error

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()


async def _read(response: httpx.Response) -> bytes:
    """Returns the body of an answer, empty if it is too long: the request was taken either way."""
    body = b""
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_RESPONSE_BYTES:
            return b""
    return body
