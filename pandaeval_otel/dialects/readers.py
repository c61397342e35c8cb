"""Public readers for dialects: values, messages, tools, sessions and usage, in every known form.

Thread-safe; they never raise. These names are stable; underscore modules may change.
"""

# mypy: implicit-reexport
# ruff: noqa: F401

from pandaeval_otel.dialects._kit import (
    CUT,
    Outcome,
    answered,
    as_list,
    asked,
    count,
    error_of,
    first,
    give_outcome,
    hidden,
    identifier,
    is_final_answer,
    messages_of,
    metadata_sessions,
    model_input,
    model_output,
    parsed,
    prefixed_sessions,
    prefixed_user,
    read_messages,
    run_kind,
    said_by_user,
    session_candidates,
    session_id,
    system_of,
    system_text,
    tool_arguments,
    tool_definitions,
    tool_outcome,
    usage_of,
)
