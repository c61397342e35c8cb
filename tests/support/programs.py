"""Builds Go programs for the end-to-end tests: ``python tests/support/programs.py``.

Needs Go. Writes to ``~/.cache/pandaeval``, once. By name also ``helm`` and ``docker-compose``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CACHE = Path.home() / ".cache" / "pandaeval"
_ROOT = Path(__file__).parents[2]
_OTELCOL = "0.159.0"
_JAEGER = "github.com/jaegertracing/jaeger@v1.76.0"
"""The module with cmd/jaeger (v2); Go cannot use the v2.x tags."""
_PROMETHEUS = "github.com/prometheus/prometheus@v0.315.0"
"""Prometheus 3.15.0."""
_HELM = "helm.sh/helm/v3@v3.22.0"
_COMPOSE = "github.com/docker/compose/v2@v2.40.3"
_FLAGS = "-p=1 -buildvcs=false"


def _go(*arguments: str, into: Path | None = None, **variables: str) -> str:
    environ = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": f"{_FLAGS} -mod=readonly"} | variables
    done = subprocess.run(["go", *arguments], cwd=into, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _build(module: str, package: str, binary: Path, *options: str) -> None:
    """Build inside the module, with its own go.mod."""
    folder = Path(json.loads(_go("mod", "download", "-json", module))["Dir"])
    binary.parent.mkdir(parents=True, exist_ok=True)
    _go("build", *options, "-o", str(binary), package, into=folder)


def jaeger() -> None:
    _build(_JAEGER, "./cmd/jaeger", CACHE / "jaeger" / "jaeger", "-ldflags=-s -w")


def prometheus() -> None:
    """Build Prometheus without service discovery and UI, and promtool."""
    named = "-ldflags=-s -w -X github.com/prometheus/common/version.Version=3.15.0"
    for name in ("prometheus", "promtool"):
        _build(_PROMETHEUS, f"./cmd/{name}", CACHE / "prometheus" / name, "-tags=remove_all_sd", named)


def otelcol() -> None:
    with tempfile.TemporaryDirectory() as tools:
        _go("install", f"go.opentelemetry.io/collector/cmd/builder@v{_OTELCOL}", GOBIN=tools, GOFLAGS=_FLAGS)
        subprocess.run(
            [Path(tools) / "builder", "--config", _ROOT / "deploy" / "otelcol" / "builder.yaml"],
            cwd=CACHE,
            env=os.environ | {"GOFLAGS": f"{_FLAGS} -mod=mod"},
            check=True,
        )


def helm() -> None:
    _build(_HELM, "./cmd/helm", CACHE / "bin" / "helm", "-ldflags=-s -w")


def compose() -> None:
    _build(_COMPOSE, "./cmd", CACHE / "bin" / "docker-compose", "-ldflags=-s -w")


_PROGRAMS = {
    "prometheus": (prometheus, CACHE / "prometheus" / "promtool"),
    "jaeger": (jaeger, CACHE / "jaeger" / "jaeger"),
    "otelcol": (otelcol, CACHE / "otelcol" / "otelcol-pandaeval"),
}


_ONLY_BY_NAME = {"helm": helm, "docker-compose": compose}
"""Checkers of ``deploy/`` that go beyond schemas."""


def main(names: list[str]) -> None:
    """Build the named, or all missing, programs."""
    CACHE.mkdir(parents=True, exist_ok=True)
    os.nice(10)
    for name in names or [name for name, (_, binary) in _PROGRAMS.items() if not binary.exists()]:
        began = time.monotonic()
        (_ONLY_BY_NAME.get(name) or _PROGRAMS[name][0])()
        print(f"{name}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
