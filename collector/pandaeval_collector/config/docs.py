"""Schema, example file and reference page, all made from the tree, so that none of them can fall behind it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from pandaeval_collector.config._messages import flow
from pandaeval_collector.config._tree import Config, Key, below, keys, variable

_EXAMPLE_HEAD = """\
# Every key of the collector's configuration, with its meaning and its default: remove what you do not change.
# Durations: 250ms, 10s, 15m, 24h, 7d, 1h30m, or a number of seconds. Sizes: 1MB, 32MiB, 10GiB, or a number of bytes.
# Each key is also an environment variable, which wins over this file: close.quiet is PANDAEVAL_CLOSE__QUIET.
# Check a file with `pandaeval config check FILE`; see what is in force with `pandaeval config show --config FILE`.
"""

_PAGE_HEAD = """\
# Configuration

The collector runs without any configuration; every key has a default. Values come from four places, later ones win:

1. the defaults below,
2. a YAML file (`--config FILE`; `collector/config.example.yaml` holds every key),
3. environment variables: `PANDAEVAL_`, then the key in capitals with two underscores for each dot
   (`close.quiet` is `PANDAEVAL_CLOSE__QUIET`). The value is read as YAML, so that lists and maps can be given too:
   `PANDAEVAL_SESSION__WEIGHTS='{confidence: 2}'`. An entry of a map can be set alone:
   `PANDAEVAL_METRICS__THRESHOLDS__TRACE__COHERENCE=0.4`. An empty variable counts as not set; write `null` for null.
   `PANDAEVAL_DATA` sets `store.path` where neither the file nor `PANDAEVAL_STORE__PATH` does,
4. options of the command line.

Durations are written `250ms`, `10s`, `15m`, `24h`, `7d`, `1h30m` or as a number of seconds; sizes `1MB` (10^6), `32MiB`
(2^20), `10GiB` or as a number of bytes. A map or section that is given again by a variable replaces a map and adds
to a section.

**Secrets** never stand in the configuration: keys that end in `_env` hold the *name* of an environment variable.
`pandaeval config show` masks user names, passwords and queries in URLs.

**Names of metrics** are `level.name` (`trace.coherence`) or bare (`coherence`: every level that has it). One threshold
cannot serve two scales: a bare name that several levels have means the turn level if its threshold is above 1, and is
an error otherwise.

Listeners that other machines can reach (`server.grpc`, `server.http`) need `server.tls`, and `server.token_env` or
client certificates, unless `server.insecure_bind` says that the network itself is closed.

`pandaeval config check FILE` reports every problem at once, each with its place, and exits with 2 if there is any;
`pandaeval config show` prints what is in force and where it came from; `pandaeval config schema` prints a JSON schema
for editors. Unknown keys are errors.

This page is made by `pandaeval config schema --page > docs/configuration.md`.
"""


class _Schema(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leaves titles out: names of keys say the same."""
        return False


def json_schema() -> dict[str, Any]:
    """Makes the JSON schema (draft 2020-12) of a configuration file; durations and sizes are strings with patterns."""
    # As people write it, which is how it is serialised.
    schema = Config.model_json_schema(mode="serialization", schema_generator=_Schema)
    for section in (schema, *schema["$defs"].values()):
        for about in section["properties"].values():
            if "description" in about:
                about["description"] = " ".join(about["description"].split())  # docstrings have line breaks
    return {"$schema": _Schema.schema_dialect, **schema, "title": "pandaeval collector"}


def example_yaml() -> str:
    """Writes a YAML file with every key at its default and its meaning as a comment; it loads as ``Config()``."""
    return _EXAMPLE_HEAD + "\n".join(_example(())) + "\n"


def reference_page() -> str:
    """Writes a page in Markdown with a table of every key for each section."""
    parts = [_PAGE_HEAD]
    for path, key in keys().items():
        if key.section:
            rows = "".join(_row(child) for child in below(path) if not child.section or child.optional)
            table = f"| key | default | value | meaning | variable |\n|---|---|---|---|---|\n{rows}" if rows else ""
            parts.append(f"## `{'.'.join(path)}`\n\n{key.meaning}\n\n{table}".rstrip("\n") + "\n")
    return "\n".join(parts)


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


def _row(key: Key) -> str:
    default = "required" if key.required else f"`{flow(key.default)}`"
    meaning = key.meaning.replace("|", "\\|")
    return f"| `{key.path[-1]}` | {default} | {_words(key.schema)} | {meaning} | `{variable(key.path)}` |\n"


def _words(schema: Mapping[str, Any]) -> str:
    """Describes the kind of value that a key takes, for people."""
    if "anyOf" in schema:
        return " or ".join(_words(variant) for variant in schema["anyOf"])
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else None):
        return ", ".join(f"`{choice}`" for choice in choices)
    if "$ref" in schema:
        return "section"
    if "type" not in schema:  # whatever an exporter of another package takes
        return "any value"
    if schema["type"] == "array":
        return f"list of {_words(schema.get('items', {}))}"
    words = {"boolean": "true or false", "integer": "whole number", "object": "map", "string": "text", "null": "null"}
    kind: str = schema.get("x-kind") or words.get(schema["type"], schema["type"])
    if "x-kind" in schema or "minimum" not in schema:
        return kind
    least = f"{schema['minimum']:g}"
    return f"{kind}, {least} to {schema['maximum']:g}" if "maximum" in schema else f"{kind} from {least}"
