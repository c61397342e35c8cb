"""Python's garbage collector, told what a process of ours is like."""

from __future__ import annotations

import gc


def spare_the_garbage_collector() -> None:
    """What the start left behind stays for good, and a batch of traces makes many objects that are all still needed:
    with Python's own thresholds a twentieth of the time goes into looking through them in vain."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
