"""Run transcripts: question and outcome."""

from __future__ import annotations

import json

from pandaeval_otel.dialects._events import messages_in_event_list
from pandaeval_otel.dialects._prompted import without_fields
from pandaeval_otel.dialects._runs import split_run, with_answer, without_carriers
from pandaeval_otel.model import NOT_CAPTURED, Message, Text, ToolRequest, ToolResponse
from tests.unit.dialects.composed import ANSWER, ASK, BRIEF, CALL, FOUND, SAID, texts

CALLED = Message("assistant", (CALL,))
GIVEN = Message("tool", (FOUND,))
AGAIN = Message("user", (Text("And in Rome?"),))


def test_the_last_user_message_is_the_question() -> None:
    assert split_run((BRIEF, ASK, CALLED, GIVEN, ANSWER)) == ((BRIEF, ASK), (CALLED, GIVEN, ANSWER))
    assert split_run((ASK, ANSWER, AGAIN, CALLED)) == ((ASK, ANSWER, AGAIN), (CALLED,))


def test_tool_results_in_a_user_message_are_no_question() -> None:
    results = Message("user", (FOUND,))
    assert split_run((ASK, CALLED, results, ANSWER)) == ((ASK,), (CALLED, results, ANSWER))


def test_earlier_requests_and_responses_are_no_part_of_the_run() -> None:
    said = (BRIEF, ASK, ANSWER, AGAIN, CALLED, GIVEN, AGAIN, ANSWER)
    assert split_run(said, 2) == (said[:4], said[4:])


def test_a_count_of_earlier_messages_beyond_the_transcript_is_ignored() -> None:
    assert split_run((ASK, ANSWER), 9) == ((ASK,), (ANSWER,))


def test_a_transcript_without_a_user_message_is_all_outcome() -> None:
    assert split_run((ANSWER,)) == ((), (ANSWER,))


def test_an_answer_already_in_the_transcript_is_not_added_again() -> None:
    assert with_answer((CALLED, ANSWER), SAID) == (CALLED, ANSWER)
    assert with_answer((CALLED,), SAID) == (CALLED, ANSWER)


def test_the_same_json_answer_with_other_spacing_is_not_added_again() -> None:
    made = (Message("assistant", (Text('{"temp_c":4}'),)),)
    assert with_answer(made, '{"temp_c": 4}') == made


def test_the_arguments_of_an_answer_tool_become_the_answer() -> None:
    carried = Message("assistant", (ToolRequest("final_result", {"temp_c": 4}, "c1"),))
    back = Message("tool", (ToolResponse("Final result processed.", "c1", "final_result"),))
    found = without_carriers((CALLED, GIVEN, carried, back), lambda name: name == "final_result")
    assert found[:2] == (CALLED, GIVEN)
    assert texts(found[2:]) == [("assistant", '{"temp_c": 4}')]


def test_an_answer_in_a_wrapper_is_unwrapped() -> None:
    carried = Message("assistant", (ToolRequest("final_result", {"response": SAID}, "c1"),))
    assert without_carriers((carried,), lambda name: True) == (ANSWER,)


def test_hidden_arguments_of_an_answer_tool_give_a_hidden_answer() -> None:
    carried = Message("assistant", (ToolRequest("final_result", None, "c1"),))
    assert without_carriers((carried,), lambda name: True) == (Message("assistant", (NOT_CAPTURED,)),)


def test_messages_are_read_from_a_list_of_events() -> None:
    events = [
        {"event.name": "gen_ai.user.message", "content": "Weather in Oslo?", "role": "user"},
        {"event.name": "gen_ai.choice", "message": {"role": "assistant", "content": SAID}},
        "no event",
    ]
    given, made = messages_in_event_list(json.dumps(events))
    assert (given, texts(made)) == ((ASK,), [("assistant", SAID)])


def test_events_without_content_are_not_captured() -> None:
    assert messages_in_event_list([{"event.name": "gen_ai.user.message", "role": "user"}]) == (None, None)


def test_earlier_dspy_calls_in_the_prompt_are_read() -> None:
    prompt = (
        "[[ ## question ## ]]\nWeather in Oslo?\n\n[[ ## trajectory ## ]]\n[[ ## thought_0 ## ]]\nI look.\n\n"
        '[[ ## tool_name_0 ## ]]\nlook\n\n[[ ## tool_args_0 ## ]]\n{"city": "Oslo"}\n\n'
        '[[ ## observation_0 ## ]]\n{"temp_c": 4}\n\n[[ ## thought_1 ## ]]\nDone.\n\n'
        "[[ ## tool_name_1 ## ]]\nfinish\n\n[[ ## tool_args_1 ## ]]\n{}\n\n[[ ## observation_1 ## ]]\nCompleted.\n\n"
        "Respond with the corresponding output fields, starting with the field `[[ ## answer ## ]]`."
    )
    given = without_fields((Message("system", (Text("Be brief."),)), Message("user", (Text(prompt),))))
    assert given is not None
    assert [message.role for message in given] == ["system", "user", "assistant", "tool"]
    assert given[1].text == "Weather in Oslo?"
    assert given[2].tool_requests == (ToolRequest("look", {"city": "Oslo"}),)
    assert given[3].tool_responses == (ToolResponse({"temp_c": 4}, name="look"),)
