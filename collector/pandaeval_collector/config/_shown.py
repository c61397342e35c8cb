"""The configuration for display: human units, no secrets, origins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from pandaeval_collector.base.untrusted.named_secrets import is_secret_name
from pandaeval_collector.config._problem import KeyPath, WrittenAt
from pandaeval_collector.config._tree import Config

# Greedy up to the last @ of a line, because an unescaped password can contain any character.
_USERINFO = re.compile(r"^((?>.*?://)).*@", re.MULTILINE)
_QUERY = re.compile(r"^((?>.*?://)[^?\n]*+)\?.+", re.MULTILINE)


def effective(config: Config) -> dict[str, Any]:
    """Return all values in human units, without secrets: see :func:`masked`."""
    return dict(masked(config.model_dump(mode="json")))


def to_yaml(config: Config, origins: Mapping[KeyPath, WrittenAt]) -> str:
    """Format ``effective`` as loadable YAML with origins as comments."""
    return "".join(f"{line}\n" for line in _lines(effective(config), (), origins))


def masked(value: Any) -> Any:
    """Replace user names, passwords and queries in URLs, and texts with the name of a secret, by ``***``."""
    if isinstance(value, str):
        return _QUERY.sub(r"\1?***", _USERINFO.sub(r"\1***@", value))
    if isinstance(value, Mapping):
        return {key: "***" if _is_secret(key, item) else masked(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(item) for item in value]
    return value


def _is_secret(name: str, value: Any) -> bool:
    # Keys of the configuration that end in _env contain the name of a variable.
    return isinstance(value, str) and not name.endswith("_env") and is_secret_name(name, value)


def flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def _lines(values: Mapping[str, Any], path: KeyPath, origins: Mapping[KeyPath, WrittenAt]) -> Iterator[str]:
    indent = "  " * len(path)
    for name, value in values.items():
        here = (*path, name)
        if isinstance(value, Mapping) and value:
            yield f"{indent}{flow(name)}:"
            yield from _lines(value, here, origins)
        else:
            origin = f"  # {origins[here]}" if here in origins else ""
            yield f"{indent}{flow(name)}: {flow(value)}{origin}"
