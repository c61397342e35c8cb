"""One deployment for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import jaeger, otelcol, prometheus
from support.running_systems import RunningSystems, running_systems

_MISSING = [str(binary) for binary in (jaeger.BINARY, otelcol.BINARY, prometheus.THREE) if not binary.exists()]
_MISSING += [f"the module {name}" for name in ("litellm", "aiolimiter") if find_spec(name) is None]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSystems]:
    """Return the deployment, or skip without ``python tests/support/programs.py``."""
    if _MISSING:
        pytest.skip(f"needs {', '.join(_MISSING)}: python tests/support/programs.py; pip install . ./collector[judge]")
    folder: Path = tmp_path_factory.mktemp("house")
    with running_systems(folder) as made:
        yield made
