"""The reference page of the API, made of its OpenAPI document so that it cannot fall behind.

cd tests && python -m support.api_page    # writes docs/reference/api.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.show import API
from pandaeval_collector.show.api.app import api_app
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder

_HEAD = f"""\
# HTTP API

A collector answers under `{API}` on `server.http` (`http://127.0.0.1:4328` by default), beside OTLP/HTTP. Its OpenAPI
document is at `{API}/openapi.json`.

- **Who may ask.** Where `server.token_env` is set, every request needs `Authorization: Bearer <token>` (401 without).
  Where it is not, the name that is asked has to be `localhost`, an IP address or one of `server.allowed_hosts` (421),
  so that no web page of others reads along.
- **What changes something** has to be JSON (415 otherwise) of at most 64 KiB (413), and not from a page of another
  origin (403).
- **Lists** come a page at a time: give `next` back as `cursor`; it is null after the last page.
- **Not again.** Answers have an `ETag`; a request with `If-None-Match` is answered 304 while nothing changed.
- **Errors** are `application/problem+json`: `status`, `title`, and in `detail` what is wrong and what to do. A question
  that takes longer than 5 s is given up (503): narrow it down by time or agent. 503 with `Retry-After` asks to come
  back: too much is under way, or the process that answers reads is just being started again.
- **Texts** in answers (inputs, answers, names, reasons) are what people and programs told an agent. They are data.

```bash
curl -s 'http://127.0.0.1:4328{API}/sessions?failed=true&limit=5'
curl -s 'http://127.0.0.1:4328{API}/annotations' -H 'content-type: application/json' \\
    -d '{{"trace_id": "<32 hex digits>", "metric": "trace.task_completion", "passed": false, "annotator": "ann"}}'
```

This page is made by `cd tests && python -m support.api_page`.
"""
PAGE = Path(__file__).parents[2] / "docs/reference/api.md"


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    reads = Reads(Finder(Path()))
    try:
        return api_app(reads, Work(), "1").openapi()
    finally:
        reads.close()


_KINDS = {"date-time": "time (RFC 3339)"}


def reference_page() -> str:
    """Returns the reference page in Markdown."""
    told = document()
    return "\n".join([_HEAD, "## Operations", *_operations(told), "", "## Objects", *_objects(told), ""])


def _operations(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"\n### {method.upper()} {path}\n"
            yield f"{operation['summary']}."
            if body := operation.get("requestBody"):
                yield f"\nBody: {_content(body)}."
            answers = (
                f"{status} {_content(each)}"
                for status, each in operation["responses"].items()
                if status.startswith("2")
            )
            others = ", ".join(status for status in operation["responses"] if not status.startswith("2"))
            yield f"\nAnswers: {', '.join(answers)}; {others}."
            if parameters := operation.get("parameters"):
                yield "\n| parameter | value | default | meaning |\n|---|---|---|---|"
                for each in parameters:
                    schema, place = each["schema"], "in the path" if each["in"] == "path" else ""
                    default = "" if schema.get("default") is None else f"`{schema['default']}`"
                    told = _cell(each.get("description", place))
                    yield f"| `{each['name']}` | {_type(schema)} | {default} | {told} |"


def _objects(told: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in sorted(told["components"]["schemas"].items()):
        if name.startswith(("HTTPValidationError", "ValidationError")):
            continue
        yield f"\n### {name}\n"
        yield " ".join(schema.get("description", "").split())
        if properties := schema.get("properties"):
            yield "\n| field | value | meaning |\n|---|---|---|"
            needed = schema.get("required", ())
            for field, said in properties.items():
                optional = "" if field in needed else ", may be left out"
                yield f"| `{field}` | {_type(said)}{optional} | {_cell(said.get('description', ''))} |"


def _content(said: Mapping[str, Any]) -> str:
    return ", ".join(_type(each["schema"]) for each in said.get("content", {}).values())


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    if "additionalProperties" in schema and isinstance(schema["additionalProperties"], Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    kind = _KINDS.get(schema.get("format", ""), schema.get("type", "any"))
    low, high = schema.get("minimum"), schema.get("maximum")
    return kind if low is None or high is None else f"{kind}, {low:g} to {high:g}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(reference_page(), encoding="utf-8")
