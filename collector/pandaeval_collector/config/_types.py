"""The kinds of value that only our own sections hold: listeners, processes, names of metrics."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pandaeval_collector.base.runtime.cron import is_cron
from pandaeval_collector.base.section import Text
from pandaeval_collector.receivers.bind import parse_address

MAX_PROCESSES = 64


def _address(text: str) -> str:
    try:
        parse_address(text)
    except ValueError:
        raise ValueError("is not an address; write HOST:PORT, such as 127.0.0.1:4327 or 0.0.0.0:4327") from None
    return text


def _cron(text: str) -> str:
    if not is_cron(text):
        raise ValueError("is no cron expression: minute hour day month weekday, in UTC, as in '0 3 * * *'")
    return text


def _names(value: object) -> object:
    if value == "all":
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("is neither all nor a list of names, such as [trace.coherence, loop_detection]")


def _processes(value: object) -> object:
    if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PROCESSES):
        return value
    raise ValueError(f"is neither auto nor a whole number from 0 to {MAX_PROCESSES}")


Address = Annotated[Text, AfterValidator(_address)]
Cron = Annotated[Text, AfterValidator(_cron)]
Processes = Annotated[Literal["auto"] | Annotated[int, Field(ge=0, le=MAX_PROCESSES)], BeforeValidator(_processes)]
Names = Annotated[Literal["all"] | tuple[Text, ...], BeforeValidator(_names)]
