"""Which sessions are judged when not all are: by a hash, so that every collector and every run picks the same ones."""

from __future__ import annotations

import hashlib


def included(id_: str, share: float) -> bool:
    """Whether a session (or a trace without one) is in a sample of this share, 0..1. A larger sample holds every
    smaller one."""
    if share >= 1.0:
        return True
    digest = hashlib.blake2b(id_.encode(), digest_size=8, person=b"judge sample").digest()
    return int.from_bytes(digest, "big") < share * 2.0**64
