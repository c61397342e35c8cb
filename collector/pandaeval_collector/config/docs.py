"""JSON schema and example file, generated from the tree."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pandaeval_collector.config._shown import flow
from pandaeval_collector.config._tree import Config, below

_EXAMPLE_HEAD = """\
# All keys of the collector's configuration, with meanings and defaults. Remove the keys that you do not change.
# Durations: 250ms, 10s, 15m, 24h, 7d, 1h30m. Sizes: 1MB, 32MiB, 10GiB.
# Each key is also an environment variable, which overrides this file: close.quiet is PANDAEVAL_CLOSE__QUIET.
# `pandaeval config check FILE` lists errors. `pandaeval config show --config FILE` shows the current values.
"""


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """Make the JSON schema (draft 2020-12) of a configuration file. Durations and sizes are patterned strings."""
    # As people write it, which is how it is serialised.
    schema = Config.model_json_schema(mode="serialization", schema_generator=_Schema)
    return {"$schema": _Schema.schema_dialect, **schema, "title": "pandaeval collector"}


def example_yaml() -> str:
    """Write YAML with every key, its default and its meaning; it loads as ``Config()``."""
    return _EXAMPLE_HEAD + "\n".join(_example(())) + "\n"


def _example(path: tuple[str, ...]) -> Iterator[str]:
    for key in below(path):
        if not path:
            yield ""
        yield from textwrap.wrap(key.meaning, width=110, initial_indent="# ", subsequent_indent="# ")
        name, inner = key.path[-1], list(_example(key.path)) if key.section else []
        if key.section and not key.optional:
            yield f"{name}:"
            yield from textwrap.indent("\n".join(inner), "  ").split("\n")
        else:
            yield f"{name}: {'...' if key.required else flow(key.default)}"
        if key.section and key.optional:
            yield f"# {name}:"
            yield from textwrap.indent("\n".join(inner), "#   ").split("\n")
