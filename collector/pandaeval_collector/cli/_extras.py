"""Finds the extra that installs a missing package."""

from __future__ import annotations

from pandaeval_collector.base.errors import installation

EXTRAS = {
    "": (
        *("annotated_doc", "click", "croniter", "grpc", "httptools", "numpy", "orjson", "pydantic", "pydantic_core"),
        *("re2", "rich", "shellingham", "starlette", "typer", "uvicorn", "uvloop", "yaml", "zstandard"),
    ),
    "judge": ("litellm", "aiolimiter"),
    "kafka": ("confluent_kafka",),
    "mcp": ("mcp", "mcp_types"),
    "pii": ("presidio_analyzer",),
}
"""The packages of each extra; ``""``: the packages that the collector itself requires."""


def hint(error: BaseException) -> str | None:
    """Return the installation command for a missing extra in ``error`` or its cause, else ``None``."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            package = cause.name.partition(".")[0]
            for extra, packages in EXTRAS.items():
                if package in packages:
                    return f"{package} is not installed; install it with: {installation(extra)}"
        cause = cause.__cause__
    return None
