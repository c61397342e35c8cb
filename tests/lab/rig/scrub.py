"""Removes machine data from a capture."""

from __future__ import annotations

import re
from typing import Any

# Match an absolute path up to a folder that every machine has, or else up to the file name.
_START = r"(?<![\w.:/])(?:file://)?"
_INSTALLED = re.compile(_START + r"(?:/[\w.@+-]+)+?/(?=(?:site-packages|node_modules|tests/lab/rig|lib/python3)[/.])")
_HOME = re.compile(_START + r"/(?:root|home|Users|work|opt|usr|tmp|var|private|mnt|srv)(?:/[\w.@+-]+)*/")
_PRIVATE = re.compile(r"^(host|process|os|user|enduser|container|k8s)\.")
_KEPT = re.compile(r"^process\.runtime\.(name|version)$")


def scrub(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request without paths, host, process and user."""
    cleaned: dict[str, Any] = _without_paths(request)
    for key in ("resourceSpans", "resourceLogs"):
        for block in cleaned.get(key, ()):
            resource = block.get("resource", {})
            resource["attributes"] = [a for a in resource.get("attributes", ()) if not is_private(a["key"])]
    return cleaned


def is_private(key: str) -> bool:
    """Return whether a resource attribute identifies machine, process or user."""
    return bool(_PRIVATE.match(key)) and not _KEPT.match(key)


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    return _HOME.sub(".../", _INSTALLED.sub(".../", value)) if isinstance(value, str) else value
