"""Whether the line could use several cores of one process: which of the compiled packages that it needs load in an
interpreter with a lock of its own, and which are published for a Python without the lock.

The first column needs nothing but the Python that runs this, 3.13 or newer, with the collector's dependencies; the
second asks the package index that pip is told of.

    python3.13 tests/lab/bench/interpreters.py [--version 3.14]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from _table import table

PACKAGES = {
    "grpcio": "grpc._cython.cygrpc",
    "protobuf": "google._upb._message",
    "numpy": "numpy",
    "orjson": "orjson",
    "pydantic-core": "pydantic_core",
    "zstandard": "zstandard",
    "google-re2": "re2",
    "uvloop": "uvloop",
    "httptools": "httptools.parser.parser",
    "pyyaml": "yaml._yaml",
    "rpds-py": "rpds",
    "(standard library: sqlite3)": "sqlite3",
}
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def loads(module: str) -> str:
    """Imports a module in an interpreter with its own lock, and tells what came of it."""
    import _interpreters  # 3.13 and newer; public as concurrent.interpreters from 3.14 on

    interpreter = _interpreters.create("isolated")
    failed = _interpreters.exec(interpreter, f"import sys; sys.path[:] = {sys.path!r}; import {module}")
    return "yes" if failed is None else "no"


def is_published(package: str, version: str) -> str:
    """Whether the index has a wheel for ``version`` without the lock. A wheel for any Python has no compiled part."""
    asked = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    asked += ["--target", "unused", "--only-binary", ":all:", "--report", "-", "--implementation", "cp"]
    asked += ["--python-version", version, "--abi", f"cp{version.replace('.', '')}t"]
    for platform in _PLATFORMS:
        asked += ["--platform", platform]
    answer = subprocess.run([*asked, package], capture_output=True, text=True)
    if answer.returncode != 0:
        return "no"
    (found,) = json.loads(answer.stdout)["install"]
    return "without its compiled part" if found["download_info"]["url"].endswith("-none-any.whl") else "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="3.14", help="the Python without the lock")
    version = parser.parse_args().version
    rows = [
        (package, loads(module), "yes" if package.startswith("(") else is_published(package, version))
        for package, module in PACKAGES.items()
    ]
    head = ("package", "loads in an interpreter of its own", f"wheel for {version} without the lock")
    print(table("Several cores in one process", head, rows))


if __name__ == "__main__":
    main()
