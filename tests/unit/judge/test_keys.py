"""Missing and unknown API keys, without requests."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.prices import provider_of
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.judge.keys import BY_KEY_ALONE, missing_key
from pandaeval_collector.judge.provider import ProviderCaller
from pandaeval_collector.judge.route import Route

# The pydantic warning about litellm's types cannot be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore:Item 'summary' on TypedDict:UserWarning")

_SETUP = JudgeConfig(["openai/gpt-4o-mini"], timeout=5.0)
_CALL = {"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "?"}], "max_tokens": 5}


@pytest.fixture(autouse=True)
def litellm() -> Any:
    """Imports litellm late, because it takes seconds."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # like the collector: no price list from the network
    return pytest.importorskip("litellm")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.endswith("_API_KEY") or name.startswith(("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_")):
            monkeypatch.delenv(name)


def _keyless(litellm: Any, model: str) -> str:
    return Route.of(litellm, replace(_SETUP, models=[model]), model).keyless


@pytest.mark.parametrize(
    ("model", "variables"),
    [
        ("openai/gpt-4o-mini", {"OPENAI_API_KEY"}),
        ("gpt-4o-mini", {"OPENAI_API_KEY"}),
        ("anthropic/claude-haiku-4-5", {"ANTHROPIC_API_KEY"}),
        ("gemini/gemini-2.5-flash", {"GEMINI_API_KEY", "GOOGLE_API_KEY"}),
    ],
)
def test_a_missing_api_key_is_named_by_its_variables(
    litellm: Any, model: str, variables: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(_keyless(litellm, model).split(" or ")) == variables
    assert _keyless(litellm, model) == missing_key(provider_of(model), os.environ), "also without litellm"
    monkeypatch.setenv(variables.pop(), "k")
    assert _keyless(litellm, model) == ""


@pytest.mark.parametrize("provider", BY_KEY_ALONE)
def test_key_variables_match_litellm(litellm: Any, provider: str) -> None:
    assert {*BY_KEY_ALONE[provider]} == {*litellm.validate_environment(f"{provider}/model")["missing_keys"]}


@pytest.mark.parametrize("model", ["ollama/llama3", "bedrock/anthropic.claude-v2", "hosted_vllm/any", "nobody/model"])
def test_providers_that_may_work_without_a_key_need_none(litellm: Any, model: str) -> None:
    assert _keyless(litellm, model) == ""


def test_another_key_variable_of_the_provider_is_accepted(litellm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "k")
    assert _keyless(litellm, "openai/gpt-4o-mini") == ""


async def _allowed(model: str, answered: bool, max_tokens: int) -> None:
    raise AssertionError("nobody is to be asked")


async def test_a_call_without_a_key_is_denied_without_a_request() -> None:
    answer = await ProviderCaller(_SETUP).answer(_CALL, _allowed)
    assert (answer["ok"], answer["failure"], answer["message"]) == (False, "denied", "OPENAI_API_KEY is not set")


async def test_an_unreachable_endpoint_is_not_tried_after_two_failed_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    async def allowed(model: str, answered: bool, max_tokens: int) -> None:
        tried.append(model)

    monkeypatch.setenv("OWN", "k")
    caller = ProviderCaller(replace(_SETUP, api_key_env="OWN", api_base="http://127.0.0.1:9"))
    for tries in (3, 4):
        last = await caller.answer(_CALL, allowed)
        assert last["failure"] == "unavailable"
        assert len(tried) == tries
    again = await caller.answer(_CALL, allowed)
    assert (again["failure"], again["message"]) == ("cooldown", last["message"]), "with its cause"
    assert 20.0 < again["retry_after"] <= 30.0
    assert len(tried) == 4, "no request before the rest ends"


async def test_a_call_is_tried_with_a_custom_key_or_a_fallback_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def allowed(model: str, answered: bool, max_tokens: int) -> None:
        tried.append(model)

    monkeypatch.setenv("OWN", "k")
    own = replace(_SETUP, api_key_env="OWN", api_base="http://127.0.0.1:9")
    assert (await ProviderCaller(own).answer(_CALL, allowed))["failure"] != "denied"
    elsewhere = replace(_SETUP, fallbacks=["hosted_vllm/any"], retries=0)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", "http://127.0.0.1:9")
    await ProviderCaller(elsewhere).answer(_CALL, allowed)
    assert len(tried) >= 2
