"""Pages that stand still: one HTML text that loads nothing and runs nothing. Their content security policy allows no
script at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib.resources import files

from pandaeval_collector.base.untrusted.printable import clean


def still_page(title: str, body: Iterable[str]) -> str:
    """The page of some HTML."""
    style = files(__package__).joinpath("assets", "common", "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{safe(title)}</title>\n'
        f"<style>{style}</style></head>\n<body><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    top = "".join(f"<th>{safe(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(_cells(row))}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def safe(text: str) -> str:
    """Other people's text as HTML."""
    return escape(clean(text))


def _cells(row: Iterable[str]) -> Iterable[str]:
    """An interval, and ``2 of 3``, stay on one line; the name that a row begins with may be of many words."""
    for at, cell in enumerate(row):
        text = safe(cell)
        yield f"<td>{text.replace(' to ', '&nbsp;to&nbsp;').replace(' of ', '&nbsp;of&nbsp;') if at else text}</td>"
