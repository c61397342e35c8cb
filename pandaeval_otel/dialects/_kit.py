"""Re-exports all dialect helpers of this package. :mod:`readers` is the stable subset."""

# mypy: implicit-reexport
# ruff: noqa: F401

from pandaeval_otel.dialects._by_kind import ByKind, fill, keys
from pandaeval_otel.dialects._common import (
    CUT,
    KINDS,
    agent_in_metadata,
    agent_named,
    captured,
    crew_question,
    documents_in,
    drop_unnamed,
    error_of,
    give_error,
    give_outcome,
    metadata_sessions,
    one_message,
    one_session,
    prefixed_sessions,
    prefixed_user,
    put_input,
    put_output,
    read_metadata,
    run_kind,
    said_by_user,
    session_candidates,
    session_id,
    system_of,
    tool_definitions,
    usage_in,
    usage_of,
)
from pandaeval_otel.dialects._events import (
    EventContent,
    log_name,
    messages_in_event_list,
    read_events_and_logs,
    tool_values,
)
from pandaeval_otel.dialects._hosted import CALLS
from pandaeval_otel.dialects._indexed import Fields, indexed, indexed_messages
from pandaeval_otel.dialects._message_edits import Messages, each_part, with_thought
from pandaeval_otel.dialects._messages import (
    message_of,
    messages_of,
    read_messages,
    system_text,
    was_cut,
)
from pandaeval_otel.dialects._parts import blocks_of, parts_in, request_of, result_value, text_part
from pandaeval_otel.dialects._prompted import (
    prompted_tools,
    split_prompt,
    without_fields,
    without_protocol,
    without_task_mark,
)
from pandaeval_otel.dialects._reading import Attributes, Dialect, Logs, Reading, Switch, kinds
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._runs import (
    answered,
    asked,
    model_input,
    model_output,
    read_sides,
    split_run,
    with_answer,
    without_carriers,
)
from pandaeval_otel.dialects._tool_values import (
    FINAL_ANSWERS,
    Outcome,
    is_final_answer,
    tool_arguments,
    tool_of_server,
    tool_outcome,
)
from pandaeval_otel.dialects._values import (
    Object,
    as_dict,
    as_list,
    count,
    dicts_in,
    first,
    hidden,
    identifier,
    parsed,
    salvage,
)
from pandaeval_otel.model.raw import RawEvent, RawSpan
