"""Restarted collectors find their ports."""

from __future__ import annotations

import os
import subprocess
import sys

from support import ports


def test_no_port_is_given_twice() -> None:
    found = [*ports.free_ports(50), *ports.free_ports(50)]
    assert len(set(found)) == 100
    assert all(15_000 <= port < 32_000 for port in found)


def test_another_process_does_not_get_our_ports() -> None:
    ours = ports.free_ports(2)
    others = range(40_000, 40_100)  # outside the range of free_ports
    program = f"wanted = iter({[*ours, *others]}); " + (
        "from support import ports; ports.random.randrange = lambda *_: next(wanted); print(*ports.free_ports(1))"
    )
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert int(done.stdout) in others, done.stderr
