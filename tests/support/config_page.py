"""The reference page of the configuration, made of its keys so that it cannot fall behind.

cd tests && python -m support.config_page    # writes docs/reference/configuration.md
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.config._shown import flow
from pandaeval_collector.config._tree import Key, below, keys, variable

PAGE = Path(__file__).parents[2] / "docs/reference/configuration.md"
_HEAD = """\
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

This page is made from the keys themselves: `cd tests && python -m support.config_page`.
"""


def reference_page() -> str:
    """Writes a page in Markdown with a table of every key for each section."""
    parts = [_HEAD]
    for path, key in keys().items():
        if key.section:
            rows = "".join(_row(child) for child in below(path) if not child.section or child.optional)
            table = f"| key | default | value | meaning | variable |\n|---|---|---|---|---|\n{rows}" if rows else ""
            parts.append(f"## `{'.'.join(path)}`\n\n{key.meaning}\n\n{table}".rstrip("\n") + "\n")
    return "\n".join(parts)


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


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
