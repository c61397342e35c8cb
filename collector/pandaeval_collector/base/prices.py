"""List prices and providers of models, read offline from litellm's file."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from pandaeval_otel.model import Usage

_FILE = "model_prices_and_context_window_backup.json"
_log = logging.getLogger(__name__)


class ListPrice(NamedTuple):
    """US dollars per token of a prompt, an answer, and cache reads and writes."""

    into: float
    out: float
    read: float
    write: float


def usd_of(usage: Usage, *models: str) -> float | None:
    """Return a call's list price by the first priced model, else ``None``."""
    found = next(filter(None, map(_price, models)), None)
    if found is None:
        return None
    fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
    cached = usage.cache_read * found.read + usage.cache_write * found.write
    return fresh * found.into + cached + usage.output * found.out


def provider_of(model: str) -> str:
    """Return the provider that the model's name begins with, else the listed provider, or ``""``."""
    provider, slash, _ = model.partition("/")
    return provider if slash else str(_file().get(model, {}).get("litellm_provider", ""))


@cache
def _price(model: str) -> ListPrice | None:
    name = model.strip().lower()
    for known in (name, name.partition("/")[2], name.rpartition("/")[2]):
        if known and (held := _listed().get(known)) is not None:
            return held
    return None


@cache
def _listed() -> Mapping[str, ListPrice]:
    return {name.lower(): price for name, each in _file().items() if (price := _read(each)) is not None}


def _file() -> Mapping[str, Mapping[str, Any]]:
    spec = find_spec("litellm")
    places = () if spec is None else spec.submodule_search_locations or ()
    for place in places:
        try:
            held = orjson.loads((Path(place) / _FILE).read_bytes())
            return {name: each for name, each in held.items() if isinstance(each, Mapping)}
        except (OSError, ValueError, AttributeError) as error:
            _log.warning("the price list of litellm cannot be read (%s): costs of models are unknown", error)
    return {}


def _read(listed: Mapping[str, Any]) -> ListPrice | None:
    into, out = listed.get("input_cost_per_token"), listed.get("output_cost_per_token")
    if not isinstance(into, int | float) or not isinstance(out, int | float):
        return None
    read, write = listed.get("cache_read_input_token_cost"), listed.get("cache_creation_input_token_cost")
    return ListPrice(into, out, into if read is None else read, into if write is None else write)
