"""Peers with broken or weak TLS."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from support.certificates import make_certificates
from support.hostile import doors
from support.hostile.attack import TAKEN, Ground, Target, at_once, attack
from support.hostile.doors import stalled

_FOLDER = "certificates"


def _certified(folder: Path, scale: int) -> Mapping[str, str]:
    make_certificates(folder / _FOLDER)
    files = {"CERT": "server.pem", "KEY": "server.key"}
    return {f"PANDAEVAL_SERVER__TLS__{name}": str(folder / _FOLDER / file) for name, file in files.items()}


TLS = Ground("TLS", prepare=_certified, authority=f"{_FOLDER}/ca.pem")
_HELLO = bytes.fromhex("1603010200010001fc0303")
"""The start of an incomplete handshake."""


@attack(TLS)
def handshakes_that_never_end(target: Target, scale: int) -> Iterator[str]:
    """Incomplete handshakes, silence, plain HTTP and random bytes."""
    plain = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}"
    requests = [_HELLO, b"", plain, os.urandom(4096)] * (75 * scale)
    for address in (target.grpc, target.http):
        for answer in stalled(address, requests, 15.0):
            yield answer if answer != "HTTP 200" else TAKEN


@attack(TLS)
def handshakes_by_the_thousand(target: Target, scale: int) -> Iterator[str]:
    for address in (target.grpc, target.http):
        yield from at_once([partial(_shaken, address)] * (500 * scale))


@attack(TLS)
def old_and_weak_TLS(target: Target, scale: int) -> Iterator[str]:
    for address in (target.grpc, target.http):
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            weak = partial(_shaken, address, version)
            yield from (TAKEN if each == "shaken" else each for each in at_once([weak] * (10 * scale)))


def _shaken(address: str, version: ssl.TLSVersion | None = None) -> str:
    host, port = address.rsplit(":", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if version is not None:
        context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
    try:
        with socket.create_connection((host, int(port)), doors.PATIENCE_S) as plain, context.wrap_socket(plain):
            return "shaken"
    except ssl.SSLError:
        return "refused"
    except OSError:
        return "closed"
    finally:
        with contextlib.suppress(Exception):
            plain.close()
