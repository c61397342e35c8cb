"""Valid and invalid requests from an OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode
from schemathesis.checks import CHECKS, CheckFunction, load_all_checks

load_all_checks()
_CHECKS: Sequence[CheckFunction] = CHECKS.get_by_names(
    ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance"]
)

_LONGEST = 30_000
"""The listener refuses longer heads."""


def ask_anything(schema: BaseSchema, examples: int) -> int:
    """Call every operation with valid and invalid values; return the number of operations.

    Raises for undocumented answers and 5xx.
    """
    operations = [each.ok() for each in schema.get_all_operations()]
    for operation in operations:
        for mode in GenerationMode if _can_be_wrong(operation) else [GenerationMode.POSITIVE]:
            _ask(operation, mode, examples)
    return len(operations)


def _can_be_wrong(operation: APIOperation) -> bool:
    """Return whether an invalid value exists; any text is a valid ID."""
    definition = operation.definition.raw
    return "requestBody" in definition or any(each["in"] == "query" for each in definition.get("parameters", ()))


def _ask(operation: APIOperation, mode: GenerationMode, examples: int) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def ask(case: Case) -> None:
        answer = case.call()
        if len(answer.request.url or "") < _LONGEST:
            case.validate_response(answer, checks=[*_CHECKS])

    ask()
