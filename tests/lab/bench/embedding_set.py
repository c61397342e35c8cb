"""Generates ``embedding_set.json``: ``python tests/lab/bench/embedding_set.py``.

``topic``: requests with correct (1) or other answers (0; kinds ``other``, ``same``, ``named``, ``terse``).
``repeat``: answers with an edited copy (1) or another answer (0). Pairs are ``[left, right, label, kind]``.
"""

from __future__ import annotations

import json
import random
import re
from itertools import product
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
SET = HERE / "embedding_set.json"
SEED = 20260
SLOTS = {
    "city": ("Munich", "Porto", "Chicago", "Leeds", "Kyoto", "Montreal", "Seville", "Dublin"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"),
    "month": ("March", "April", "June", "September", "October", "November"),
    "n": ("3", "4", "6", "7", "8", "12", "14"),
    "order": ("A-10482", "77-31950", "PX4471", "20318-B"),
    "price": ("49", "85", "120", "240", "390", "1150"),
    "team": ("United", "Athletic", "the Falcons", "City"),
    "time": ("07:20", "9:45", "11 am", "14:30", "5 pm", "18:10"),
}
OPENERS = (
    "",
    "Sure. ",
    "Of course! ",
    "Let me try again. ",
    "Sorry for the confusion. ",
    "As I said: ",
    "Here you go. ",
)
LEADS = (
    "About {}: ",
    "This is what I can tell you about {}. ",
    "Happy to help with {}. ",
    "Regarding {}, here is the short version. ",
    "Let's have a look at {}. ",
    "Thanks for asking about {}! ",
)
CLOSERS = ("", "", " Is there anything else?", " Let me know if that helps.", " Just ask if anything is unclear.")
SYNONYMS = {
    "also": "in addition", "because": "since", "best": "ideal", "buy": "purchase", "check": "verify",
    "choose": "select", "first": "to begin with", "good": "fine", "keep": "leave", "large": "big",
    "look": "have a look", "may": "might", "need": "require", "often": "frequently", "roughly": "about",
    "small": "little", "take": "use", "until": "till", "usually": "normally", "which": "that", "will": "is going to",
}  # fmt: skip

Pair = tuple[int, int, int, str]
Subjects = dict[str, list[dict[str, Any]]]


class Texts:
    """Unique texts in order of first use."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self.all)
            self.all.append(text)
        return self._places[text]


def filled(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], text)


def values(chance: random.Random) -> dict[str, str]:
    return {name: chance.choice(choices) for name, choices in SLOTS.items()}


def edited(text: str, chance: random.Random) -> str:
    """Return a slightly changed repeat, as an agent in a loop gives."""
    sentences = re.split(r"(?<=[.!?]) ", filled(text, values(chance)))
    if len(sentences) > 3 and chance.random() < 0.6:
        del sentences[chance.randrange(len(sentences))]
    if len(sentences) > 1 and chance.random() < 0.3:
        place = chance.randrange(len(sentences) - 1)
        sentences[place : place + 2] = reversed(sentences[place : place + 2])
    changed = [SYNONYMS.get(word, word) if chance.random() < 0.7 else word for word in " ".join(sentences).split(" ")]
    return chance.choice(OPENERS) + " ".join(changed) + chance.choice(CLOSERS)


def named(about: str, answer: str, chance: random.Random) -> str:
    return chance.choice(LEADS).format(about) + answer


def topic_pairs(subjects: Subjects, texts: Texts, chance: random.Random) -> list[Pair]:
    pairs: list[Pair] = []
    for subject, items in subjects.items():
        others = [item for name, each in subjects.items() if name != subject for item in each]
        for item in items:
            same = [each for each in items if each is not item]
            for row, column in product(range(2), range(2)):
                lead = row == column
                shared_values = values(chance)
                left = texts.place(filled(item["ask"][row], shared_values))
                kinds = (("named" if lead else "terse", [item]), ("other", others), ("same", same))
                for label, (kind, pool) in zip((1, 0, 0), kinds, strict=True):
                    answered = chance.choice(pool)
                    answer = answered["say"][column]
                    answer = named(answered["about"], answer, chance) if lead else answer
                    pairs.append(
                        (left, texts.place(filled(answer, shared_values if label else values(chance))), label, kind)
                    )
    return pairs


def repeat_pairs(subjects: Subjects, texts: Texts, chance: random.Random) -> list[Pair]:
    pairs: list[Pair] = []
    for subject, items in subjects.items():
        others = [item for name, each in subjects.items() if name != subject for item in each]
        for item in items:
            same = [each for each in items if each is not item]
            for answer in item["say"]:
                left = texts.place(filled(answer, values(chance)))
                for kind, pool in (("other", others), ("same", same)):
                    pairs.append((left, texts.place(edited(answer, chance)), 1, "copy"))
                    wrong = filled(chance.choice(chance.choice(pool)["say"]), values(chance))
                    pairs.append((left, texts.place(wrong), 0, kind))
    return pairs


def build() -> dict[str, Any]:
    """Return the whole set."""
    subjects = yaml.safe_load((HERE / "embedding_texts.yaml").read_text("utf-8"))
    texts, chance = Texts(), random.Random(SEED)
    topic = topic_pairs(subjects, texts, chance)
    return {"topic": topic, "repeat": repeat_pairs(subjects, texts, chance), "texts": texts.all}


def stored(content: dict[str, Any]) -> str:
    """Return the set with one item per line."""
    parts = []
    for name, rows in content.items():
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    SET.write_text(stored(build()), "utf-8")
