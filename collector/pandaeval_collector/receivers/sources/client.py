"""Questions to a query API: JSON over HTTP, with a limit of time and size, and errors that say what to do."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.receivers.files import UnusableInputError
from pandaeval_collector.receivers.sources.address import StoreAddress
from pandaeval_otel.wire.otlp_json import BadOtlp, decode_json

MOST_BYTES = 64 << 20
"""Of one answer, as it is after decompression."""
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_AGAIN = frozenset({429, 502, 503, 504})
_TRIES = 3
_LONGEST_WAIT_S = 10.0
_TOLD = 300


class AnswerTooLargeError(Exception):
    """An answer is larger than :data:`MOST_BYTES`: ask for less at a time."""


class MissingError(Exception):
    """There is nothing like that (404). ``told``: whether the API itself says so, in JSON."""

    def __init__(self, told: bool) -> None:
        super().__init__("404")
        self.told = told


class NoJsonError(Exception):
    """What answered speaks no JSON: a page for people, or another program."""


class StoreClient:
    """Asks one place. A context manager; safe from several threads."""

    def __init__(self, place: StoreAddress, tenant_header: str) -> None:
        """Raises :class:`UnusableInputError` where the token's variable is not set."""
        self._place = place
        headers = {"accept": "application/json"} | ({tenant_header: place.tenant} if place.tenant else {})
        auth: httpx.Auth | None = None
        if place.token_env:
            token = os.environ.get(place.token_env, "").strip()
            if not token:
                raise place.told(f"the variable {place.token_env} (token_env) is not set")
            if place.user:
                auth = httpx.BasicAuth(place.user, token)
            else:
                headers["authorization"] = f"Bearer {token}"
        # A proxy for the internet knows no store on this machine.
        self._client = httpx.Client(
            base_url=_url(place),
            headers=headers,
            auth=auth,
            timeout=_TIMEOUT,
            trust_env=not _is_here(_url(place)),
            # A self-signed certificate is told by the usual variable (SSL_CERT_FILE), on this machine too.
            verify=httpx.create_ssl_context() if place.url.startswith("https:") else True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def get(self, path: str, parameters: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """The answer's JSON object. Raises :class:`MissingError`, :class:`AnswerTooLargeError`, :class:`NoJsonError`,
        and :class:`UnusableInputError` for what only the user can put right."""
        for attempt in range(_TRIES):
            status, body, wait = self._once(path, parameters or {})
            if status not in _AGAIN or attempt == _TRIES - 1:
                break
            time.sleep(min(_LONGEST_WAIT_S, wait or 0.5 * 2**attempt))
        if status == 200:
            return _object(body)
        if status == 404:
            raise MissingError(body.lstrip()[:1] == b"{")
        raise self._refused(status, body)

    def _once(self, path: str, parameters: Mapping[str, str | int]) -> tuple[int, bytes, float | None]:
        try:
            with self._client.stream("GET", path, params=dict(parameters)) as answer:
                body = bytearray()
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > MOST_BYTES:
                        raise AnswerTooLargeError
                after = answer.headers.get("retry-after", "")
                return answer.status_code, bytes(body), float(after) if after.isdecimal() else None
        except httpx.TimeoutException as error:
            cure = "see whether it is busy, or ask for less with since= and limit="
            raise self._place.told(
                f"{self._place.url} did not answer in time ({type(error).__name__}): {cure}"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            cure = (
                f"see whether it runs and the port is that of its query API (+https in front of :// for TLS): {error}"
            )
            raise self._place.told(f"{self._place.url} cannot be asked; {one_printable_line(cure)}") from error

    def _refused(self, status: int, body: bytes) -> UnusableInputError:
        told = one_printable_line(" ".join(body[:4000].decode(errors="replace").split()))[:_TOLD]
        if status in (401, 403):
            cure = "give it a token: token_env=NAME of the variable that holds one (and user=NAME for basic auth)"
            return self._place.told(f"{self._place.url} refused ({status}): {cure}")
        return self._place.told(f"{self._place.url} answered {status}: {told or 'nothing more'}")


def _url(place: StoreAddress) -> httpx.URL:
    """Raises :class:`UnusableInputError` for a name that no host can have."""
    try:
        url = httpx.URL(place.url)
        assert url.host is not None  # its name is taken apart only now
    except (httpx.InvalidURL, UnicodeError) as error:
        raise place.told(f"{place.url} is no address: {one_printable_line(str(error))}") from error
    return url


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = decode_json(body)
    except BadOtlp as error:
        raise NoJsonError from error
    if not isinstance(found, dict):
        raise NoJsonError
    return found


def _is_here(url: httpx.URL) -> bool:
    host = url.host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
