"""Attacks on the files of a running collector."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from support.collector import CollectorProcess
from support.made_traces import Composer
from support.senders import HttpSender


def unlocked(folder: Path, scale: int) -> Iterator[str]:
    """Remove the lock file and start a second collector."""
    for number in range(scale):
        with (
            CollectorProcess(folder / f"{number}-first") as first,
            CollectorProcess(folder / f"{number}-second") as two,
        ):
            first.start()
            (first.data / "lock").unlink()
            two.settings["PANDAEVAL_DATA"] = str(first.data)
            two.launch()
            until = time.monotonic() + 8
            both = False
            while time.monotonic() < until:
                time.sleep(0.2)
                doors = (HttpSender(each.http) for each in (first, two))
                both |= all(door.send(Composer(3).trace().request()).acknowledged for door in doors)
            if both:
                yield "two collectors accept for one store"
