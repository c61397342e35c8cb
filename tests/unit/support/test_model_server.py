"""The scripted model server, by format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.model_server import ModelServer
from tests.support.script import Call, Dialogue, Exchange, Fault, Reply

WEATHER = Call("get_weather", {"city": "Málaga"})
TIDES = Call("get_tides", {"port": "Málaga"})
STEP = Reply("Let me see.", (WEATHER, TIDES), reasoning="Two things are asked.")
FINAL = "Sunny, and the tide is out."
SCRIPTS = {
    "beach": Dialogue(
        (
            Exchange("Can I swim?", (STEP, Reply(FINAL))),
            Exchange("And tomorrow?", (Reply("Tomorrow it rains."),)),
        )
    ),
    "refused": Dialogue((Exchange("Can I swim?", (Fault(429, "Slow down.", "rate_limit_error"),)),)),
    "garbled": Dialogue((Exchange("Can I swim?", (Fault(200, raw='{"choices": ['),)),)),
}
USER = {"role": "user", "content": "Can I swim?"}
CHAT, RESPONSES, MESSAGES = "v1/chat/completions", "v1/responses", "v1/messages"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(SCRIPTS) as running:
        yield running


def post(server: ModelServer, path: str, body: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{server.root}/{path}", json={"model": "m", **body}, trust_env=False, timeout=60)


def chat(server: ModelServer, *messages: dict[str, Any]) -> dict[str, Any]:
    choice = post(server, f"beach/{CHAT}", {"messages": list(messages)}).json()["choices"][0]
    return {"finish_reason": choice["finish_reason"], **choice["message"]}


def test_chat_finds_its_step_in_the_script_from_the_history(server: ModelServer) -> None:
    first = chat(server, USER)
    assert first["finish_reason"] == "tool_calls"
    assert (first["content"], first["reasoning_content"]) == (STEP.text, STEP.reasoning)
    assert [c["function"]["name"] for c in first["tool_calls"]] == ["get_weather", "get_tides"]
    assert json.loads(first["tool_calls"][0]["function"]["arguments"]) == {"city": "Málaga"}

    results = [{"role": "tool", "tool_call_id": c["id"], "content": "fine"} for c in first["tool_calls"]]
    second = chat(server, USER, first, *results)
    assert (second["finish_reason"], second["content"]) == ("stop", FINAL)

    third = chat(server, USER, first, *results, second, {"role": "user", "content": "And tomorrow?"})
    assert third["content"] == "Tomorrow it rains."


def test_equal_requests_get_equal_bytes_and_different_requests_different_call_ids(server: ModelServer) -> None:
    body = {"messages": [USER]}
    once, again = (post(server, f"beach/{CHAT}", body) for _ in range(2))
    assert once.content == again.content
    ids = [c["id"] for c in once.json()["choices"][0]["message"]["tool_calls"]]
    longer = chat(server, {"role": "system", "content": "Be brief."}, USER)["tool_calls"]
    assert len({*ids, *(c["id"] for c in longer)}) == 4


def test_usage_adds_up_and_grows_with_the_conversation(server: ModelServer) -> None:
    short, long = (
        post(server, f"beach/{CHAT}", {"messages": [{"role": "system", "content": "x" * n}, USER]}).json()["usage"]
        for n in (4, 400)
    )
    assert short["total_tokens"] == short["prompt_tokens"] + short["completion_tokens"]
    assert long["prompt_tokens"] > short["prompt_tokens"]
    assert long["completion_tokens"] == short["completion_tokens"] > 0


def test_a_stream_adds_up_to_the_reply(server: ModelServer) -> None:
    request = {"messages": [USER], "stream": True}
    text = post(server, f"beach/{CHAT}", request).content.decode()
    *chunks, last = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert last == "[DONE]"
    deltas = [choice["delta"] for chunk in map(json.loads, chunks) for choice in chunk["choices"]]
    assert "".join(d.get("content") or "" for d in deltas) == STEP.text
    assert "".join(d.get("reasoning_content") or "" for d in deltas) == STEP.reasoning
    arguments = ["", ""]
    for call in (call for delta in deltas for call in delta.get("tool_calls", ())):
        arguments[call["index"]] += call["function"]["arguments"]
    assert [json.loads(a) for a in arguments] == [{"city": "Málaga"}, {"port": "Málaga"}]
    assert json.loads(chunks[-1])["usage"]["completion_tokens"] > 0


def test_the_responses_api_returns_items_and_accepts_them_as_history(server: ModelServer) -> None:
    user = {"role": "user", "content": [{"type": "input_text", "text": "Can I swim?"}]}
    first = post(server, f"beach/{RESPONSES}", {"input": [user]}).json()["output"]
    assert [item["type"] for item in first] == ["reasoning", "message", "function_call", "function_call"]
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "fine"}
        for item in first
        if item["type"] == "function_call"
    ]
    second = post(server, f"beach/{RESPONSES}", {"input": [user, *first, *results]}).json()["output"]
    assert second[0]["content"][0]["text"] == FINAL
    assert post(server, f"beach/{RESPONSES}", {"input": "And tomorrow?"}).json()["status"] == "completed"


def test_the_messages_api_returns_blocks_and_accepts_them_as_history(server: ModelServer) -> None:
    first = post(server, f"beach/{MESSAGES}", {"system": "Be brief.", "messages": [USER]}).json()
    assert first["stop_reason"] == "tool_use"
    assert [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": b["id"], "content": "fine"} for b in first["content"][2:]]
    history = [USER, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": results}]
    second = post(server, f"beach/{MESSAGES}", {"messages": history}).json()
    assert (second["stop_reason"], second["content"]) == ("end_turn", [{"type": "text", "text": FINAL}])


def test_the_gemini_api_returns_parts_and_accepts_them_as_history(server: ModelServer) -> None:
    path = "beach/v1beta/models/gemini:generateContent"
    user = {"role": "user", "parts": [{"text": "Can I swim?"}]}
    first = post(server, path, {"contents": [user]}).json()["candidates"][0]["content"]
    assert [p["functionCall"]["name"] for p in first["parts"][2:]] == ["get_weather", "get_tides"]
    results = {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"result": "fine"}}}]}
    second = post(server, path, {"contents": [user, first, results]}).json()["candidates"][0]["content"]
    assert second["parts"] == [{"text": FINAL}]


def test_embeddings_of_texts_with_common_words_are_closer(server: ModelServer) -> None:
    texts = ["the tide is out", "the tide is in", "quarterly tax form"]
    data = post(server, "beach/v1/embeddings", {"input": texts}).json()["data"]
    tide, same, other = (item["embedding"] for item in data)
    assert sum(a * b for a, b in zip(tide, same, strict=True)) > sum(a * b for a, b in zip(tide, other, strict=True))
    assert sum(a * a for a in tide) == pytest.approx(1.0)


def test_models_are_listed(server: ModelServer) -> None:
    assert (
        httpx.get(f"{server.url('beach')}/models", trust_env=False, timeout=60).json()["data"][0]["object"] == "model"
    )


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (f"refused/{CHAT}", 429, "Slow down."),
        (f"refused/{RESPONSES}", 429, "Slow down."),
        (f"refused/{MESSAGES}", 429, "Slow down."),
        (f"unheard/{CHAT}", 404, "No such route: /unheard/v1/chat/completions"),
        ("beach/v1/nothing", 404, "No such route: /beach/v1/nothing"),
    ],
)
def test_faults_have_their_status_and_message(server: ModelServer, path: str, status: int, message: str) -> None:
    response = post(server, path, {"messages": [USER], "input": "Can I swim?"})
    assert response.status_code == status
    assert response.json()["error"]["message"] == message


def test_a_raw_fault_is_sent_unchanged(server: ModelServer) -> None:
    response = post(server, f"garbled/{CHAT}", {"messages": [USER]})
    assert (response.status_code, response.text) == (200, '{"choices": [')


def test_a_delayed_fault_lets_the_client_time_out() -> None:
    slow = {"slow": Dialogue((Exchange("Can I swim?", (Fault(delay_s=30.0),)),))}
    with ModelServer(slow) as server, pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url('slow')}/chat/completions", json={"messages": [USER]}, timeout=0.2, trust_env=False)


def test_unknown_messages_give_400_and_exhausted_scripts_500(server: ModelServer) -> None:
    stranger = post(server, f"beach/{CHAT}", {"messages": [{"role": "user", "content": "Who am I?"}]})
    assert stranger.status_code == 400
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "get_weather"}}]}
    history = [USER, called, {"role": "tool", "content": "?"}, called, {"role": "tool", "content": "?"}]
    assert post(server, f"beach/{CHAT}", {"messages": history}).status_code == 500


def test_requests_are_kept_for_assertions() -> None:
    with ModelServer(SCRIPTS) as server:
        post(server, f"beach/{CHAT}", {"messages": [USER]})
        assert [(scenario, route) for scenario, route, _ in server.requests] == [("beach", "chat/completions")]
        assert server.requests[0][2]["messages"] == [USER]
