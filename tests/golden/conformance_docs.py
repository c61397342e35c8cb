"""Writes the pages about instrumentations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

from tests.golden.conformance_deviations import Excuse, excuse
from tests.golden.conformance_facts import FACTS, Verdict
from tests.golden.conformance_truth import EMITTERS, OWN, REPO, Capture

PAGE = REPO / "docs" / "reference" / "instrumentations.md"
MATRIX = REPO / "docs" / "internals" / "instrumentations.md"

_GENAI = "opentelemetry-instrumentation-genai"
_TL = "opentelemetry-instrumentation"
_OI = "openinference-instrumentation"

RECORDED: Mapping[str, tuple[str, str]] = {
    "adk": ("google-adk 2.13.0", "its own, content off (the default)"),
    "adk_content": ("google-adk 2.13.0", "its own, content on spans and events"),
    "adk_java": ("google-adk 1.8.0 (Java)", "its own"),
    "adk_js": ("@google/adk 2.0.0 (JS)", "its own"),
    "adk_oi": ("google-adk 2.13.0", f"{_OI}-google-adk 1.0.5"),
    "adk_v1schema": ("google-adk 2.13.0", "its own, schema 1 (the form of releases before 2)"),
    "agent_framework": ("agent-framework-core 1.23.0", "its own"),
    "agent_framework_nocontent": ("agent-framework-core 1.23.0", "its own, content off (the default)"),
    "agent_framework_oi": ("agent-framework-core 1.23.0", f"{_OI}-agent-framework 0.1.13"),
    "agno_genai": ("agno 3.1.10", f"{_GENAI}-agno 1.3b0"),
    "agno_tl": ("agno 3.1.10", f"{_TL}-agno 0.62.4 (OpenLLMetry)"),
    "agentops_agents": ("openai-agents", "agentops 0.4.21"),
    "anthropic_genai": ("anthropic 2.12.0", f"{_GENAI}-anthropic 1.3b0"),
    "anthropic_oi": ("anthropic 2.12.0", f"{_OI}-anthropic 3.1.0"),
    "autogen": ("autogen-agentchat 0.7.5, one agent", "its own, which has no content"),
    "autogen_team": ("autogen-agentchat 0.7.5, a team", "its own"),
    "claude_native": ("Claude Code 2.1.330", "its own, spans and events"),
    "claude_oi": ("Claude Agent SDK", f"{_OI}-claude-agent-sdk 0.1.22"),
    "copilot_cli": ("GitHub Copilot CLI 1.0.102", "its own, content on"),
    "crewai_oi": ("crewai 1.15.30", f"{_OI}-crewai 1.1.21, -openai 0.1.66"),
    "dspy_oi": ("dspy 3.4.1", f"{_OI}-dspy 0.1.48"),
    "gemini_cli": ("Gemini CLI 0.61.0", "its own, traces and prompts on"),
    "genkit": ("Genkit 1.42.0 (JS)", "its own"),
    "genkit_go": ("Genkit 1.4.0 (Go)", "its own"),
    "google_genai_otel": ("google-genai 2.34.0", f"{_TL}-google-genai 1.3b0"),
    "haystack_native": ("haystack-ai 3.4.0", "opentelemetry-haystack 2.0.0"),
    "haystack_oi": ("haystack-ai 3.4.0", f"{_OI}-haystack 0.1.46"),
    "koog": ("Koog 1.1.1 (Kotlin)", "its own, verbose"),
    "langchain_js": ("LangChain 1.5.14 (JS)", "@arizeai/openinference-instrumentation-langchain 4.1.1"),
    "langfuse_langchain": ("LangChain (JS)", "@langfuse/langchain 5.11.1"),
    "langfuse_langgraph": ("langgraph 1.2.22", "langfuse 5.0.4"),
    "langgraph_genai": ("langgraph 1.2.22", f"{_GENAI}-langchain 1.3b0"),
    "langgraph_oi": ("langgraph 1.2.22", f"{_OI}-langchain 0.1.80"),
    "langgraph_oi_trunc": ("langgraph 1.2.22", f"{_OI}-langchain 0.1.80, values cut at 256 characters"),
    "langgraph_tl": ("langgraph 1.2.22", f"{_TL}-langchain 0.62.4 (OpenLLMetry)"),
    "langgraph_tl_legacy": ("langgraph 0.6.11", f"{_TL}-langchain 0.47.5 (OpenLLMetry)"),
    "langsmith_langgraph": ("langgraph 1.2.22", "langsmith 0.15.0"),
    "langsmith_noflush": ("langgraph 1.2.22", "langsmith 0.15.0, process ended before the last export"),
    "langwatch_openai": ("openai", "langwatch 1.4.0"),
    "litellm_oi": ("litellm", f"{_OI}-litellm 0.1.51"),
    "litellm_otel": ("litellm", "its own callback"),
    "litellm_otel_app": ("litellm", "its own callback, below spans of the application"),
    "livekit": ("livekit-agents 1.8.9", "its own"),
    "livekit_delta": ("livekit-agents 1.8.9", "its own, input_delta on"),
    "llama_index_genai": ("llama-index-core 0.14.25", f"{_GENAI}-llama-index 1.3b0"),
    "llama_index_oi": ("llama-index-core 0.14.25", f"{_OI}-llama-index 4.6.1"),
    "mastra": ("Mastra 1.71.0 (JS)", "@mastra/otel-exporter 1.4.0"),
    "mcp_oi": ("openai-agents with an MCP server", f"{_OI}-openai-agents 2.6.0, and the MCP SDK's own"),
    "mlflow_genai": ("openai 3.54.0", "mlflow 3.17.2, GenAI conventions switched on"),
    "openai_agents_genai": ("openai-agents 0.24.0", f"{_GENAI}-openai-agents, -openai 1.3b0"),
    "openai_agents_js": ("OpenAI Agents 0.20.0 (JS)", "@arizeai/openinference-instrumentation-openai-agents 0.2.15"),
    "openai_agents_oi": ("openai-agents 0.24.0", f"{_OI}-openai-agents 2.6.0"),
    "openai_agents_tl": ("openai-agents 0.24.0", f"{_TL}-openai-agents 0.62.4 (OpenLLMetry)"),
    "openai_agents_v2": ("openai-agents 0.24.0", f"{_TL}-openai-agents-v2 0.1.0"),
    "openai_genai_event": ("openai 3.54.0", f"{_GENAI}-openai 1.3b0, content in events only"),
    "openai_js_oi": ("openai (JS)", "@arizeai/openinference-instrumentation-openai 4.2.7"),
    "openai_oi": ("openai 3.54.0", f"{_OI}-openai 0.1.66"),
    "openai_responses_openinference": ("openai 3.54.0, Responses API", f"{_OI}-openai 0.1.66"),
    "openai_tl": ("openai 3.54.0", f"{_TL}-openai 0.62.4 (OpenLLMetry)"),
    "openai_tl_legacy": ("openai 1.109.1", f"{_TL}-openai 0.47.5 (OpenLLMetry)"),
    "opencode": ("OpenCode 1.18.33", "its own, experimental.openTelemetry on"),
    "openai_v2_content": ("openai 2.54.0", f"{_TL}-openai-v2 2.4b0, an event per message"),
    "openai_v2_latest": ("openai 2.54.0", f"{_TL}-openai-v2 2.4b0, latest conventions"),
    "openai_v2_nocontent": ("openai 2.54.0", f"{_TL}-openai-v2 2.4b0, content off (the default)"),
    "openlit_openai": ("openai 3.54.0", "openlit 1.45.0"),
    "pydantic_ai": ("pydantic-ai-slim 2.68.0", "its own"),
    "pydantic_ai_anthropic": ("pydantic-ai-slim 2.68.0, anthropic 2.12.0", "its own, and the client's own spans"),
    "pydantic_ai_fastapi": ("pydantic-ai-slim 2.68.0 behind FastAPI", "its own, below spans of the web server"),
    "pydantic_ai_fastapi_bg": ("pydantic-ai-slim 2.68.0 behind FastAPI", "its own, in a background task"),
    "pydantic_ai_fmt1": ("pydantic-ai-slim 1.107.10", "its own, format 1"),
    "pydantic_ai_fmt1_logs": ("pydantic-ai-slim 1.107.10", "its own, format 1, messages as log records"),
    "pydantic_ai_fmt2": ("pydantic-ai-slim 1.107.10", "its own, format 2"),
    "pydantic_ai_nocontent": ("pydantic-ai-slim 2.68.0", "its own, content off"),
    "pydantic_ai_trunc": ("pydantic-ai-slim 2.68.0", "its own, values cut at 256 characters"),
    "pydantic_ai_v1": ("pydantic-ai-slim 1.107.10", "its own"),
    "qwen_code": ("Qwen Code 0.24.4", "its own, sensitive span attributes on"),
    "smolagents_code_oi": ("smolagents 1.26.0, code agent", f"{_OI}-smolagents 0.1.43"),
    "smolagents_genai": ("smolagents 1.26.0", f"{_GENAI}-smolagents 1.2b0"),
    "smolagents_oi": ("smolagents 1.26.0", f"{_OI}-smolagents 0.1.43"),
    "spring_ai": ("Spring AI on Spring Boot 3.5.7", "its own observations"),
    "spring_ai2": ("Spring AI 2.0.1 on Spring Boot 4.0.7", "its own observations, tools include-content"),
    "strands": ("strands-agents 1.62.0", "its own"),
    "strands_js": ("Strands 1.19.0 (JS)", "its own"),
    "strands_legacy": ("strands-agents 1.10.0", "its own"),
    "traceloop_sdk": ("openai 3.54.0", "traceloop-sdk 0.62.4"),
    "vercel_ai": ("Vercel ai 6.0.326", "its own"),
    "voltagent": ("VoltAgent 2.10.0 (JS)", "its own"),
    "traceai_agents": ("openai-agents", "traceai-openai-agents 0.1.6"),
    "vercel_ai_7": ("Vercel ai 7.0.173", "@ai-sdk/otel 1.0.173"),
}
"""Framework and telemetry of each set."""

COMMITTED = {
    "adk": "adk_content",
    "crewai_openinference": "crewai_oi",
    "langgraph_openinference": "langgraph_oi",
    "langgraph_openllmetry": "langgraph_tl",
    "openai_agents_openinference": "openai_agents_oi",
    "openai_openllmetry": "openai_tl",
}
"""Committed sets recorded like a set of another name."""

PROGRAMS = (
    ("AG2 1", "its own spans"),
    ("Agenta", "its own decorators"),
    ("AgentScope", "its own spans"),
    ("AgentScope for Java", "its own spans; those of release 2 have no content"),
    ("Agno", "OpenLIT and OpenInference, where plan and answer are joined"),
    ("Amazon Bedrock (boto3)", "OpenTelemetry's instrumentation of botocore; OpenInference; OpenLLMetry"),
    ("Anthropic client", "OpenLLMetry; Logfire; OpenInference for JavaScript"),
    ("AutoGen AgentChat", "OpenInference"),
    ("Ax (JS)", "its own spans, which have no content"),
    ("BeeAI", "OpenInference"),
    ("CrewAI", "OpenLIT"),
    ("Deep Agents, with a sub-agent", "OpenInference; LangSmith"),
    ("DSPy", "OpenTelemetry's instrumentation; OpenLIT"),
    ("Genkit 1 (Go), with a sub-agent", "its own spans"),
    ("Google Gen AI client", "OpenInference; OpenLLMetry"),
    ("LangChain", "traceAI; OpenLLMetry for JavaScript"),
    ("LangGraph", "Monocle, whose spans do not have the order of parallel calls; MLflow; Laminar; LoongSuite"),
    ("LlamaIndex (JS)", "OpenLLMetry, whose spans have no tool calls"),
    ("mcp-agent", "its own spans beside OpenLLMetry"),
    ("Mirascope", "its own spans"),
    ("Mistral client", "OpenInference"),
    (
        "OpenAI client",
        "Judgeval; Langtrace; Neatlogs; Netra; Laminar; Logfire; OpenLIT with the Responses API, whose spans "
        "have no tool results; OpenTelemetry for JavaScript and Java; Langfuse for JavaScript",
    ),
    ("OpenAI Agents SDK", "MLflow; Logfire"),
    ("Pydantic AI", "MLflow"),
    (
        "Quarkus LangChain4j",
        "its own spans, where the question follows the instructions and the history without a mark",
    ),
    ("Semantic Kernel", "its own spans and log records"),
    ("smolagents", "OpenLIT"),
    ("Strands", "MLflow; OpenInference"),
    ("Upsonic", "its own spans"),
    ("Vercel AI SDK 6", "Laminar"),
    ("Vercel AI SDK 7", "OpenInference"),
    ("VoltAgent (JS), with a sub-agent", "its own spans, where the sub-agent's tokens are not counted"),
)
"""Frameworks and telemetry of the recordings in ``programs``."""
DOCUMENTED = (
    ("AG2 before 1", "its own spans and conversations", "earlier"),
    ("Amazon Bedrock AgentCore", "spans of the AWS distribution, their content in log records", "earlier"),
    ("CrewAI", "its own spans", "earlier"),
    ("Envoy AI Gateway (d408b675)", "the GenAI conventions, or OpenInference", "2026-11-28"),
    ("GitHub Copilot in VS Code (3fef59cc)", "the GenAI conventions and `copilot_chat.*`", "2026-11-28"),
    ("Microsoft.Extensions.AI for .NET (0120286b)", "the GenAI conventions", "2026-11-28"),
    ("Pipecat", "its spans of turns and services", "earlier"),
)
"""Emitters without a recording: subject and date of the last check."""

_VARIANTS = frozenset(
    {
        "adk",
        "adk_v1schema",
        "agent_framework_nocontent",
        "langgraph_oi_trunc",
        "langgraph_tl_legacy",
        "langsmith_noflush",
        "litellm_otel_app",
        "openai_genai_event",
        "openai_responses_openinference",
        "openai_tl_legacy",
        "openai_v2_nocontent",
        "pydantic_ai_anthropic",
        "pydantic_ai_fastapi",
        "pydantic_ai_fastapi_bg",
        "pydantic_ai_fmt1",
        "pydantic_ai_fmt1_logs",
        "pydantic_ai_fmt2",
        "pydantic_ai_nocontent",
        "pydantic_ai_trunc",
        "pydantic_ai_v1",
        "strands_legacy",
    }
)
"""Sets of older releases or without content, for the internals only."""

_HEAD = """\
# Supported instrumentations

PandaEval supports the following frameworks and instrumentations without configuration. We recorded each framework
during scripted sessions. PandaEval read facts from these recordings, and we compared the facts with the scripts. The
facts are **input**, **output**, **calls** of tools with **arguments** and **results**, **tools** with **parameters**,
**model**, **tokens**, **session**, **agent**, **errors** and **reasoning**.

Each item names a framework and its telemetry. *Its own* means that the framework itself creates the spans. The words in
italics are the facts that are missing in the spans, or that PandaEval does not read correctly (*none*: no fact).
PandaEval reads all other facts in every session. The [full matrix](../internals/instrumentations.md) lists older
releases, settings that record no content, and the reasons for missing facts. Many instrumentations capture message
content only after you set an environment variable. The collector's log names this variable.

PandaEval also supports any other framework whose spans follow OpenTelemetry's GenAI conventions. To check your own
traces, save them to a file and run `pandaeval inspect` with this file. To support another framework, add a
[dialect](../../CONTRIBUTING.md#add-a-dialect).

This page is generated by `python tests/golden/conformance.py --write-docs`.

## Tested with recordings
"""

_MATRIX_HEAD = """\
# Facts that PandaEval reads from each framework

Generated by `python tests/golden/conformance.py --write-docs`; do not edit.
[Supported instrumentations](../reference/instrumentations.md) is the shorter page for users.

We ran real frameworks in scripted sessions with a scripted model. The sessions contain good answers, loops, wrong
arguments, failing tools and refused requests. PandaEval read facts from the spans, and we compared these facts with the
scripts. The facts are input, output, calls, arguments, results, tools, parameters, model, tokens, session, agent,
errors and reasoning. Some recordings are in `tests/golden/captures`.

*Its own* means that the framework itself creates the spans. The column *not in the spans* lists facts that the
instrumentation does not record. PandaEval reads the facts in the last column incorrectly or not at all. "Tools 11/12"
means that PandaEval reads the tools correctly in 11 of the 12 sessions whose spans contain tools. PandaEval reads all
other facts correctly in every session.
"""

_TAIL = """
## Tools that the provider runs

The provider of a model can run web search, file search, code and MCP tools itself. PandaEval reads these hosted calls,
with arguments and results, from Anthropic, OpenAI (Responses API) and Gemini. To record these calls, use OpenInference,
OpenTelemetry's GenAI instrumentation of the client, or Pydantic AI.

- OpenAI does not return the pages of a web search. It returns results of file search and code only if `include` in
  the request lists them.
- Anthropic encrypts the pages of a web search, so PandaEval reads only their titles. The metric `grounding` treats such
  results as incomplete.
- Vercel AI SDK 6 records hosted calls without results.
- opentelemetry-instrumentation-genai-langchain 1.3b0 does not record hosted calls.

## Codex CLI

Codex creates spans and log records (`[otel]` in `~/.codex/config.toml`). Send both spans and log records to PandaEval.
To record prompts, set `log_user_prompt = true`. Codex does not record its answers, so metrics that need the answer are
unscored.
"""


class Result(Protocol):
    """One capture and its facts."""

    @property
    def capture(self) -> Capture: ...

    @property
    def verdicts(self) -> Mapping[str, Verdict]: ...


def write(found: Sequence[Result], page: Path = PAGE, matrix: Path = MATRIX) -> None:
    rows: dict[tuple[str, str], list[Result]] = {}
    for result in found:
        rows.setdefault(described(result.capture), []).append(result)
    usual = {RECORDED[name] for name in RECORDED.keys() - _VARIANTS}
    parts = [_HEAD, *_summary({row: rows[row] for row in rows if row in usual}), "", *_documented(), _TAIL.rstrip("\n")]
    page.write_text("\n".join(parts) + "\n")
    matrix.write_text("\n".join([_MATRIX_HEAD, *_table(rows), "", *_days(), *_reasons(found)]) + "\n")


def described(capture: Capture) -> tuple[str, str]:
    own = not {OWN, EMITTERS}.isdisjoint(capture.path.parents)
    return RECORDED[COMMITTED.get(capture.set, capture.set) if own else capture.set]


def mark(verdicts: Sequence[Verdict]) -> str:
    """Return ``✓`` for all read, ``–`` for not emitted, else counts."""
    wrong = sum(1 for verdict in verdicts if verdict.missed)
    emitted = sum(1 for verdict in verdicts if verdict.emitted or verdict.missed)
    if not emitted:
        return "–"
    return "✓" if not wrong else "✗" if wrong == emitted else f"{emitted - wrong}/{emitted}"


def _summary(rows: Mapping[tuple[str, str], Sequence[Result]]) -> Iterator[str]:
    found: list[tuple[str, str, str]] = []
    for (framework, telemetry), results in sorted(rows.items(), key=lambda row: (row[0][0].lower(), row[0][1])):
        marks = {fact: mark([result.verdicts[fact] for result in results]) for fact in FACTS}
        missing = ", ".join(
            fact if shown in "–✗" else f"{fact} in part" for fact, shown in marks.items() if shown != "✓"
        )
        found.append((framework, telemetry, missing or "none"))
    yield from by_framework(found)


def by_framework(rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """Return a list item per framework from sorted rows of framework, telemetry and missing facts."""
    for framework, of_framework in groupby(rows, key=lambda row: row[0]):
        telemetries = "; ".join(f"{telemetry}: *{missing}*" for _, telemetry, missing in of_framework)
        yield f"- **{framework}**, {telemetries}"


def _table(rows: Mapping[tuple[str, str], Sequence[Result]]) -> Iterator[str]:
    yield "| framework | telemetry | sessions | not in the spans | not read correctly |"
    yield "|---|---|---|---|---|"
    for (framework, telemetry), of_row in sorted(rows.items(), key=lambda row: (row[0][0].lower(), row[0][1])):
        marks = {fact: mark([one.verdicts[fact] for one in of_row]) for fact in FACTS}
        absent = ", ".join(fact for fact, shown in marks.items() if shown == "–")
        wrong = ", ".join(f"{fact} {shown}".removesuffix(" ✗") for fact, shown in marks.items() if shown not in "✓–")
        yield f"| {framework} | {telemetry} | {len(of_row)} | {absent} | {wrong} |"


def _days() -> Iterator[str]:
    names: dict[str, set[str]] = {}
    for emitter, versions in json.loads((EMITTERS / "VERSIONS.json").read_text()).items():
        names.setdefault(versions["day"], set()).add(RECORDED[COMMITTED.get(emitter, emitter)][0])
    for day, of_day in sorted(names.items(), reverse=True):
        yield f"Recorded on {day}: {', '.join(sorted(of_day, key=str.lower))}.\n"


def _documented() -> Iterator[str]:
    yield "## Tested with one program\n"
    yield "We recorded one program with tools for each of these instrumentations.\n"
    yield from (f"- **{name}**: {spans}" for name, spans in sorted(PROGRAMS, key=lambda each: each[0].lower()))
    yield "\n## Read as documented\n"
    yield "We tested these frameworks with spans that we made from their code and documentation, not with recordings.\n"
    yield from (f"- **{name}**: {spans}" for name, spans, _ in DOCUMENTED)


def _reasons(found: Sequence[Result]) -> Iterator[str]:
    yield "## Facts that PandaEval does not read correctly\n"
    facts: dict[tuple[str, str], set[str]] = {}
    for one in found:
        for fact, verdict in one.verdicts.items():
            if verdict.missed and (excused := excuse(one.capture.set, one.capture.scenario, fact)) is not None:
                emitter = f"{' (telemetry: '.join(described(one.capture))}){_where(excused)}"
                facts.setdefault((emitter, excused.reason), set()).add(fact)
    for (emitter, reason), missed in sorted(facts.items(), key=lambda each: each[0][0].lower()):
        listed = " and ".join(", ".join(fact for fact in FACTS if fact in missed).rsplit(", ", 1))
        yield f"- {emitter}: PandaEval does not read {listed} correctly, because {reason}."


def _where(excused: Excuse) -> str:
    return "" if excused.scenario == "*" else f", session `{excused.scenario}`"
