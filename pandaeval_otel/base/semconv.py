"""Attribute and event names used in several files. Names of a single vendor are in its dialect."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# --- OpenTelemetry: general ------------------------------------------------------------------------------------------
ERROR_TYPE = "error.type"
EVENT_NAME = "event.name"
EXCEPTION = "exception"
EXCEPTION_MESSAGE = "exception.message"
SESSION_ID = "session.id"
USER_ID = "user.id"

# --- OpenTelemetry GenAI: current names ------------------------------------------------------------------------------
OPERATION = "gen_ai.operation.name"
CONVERSATION_ID = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
WORKFLOW_NAME = "gen_ai.workflow.name"
REQUEST_MODEL = "gen_ai.request.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_DEFINITIONS = "gen_ai.tool.definitions"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
EXIT_CODE = "process.exit.code"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_SCORE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"

# Usage: the names of all releases, newest first. "cache_creation" and "cache_write" are the same tokens.
USAGE_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
USAGE_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
USAGE_CACHE_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_input_tokens",
)
USAGE_CACHE_WRITE = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_creation_input_tokens",
)
USAGE_REASONING = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
)

# --- OpenTelemetry GenAI: earlier names and extensions under the same prefix -----------------------------------------
PROMPT_OLD = "gen_ai.prompt"
COMPLETION_OLD = "gen_ai.completion"
RESPONSE_TEXT = "gen_ai.response.text"
RESPONSE_CALLS = "gen_ai.response.tool_calls"
INPUTS = (INPUT_MESSAGES, "gen_ai.request.messages", "gen_ai.agent.invocation_input", PROMPT_OLD)
OUTPUTS = (OUTPUT_MESSAGES, "gen_ai.agent.invocation_output", COMPLETION_OLD)
TOOL_ARGUMENTS_OLD = ("gen_ai.tool.args", "gen_ai.tool.input", "gen_ai.tool.arguments")
TOOL_RESULTS_OLD = ("gen_ai.tool.output", "gen_ai.tool.result", "gen_ai.event.content")
EXCEPTION_EVENTS = frozenset({"gen_ai.client.operation.exception", "gen_ai.execute_tool.exception"})
TOOL_EVENT = "gen_ai.tool.message"
CHOICE_EVENT = "gen_ai.choice"
EVENT_CONTENT = "gen_ai.event.content"
"""A JSON string with the body of a per-message event (azure-ai-inference)."""
TOOL_STATUS = "gen_ai.tool.status"
AGENT_TOOLS = "gen_ai.agent.tools"
CONTENT_REASONING = "gen_ai.content.reasoning"
GEN_AI_SESSION_ID = "gen_ai.session.id"
GEN_AI_THREAD_ID = "gen_ai.thread.id"

# --- MCP -------------------------------------------------------------------------------------------------------------
MCP_METHOD = "mcp.method.name"
MCP_TOOL_CALL = "tools/call"

# --- Langfuse, read by more than its own dialect ---------------------------------------------------------------------
LANGFUSE_SESSION_ID = "langfuse.session.id"

# --- PandaEval -------------------------------------------------------------------------------------------------------
PANDAEVAL_ROOT = "pandaeval"
PANDAEVAL_SESSION_ID = "pandaeval.session.id"
PANDAEVAL_USER_ID = "pandaeval.user.id"
PANDAEVAL_CASE_ID = "pandaeval.case.id"
PANDAEVAL_TRIAL = "pandaeval.trial"
PANDAEVAL_GOAL = "pandaeval.goal"
PANDAEVAL_PROFILE = "pandaeval.user.profile"
PANDAEVAL_KNOWLEDGE = "pandaeval.knowledge"
PANDAEVAL_UNTRACED = "pandaeval.untraced"
PANDAEVAL_SAMPLED = "pandaeval.sampled"
"""``False`` on recorded but unsampled spans, because encoders omit that flag."""

# --- Which session does a span belong to? ----------------------------------------------------------------------------
RANK_OVERRIDE = 1
RANK_CONVERSATION = 2
RANK_SESSION = 3
RANK_DIALECT = 4
RANK_RESOURCE = 10
"""Added to the rank of a resource key. A span's own id takes precedence over the id of its process."""

SESSION_RANKS: Mapping[str, int] = MappingProxyType(
    {
        PANDAEVAL_SESSION_ID: RANK_OVERRIDE,
        CONVERSATION_ID: RANK_CONVERSATION,
        SESSION_ID: RANK_SESSION,
        LANGFUSE_SESSION_ID: RANK_SESSION,
        GEN_AI_SESSION_ID: RANK_DIALECT,
        GEN_AI_THREAD_ID: RANK_DIALECT,
    }
)
"""Precedence of conversation keys; the lowest rank in a trace wins. 1: the user's configured attribute. 2: the GenAI
conventions' key. 3: general session keys (``session.id`` may be a browser session). 4: keys of a single dialect
(:data:`RANK_DIALECT`). 12 to 14: the same keys on the resource. Without these keys, the response or history that a
trace continues identifies the session (:mod:`pandaeval_otel.normal.session`). Never sessions: ``mcp.session.id``
(transport), ``langsmith.trace.session_*`` (project), ids of runs and calls.
"""
SESSION_KEYS = frozenset(SESSION_RANKS)
