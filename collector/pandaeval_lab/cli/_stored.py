"""Finds the store that a command reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pandaeval_collector.base.filters import in_place_of
from pandaeval_collector.cli._config import STORE, given
from pandaeval_collector.cli._options import option
from pandaeval_collector.cli._run_place import data_directory
from pandaeval_collector.config import Config
from pandaeval_lab.cli._names import config_with_trials

_URL = "Use the data directory of this running collector."
_Url = Annotated[str | None, option(_URL, metavar="URL", envvar="PANDAEVAL_URL")]


def _settings(config: Path | None = None, store: Path | None = None, url: str | None = None) -> Config:
    if store is None and url is not None:
        store = data_directory(url)
    return config_with_trials(config, given(store))


stored = in_place_of("settings", {**STORE, "url": (_Url, None)}, _settings)
"""Gives a command the configuration of the store that it reads, in place of its parameter ``settings``. ``UserError``
if the collector's store is not on this machine."""
