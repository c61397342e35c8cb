"""Subject words and small talk."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.stats.topic import (
    answer_topic_text,
    have_enough_words,
    have_topics,
    may_be_off_topic,
    message_topic_text,
)

ANSWER = "Larvik is a charming coastal town, well known for its beech forest and its natural mineral water."


@pytest.mark.parametrize(
    "message",
    [
        "Yes, please proceed.",
        "Yes, that sounds good. Please go ahead.",
        "thanks!",
        "Do it",
        "The second one, please.",
        "Sure, my user ID is sophia_martin_4574.",
        "My name is Yusuf Li, and my zip code is 91148.",
        "mia.garcia2723@example.com",
        "#W5490111",
        "4",
        "Ja, bitte!",
        "Oui, merci.",
        "Sí, por favor.",
        "好的，谢谢",
    ],
)
def test_consent_thanks_and_ids_name_no_subject(message: str) -> None:
    assert not have_topics(message, ANSWER)[0]


@pytest.mark.parametrize(
    "message",
    [
        "What is the weather in Oslo?",
        "Where is my parcel?",
        "How much would I get refunded for booking FJ-55120 if I cancel it today?",
        "Yes, please cancel my flight and refund the insurance.",
        "My name is Mei Davis and I want to return an office chair.",
        "Wie wird das Wetter morgen in Hamburg?",
        "明天北京的天气怎么样？",
    ],
)
def test_questions_and_requests_name_a_subject(message: str) -> None:
    assert have_topics(message, ANSWER)[0]


@pytest.mark.parametrize(
    ("answer", "has_subject"),
    [
        ("4", False),
        ("Yes.", False),
        ("Done!", False),
        ("416.5", False),
        ("Paris.", True),
        ("The ferry leaves at noon.", True),
    ],
)
def test_an_answer_with_only_a_value_names_no_subject(answer: str, has_subject: bool) -> None:
    assert have_topics("", answer)[1] is has_subject


@pytest.mark.parametrize(
    "answer",
    [
        "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.",
        "I can help you with that. Could you please provide your user ID and reservation ID?",
        "I'm sorry, but I am unable to help with this. Please contact customer support.",
        "Let me check that for you.",
        "To begin, I need to authenticate your identity. Could you please provide your email address?",
        "Is it a one-way or a round trip, in economy or business class, with or without travel insurance?",
        "You're welcome! Have a great day.",
    ],
)
def test_questions_back_refusals_and_hand_overs_are_never_off_topic(answer: str) -> None:
    assert not may_be_off_topic("Which chess opening suits beginners who like sharp positions?", answer)


def test_an_answer_that_shares_a_word_with_the_question_is_not_off_topic() -> None:
    bread, hedge = (
        "Why does sourdough bread without yeast need a hot oven?",
        "How do I plant a beech hedge in a clay soil?",
    )
    assert may_be_off_topic(bread, ANSWER)
    assert not may_be_off_topic(hedge.replace("clay", "garden clay"), ANSWER)
    assert have_enough_words(hedge.replace("clay", "garden clay"), ANSWER)


@pytest.mark.parametrize(
    ("message", "off_topic", "tells_if_unlike"),
    [
        ("bake bread", False, False),
        ("How do I bake sourdough bread?", False, True),
        ("Why does sourdough bread without yeast need a hot oven?", True, True),
    ],
)
def test_answers_to_short_messages_are_off_topic_only_if_the_texts_are_unlike(
    message: str, off_topic: bool, tells_if_unlike: bool
) -> None:
    assert may_be_off_topic(message, ANSWER) is off_topic
    assert may_be_off_topic(message, ANSWER, unlike=True) is tells_if_unlike


@pytest.mark.parametrize(
    ("message", "answer", "named", "answer_has_subject"),
    [
        ("What is the weather in Oslo?", "It is raining in Oslo.", True, True),
        ("Yes, please.", "It is raining in Oslo.", False, True),
        ("What is the weather in Oslo?", "Done!", False, False),
        ("Yes, please.", "Done!", False, False),
    ],
)
def test_a_message_has_a_subject_only_if_its_answer_has_one(
    message: str, answer: str, named: bool, answer_has_subject: bool
) -> None:
    assert have_topics(message, answer) == (named, answer_has_subject)


def test_small_talk_is_removed_from_messages_and_answers() -> None:
    assert message_topic_text("My user ID is x_1, cancel the flight").strip() == "cancel the flight"
    assert answer_topic_text("I'm sorry. The flight is full! Anything else?").strip() == "The flight is full!"


def test_small_talk_in_a_long_text_is_kept() -> None:
    long = "Could you tell me? " * 100
    assert answer_topic_text(long) == message_topic_text(long) == long


@pytest.mark.parametrize("sign", ["a", "字", " ", "@", "my ", "you ", "1", "\n", "’"])
def test_a_text_is_never_off_topic_to_itself(sign: str) -> None:
    for text in (sign * 100_000, (sign * 1200)[:1200]):
        assert not may_be_off_topic(text, text)


def test_a_text_over_200_characters_always_has_a_subject() -> None:
    for at, has in ((200, False), (201, True)):
        talk = ("yes " * 60)[:at].ljust(at, ".")
        assert (have_topics(talk, ANSWER)[0], have_topics("", talk)[1]) == (has, has)


def test_small_talk_is_removed_from_texts_of_up_to_1200_characters() -> None:
    for length, searched in ((1200, True), (1201, False)):
        text = "Thank you. " + "x" * (length - 11)
        assert (message_topic_text(text) == text, answer_topic_text(text) == text) == (not searched, not searched)


def test_messages_are_split_into_clauses_and_answers_into_sentences() -> None:
    assert message_topic_text("Bake bread. Thank you! Plant a hedge") == "Bake bread,  Plant a hedge"
    assert answer_topic_text("It rains. I'm sorry. It snows.") == "It rains.  It snows."


def test_codes_are_removed_and_typographic_apostrophes_are_replaced() -> None:
    assert message_topic_text("send order-7 on") == "send   on"
    assert answer_topic_text("It’s late 42 now") == "It's late   now"


def test_six_words_are_enough_or_three_if_the_texts_are_unlike() -> None:
    six = "oven bread yeast flour water salt"
    five, three, two = (" ".join(six.split()[:count]) for count in (5, 3, 2))
    assert have_enough_words(six, six)
    assert not have_enough_words(five, six)
    assert not have_enough_words(six, five)
    assert have_enough_words(three, six, unlike=True)
    assert not have_enough_words(three, six)
    assert not have_enough_words(two, six, unlike=True)


QUESTION = "Which chess opening suits beginners who like sharp tactical positions?"


@pytest.mark.parametrize(
    "message",
    [
        "Yes, please play the sharp opening that beginners like in tactical chess positions.",
        "Please go ahead with the sharp opening that suits beginners in tactical chess positions.",
        "The chess opening suits beginners and leads to sharp tactical positions. What should I try next?",
        "My sharp chess opening lost all tactical positions to beginners. What else can we do?",
    ],
)
def test_answers_to_consent_or_what_next_questions_are_not_off_topic(message: str) -> None:
    assert may_be_off_topic(QUESTION, ANSWER, unlike=True)
    assert not may_be_off_topic(message, ANSWER, unlike=True)


@pytest.mark.parametrize(
    "handed",
    ["YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.", "I am connecting you to our coastal team."],
)
def test_a_hand_over_is_not_off_topic(handed: str) -> None:
    assert not may_be_off_topic(QUESTION, f"{handed} {ANSWER}", unlike=True)


def test_a_question_after_ok_still_counts_as_a_question() -> None:
    assert may_be_off_topic(f"Ok, {QUESTION[0].lower()}{QUESTION[1:]}", ANSWER)


@pytest.mark.parametrize("message", ["Oh, I forgot the W at the beginning.", "Oops, hmm, wow!"])
def test_interjections_are_small_talk(message: str) -> None:
    assert not may_be_off_topic(message, ANSWER, unlike=True)
