"""The API's reference page is made from its OpenAPI document; the committed one is up to date."""

from __future__ import annotations

from pathlib import Path

from pandaeval_lab.cli import _api_page as docs

_PAGE = Path(__file__).parents[4] / "docs/api.md"


def test_the_committed_page_is_up_to_date() -> None:
    """Otherwise: `pandaeval api --page > docs/api.md`."""
    assert _PAGE.read_text(encoding="utf-8") == docs.reference_page()


def test_every_operation_and_parameter_is_told_with_its_meaning() -> None:
    told, page = docs.document(), docs.reference_page()
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            assert f"### {method.upper()} {path}\n" in page
            assert operation["summary"]
            for parameter in operation.get("parameters", ()):
                assert f"| `{parameter['name']}` |" in page
                assert parameter["in"] == "path" or parameter["name"] == "order" or parameter["description"]
