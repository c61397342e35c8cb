"""Fixtures of every test."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support import commands, forked
from support.examples import examples

# Workers of a parallel run are told the width of the window: what the command line prints must not depend on it.
os.environ.pop("COLUMNS", None)

# How long an example takes says more about what else the machine does.
settings.register_profile(
    "untimed", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

# Hundreds of processes would import the same modules.
if forked.is_wanted():
    forked.install()

commands.install()

# Thousands of tests are many objects that all stay: looking through them for garbage is in vain.
gc.set_threshold(50_000, 20, 100)


# Files of processes take longest and are begun with; what is left at the end is short.
_TESTS = Path(__file__).parent
_FIRST = ("integration", "property", "golden")


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # pytest-xdist would begin with the files that have the most tests
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput") and forked.is_wanted():
        forked.share()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.relative_to(_TESTS).parts[0] not in _FIRST)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
