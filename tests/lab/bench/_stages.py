"""CPU time per stage of a running program."""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any


class Stages:
    """Wraps functions. ``spent[stage]``: CPU nanoseconds without nested stages."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self._undo: list[Callable[[], None]] = []
        self._local = threading.local()

    def watch(self, owner: Any, name: str, stage: str) -> None:
        """Count calls of ``owner.name`` as ``stage``."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **named: Any) -> Any:
            inside: list[int] = self._local.__dict__.setdefault("inside", [])
            inside.append(0)
            begun = time.thread_time_ns()
            try:
                return function(*args, **named)
            finally:
                took = time.thread_time_ns() - begun
                self.spent[stage] += took - inside.pop()
                if inside:
                    inside[-1] += took

        setattr(owner, name, timed)
        self._undo.append(lambda: setattr(owner, name, function))

    def release(self) -> None:
        """Restore the functions."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
