"""Which family a model is of, by any of its names, and when a judge judges its own kind."""

from __future__ import annotations

import logging

import pytest

from pandaeval_collector.jobs.outcome import Kinship
from pandaeval_collector.judge.model_family import family, kin

_NAMES = {
    "gpt": """
        gpt-4o-2024-08-06 openai/gpt-4o-mini azure/eu/gpt-5 azure/gpt-35-turbo openai/o3-mini o1
        o4-mini-2025-04-16 chatgpt-4o-latest ft:gpt-4o-mini-2024-07-18:team::abc123 openrouter/openai/gpt-4.1
        bedrock/openai.gpt-oss-120b-1:0 ollama/gpt-oss:120b-cloud gradient_ai/openai-o3-mini
        github_copilot/gpt-5.4-mini azure/us/o3-2025-04-16 text-davinci-003 gpt-5-codex
    """,
    "claude": """
        anthropic/claude-sonnet-4-5-20250929 claude-3-5-haiku-latest
        bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0 anthropic.claude-v2:1 vertex_ai/claude-opus-4@20250514
        databricks/databricks-claude-sonnet-4 azure_ai/claude-opus-4-5
        bedrock/us-east-1/1-month-commitment/anthropic.claude-instant-v1 CLAUDE-HAIKU-4-5
        arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-3-haiku
    """,
    "gemini": """
        gemini/gemini-2.5-flash vertex_ai/gemini-2.0-flash-001 google/gemini-pro-1.5 models/gemini-2.5-pro
        gemma-3-27b-it publishers/google/models/gemini-2.5-flash ollama/gemma2:9b
    """,
    "llama": """
        meta-llama/Llama-3.1-8B-Instruct ollama/llama3.2 groq/llama-3.3-70b-versatile
        bedrock/meta.llama3-1-70b-instruct-v1:0 fireworks_ai/accounts/fireworks/models/llama-v3p1-405b-instruct
        together_ai/meta-llama/Meta-Llama-3-70B codellama-34b
        vertex_ai/meta/llama-4-maverick-17b-128e-instruct-maas llama2
    """,
    "qwen": """
        Qwen/Qwen2.5-72B-Instruct qwen3-32b dashscope/qwen-max ollama/qwen2.5-coder:1.5b qwq-32b
        fireworks_ai/accounts/fireworks/models/qwen2p5-7b-instruct bedrock/qwen.qwen3-235b-a22b-2507
    """,
    "mistral": """
        mistral/mistral-large-2411 mistralai/Mixtral-8x7B-Instruct-v0.1 codestral-latest ministral-8b
        magistral-medium bedrock/mistral.mistral-7b-instruct-v0:2 pixtral-12b
    """,
    "deepseek": """
        deepseek/deepseek-chat deepseek-ai/DeepSeek-V3 bedrock/us.deepseek.r1-v1:0 ollama/deepseek-r1:7b
    """,
    "grok": """
        xai/grok-4 azure_ai/grok-3 oci/xai.grok-3-fast
    """,
    "command": """
        command-r-plus cohere/command-a-03-2025 bedrock/cohere.command-r-v1:0
    """,
    "nova": """
        bedrock/us.amazon.nova-pro-v1:0 amazon-nova/nova-lite-v1
    """,
    "phi": """
        microsoft/Phi-3-mini-4k-instruct ollama/phi4
    """,
    "glm": """
        zai/glm-4.5 novita/thudm/glm-4-32b-0414
    """,
    "kimi": """
        moonshot/kimi-k2-thinking
    """,
}
_UNKNOWN = (
    "azure/my-deployment",
    "",
    "small-1",
    "openai/judge",
    "custom/prod-eu-2",
    "llamagate/house-model",
    "o",
    "demo3",
)


@pytest.mark.parametrize(
    ("wanted", "name"), [(wanted, name) for wanted, names in _NAMES.items() for name in names.split()]
)
def test_the_family_is_read_from_any_spelling(wanted: str, name: str) -> None:
    assert family(name) == wanted


@pytest.mark.parametrize("name", _UNKNOWN)
def test_of_a_name_that_tells_nothing_nothing_is_said(name: str) -> None:
    assert family(name) is None


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("openai/gpt-4o-mini", "gpt-4o-2024-08-06", "gpt"),
        ("anthropic/claude-sonnet-4-5-20250929", "bedrock/us.anthropic.claude-3-haiku-20240307-v1:0", "claude"),
        ("openai/gpt-4o-mini", "claude-sonnet-4-5", None),
        ("azure/my-deployment", "my-deployment", "my-deployment"),
        ("house/judge-2025-01-31", "judge", "judge"),
        ("azure/my-deployment", "other-deployment", None),
        ("azure/my-deployment", "gpt-4o", None),
        ("", "", None),
    ],
)
def test_kin_share_a_family_or_a_name(one: str, other: str, shared: str | None) -> None:
    assert kin(one, other) == shared
    assert kin(other, one) == shared


def test_a_judge_of_its_own_kind_is_warned_of_once_for_each_pair(caplog: pytest.LogCaptureFixture) -> None:
    kinship = Kinship()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            kinship.meets("openai/gpt-4o-mini", ("gpt-4o-2024-08-06", "claude-sonnet-4-5", "gpt-5\x1b[2J"))
    assert len(caplog.records) == 2
    assert "runs of gpt-4o-2024-08-06, which is of the same family (gpt)" in caplog.text
    assert "\x1b" not in caplog.text


def test_names_without_end_are_not_remembered_without_end(caplog: pytest.LogCaptureFixture) -> None:
    kinship = Kinship()
    with caplog.at_level(logging.WARNING):
        for number in range(1000):
            kinship.meets("openai/gpt-4o-mini", (f"gpt-{number}",))
    assert len(caplog.records) == 200
