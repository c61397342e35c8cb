"""Who has a topic's partitions, looked at four times a second, and for how long somebody was missing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from support.kafka import Broker

if TYPE_CHECKING:
    from confluent_kafka.admin import ConsumerGroupDescription

_LOOK_S = 0.25
_ANSWER_S = 2.0


class Watched:
    """Looks at consumer groups, each with so many partitions, on a thread of its own. ``here``: the client ids of the
    members that run at the moment. A context manager."""

    def __init__(self, broker: Broker, groups: Mapping[str, int], here: Callable[[], Collection[str]]) -> None:
        self._broker, self._groups, self._here = broker, groups, here
        self._missing_s, self._looked = 0.0, time.monotonic()
        self._whole = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="groups", daemon=True)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(60)

    def missing_s(self) -> float:
        """The seconds in which a group was not stable, or had a partition with nobody that runs; so far."""
        return self._missing_s

    def wait_whole(self, timeout: float) -> None:
        """Returns when each partition of all groups is with a member that runs. Raises ``AssertionError``."""
        self._whole.clear()
        assert self._whole.wait(timeout), f"partitions without a collector after {timeout} s"

    def _look_on(self) -> None:
        while not self._ended.wait(_LOOK_S):
            whole, now = self._is_whole(), time.monotonic()
            if whole:
                self._whole.set()
            else:
                self._missing_s += now - self._looked
            self._looked = now

    def _is_whole(self) -> bool:
        from confluent_kafka import ConsumerGroupState, KafkaException
        from confluent_kafka.admin import AdminClient

        here = self._here()
        with contextlib.suppress(KafkaException, TimeoutError):  # the broker is away
            admin = AdminClient({"bootstrap.servers": self._broker.address, "log_level": 0})
            asked = admin.describe_consumer_groups([*self._groups], request_timeout=_ANSWER_S)
            groups = {name: future.result(2 * _ANSWER_S) for name, future in asked.items()}
            return here == self._here() and all(
                groups[name].state == ConsumerGroupState.STABLE and _held(groups[name], here) == number
                for name, number in self._groups.items()
            )
        return False


def _held(group: ConsumerGroupDescription, here: Collection[str]) -> int:
    return sum(len(each.assignment.topic_partitions) for each in group.members if each.client_id in here)
