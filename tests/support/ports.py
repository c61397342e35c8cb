"""Exclusive loopback ports across test processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path


def free_ports(number: int) -> list[int]:
    """Return unused ports below the kernel's outgoing range."""
    found: list[int] = []
    while len(found) < number:
        port = random.randrange(15_000, 32_000)
        if port in _given or not _claimed(port):
            continue
        _given.add(port)
        with contextlib.closing(socket.socket()) as attempt, contextlib.suppress(OSError):
            attempt.bind(("127.0.0.1", port))
            found.append(port)
    return found


def _claimed(port: int) -> bool:
    if not _claims:
        file = Path(tempfile.gettempdir()) / "pandaeval-test-ports"
        _claims.append(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.lockf(_claims[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


_given: set[int] = set()
_claims: list[int] = []
"""The open file of all claims; closing a descriptor releases them."""
