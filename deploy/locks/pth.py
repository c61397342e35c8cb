"""Lists this Python's ``.pth`` files, which run code at start. Exits with 1 for an unknown file.

python deploy/locks/pth.py
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

KNOWN = {
    "_editable_impl_pandaeval_otel.pth": "this project, installed for development",
    "_editable_impl_pandaeval_collector.pth": "this project, installed for development",
    "distutils-precedence.pth": "setuptools",
    "_virtualenv.pth": "virtualenv, uv",
    "a1_coverage.pth": "coverage, which mutmut brings: it measures processes that a test starts",
    "tests.pth": ".ci/run: the environment of the tests behind that of the deployment's tools",
}


def strangers(folders: set[Path]) -> list[Path]:
    """Print all, and return unknown files."""
    found = []
    for file in sorted(each for folder in folders for each in folder.glob("*.pth")):
        print(f"{file}: {KNOWN.get(file.name, 'UNKNOWN')}")
        if file.name not in KNOWN:
            found.append(file)
    return found


if __name__ == "__main__":
    sys.exit(bool(strangers({Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")})))
