"""The API reference page is current."""

from __future__ import annotations

from pandaeval_collector.show.api.problems import WRITES
from support.api_page import PAGE, document, reference_page


def test_the_committed_api_page_is_up_to_date() -> None:
    """Fix: ``cd tests && python -m support.api_page``."""
    assert PAGE.read_text(encoding="utf-8") == reference_page()


def test_every_operation_and_parameter_is_listed_with_a_description() -> None:
    described, page = document(), reference_page()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            (line,) = (line for line in page.splitlines() if line.startswith(f"- **`{method.upper()} {path}`**"))
            assert line.replace("`", "").endswith(f": {operation['summary']}.")
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query" and not parameter["name"].startswith(("a.", "b.")):
                    assert f"- **`{parameter['name']}`**" in page
                    assert parameter["name"] == "order" or parameter["description"]


def test_every_operation_that_changes_something_documents_its_errors() -> None:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            assert method == "get" or {*map(str, WRITES)} <= operation["responses"].keys(), path
