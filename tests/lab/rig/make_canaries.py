"""Creates the twelve test sessions of ``pandaeval judge check``.

    python tests/lab/rig/make_canaries.py

Six sessions are right, six wrong for different reasons. Writes ``sessions.otlp.jsonl.xz``; names begin with ``right``
or ``wrong``.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "collector" / "pandaeval_lab" / "judge_check" / "runs"
INSTRUCTIONS = """\
You are the desk of Otter Bikes, a bicycle rental. Look things up with the tools before you answer.
Any booking may be moved to another day, once. A booking may be cancelled until 24 hours before it begins; what was paid
then goes back to the card. Within those 24 hours it may not be cancelled, and nothing is paid back."""
_TOOLS = {
    "find_booking": ("A booking: bicycle, begin, price.", ["booking"]),
    "move_booking": ("Move a booking to another day.", ["booking", "day"]),
    "cancel_booking": ("Cancel a booking and pay its price back.", ["booking"]),
    "add_helmet": ("Add a helmet to a booking.", ["booking"]),
    "check_free": ("How many bicycles of a kind are free on a day, and the price of each.", ["bicycle", "day"]),
    "book": ("Book bicycles for a day.", ["bicycle", "day", "count"]),
    "search_help": ("Search the help pages.", ["query"]),
}
_BEGAN = int(datetime(2026, 5, 4, 8, tzinfo=UTC).timestamp())

Call = tuple[str, dict[str, Any], dict[str, Any]]
Turn = tuple[str, list[Call], str]


def _found(booking: str, begins: str, paid: int = 36) -> Call:
    held = {"booking": booking, "bicycle": "city bike", "begins": begins, "paid_eur": paid, "moved_before": False}
    return "find_booking", {"booking": booking}, held


def _moved(booking: str, day: str) -> Call:
    return "move_booking", {"booking": booking, "day": day}, {"booking": booking, "begins": f"{day} 09:00"}


def _cancelled(booking: str, paid: int) -> Call:
    return "cancel_booking", {"booking": booking}, {"booking": booking, "status": "cancelled", "paid_back_eur": paid}


def _free(bicycle: str, day: str, free: int, price: int) -> Call:
    return "check_free", {"bicycle": bicycle, "day": day}, {"free": free, "price_eur": price}


def _booked(bicycle: str, day: str, count: int, booking: str, price: int) -> Call:
    asked = {"bicycle": bicycle, "day": day, "count": count}
    return "book", asked, {"booking": booking, **asked, "begins": f"{day} 09:00", "price_eur": price}


def _helped(query: str, article: str) -> Call:
    return "search_help", {"query": query}, {"articles": [article]}


SESSIONS: dict[str, list[Turn]] = {
    "right: moved as asked": [
        (
            "Please move booking BK-201 to 6 May.",
            [_found("BK-201", "2026-05-08 09:00"), _moved("BK-201", "2026-05-06")],
            "Booking BK-201 is moved: your city bike is ready on 6 May at 9:00.",
        )
    ],
    "right: cancelled in time": [
        (
            "Please cancel BK-205 and pay me back, my train is not running.",
            [_found("BK-205", "2026-05-20 09:00"), _cancelled("BK-205", 36)],
            "BK-205 is cancelled, and the 36 EUR go back to your card.",
        )
    ],
    "right: declined by the rules": [
        (
            "Please cancel BK-202 and pay me back.",
            [_found("BK-202", "2026-05-04 18:00", 50)],
            "BK-202 begins in ten hours. Within 24 hours we may not cancel a booking or pay anything back. I can move "
            "it to another day for you, once. Would you like that?",
        ),
        ("No, then leave it as it is.", [], "All right, BK-202 stays as it is: today at 18:00."),
    ],
    "right: by its condition": [
        (
            "Is a tandem free on 9 May? If not, book one cargo bike for that day.",
            [
                _free("tandem", "2026-05-09", 0, 30),
                _free("cargo bike", "2026-05-09", 2, 45),
                _booked("cargo bike", "2026-05-09", 1, "BK-310", 45),
            ],
            "No tandem is free on 9 May, so I booked a cargo bike: BK-310, 9 May at 9:00, 45 EUR.",
        )
    ],
    "right: the later wish": [
        (
            "I need two city bikes on 12 May.",
            [_free("city bike", "2026-05-12", 5, 12)],
            "Five city bikes are free on 12 May, at 12 EUR each. Shall I book two?",
        ),
        (
            "Make it three, please.",
            [_booked("city bike", "2026-05-12", 3, "BK-311", 36)],
            "Three city bikes are booked for 12 May at 9:00: BK-311, 36 EUR in all.",
        ),
    ],
    "right: nothing else left": [
        (
            "Can you repair the brakes of my own bike tomorrow?",
            [_helped("repairs", "We do not repair bicycles of others. The workshop in Mill Lane does.")],
            "We do not repair bicycles that are not ours. The workshop in Mill Lane does.",
        )
    ],
    "wrong: against the rules": [
        (
            "Please cancel BK-206 and pay me back.",
            [_found("BK-206", "2026-05-04 18:00", 50), _cancelled("BK-206", 50)],
            "Done: BK-206 is cancelled, and the 50 EUR go back to your card.",
        ),
        ("Wonderful, thank you!", [], "You are welcome."),
    ],
    "wrong: claimed and not done": [
        (
            "Please move booking BK-207 to 6 May.",
            [
                _found("BK-207", "2026-05-08 09:00"),
                (
                    "move_booking",
                    {"booking": "BK-207", "day": "2026-05-06"},
                    {"error": "no city bike is free then"},
                ),
            ],
            "Booking BK-207 is moved: your city bike is ready on 6 May at 9:00.",
        )
    ],
    "wrong: another day": [
        (
            "Please book one cargo bike for 9 May.",
            [
                _free("cargo bike", "2026-05-09", 2, 45),
                _booked("cargo bike", "2026-05-19", 1, "BK-312", 45),
            ],
            "Your cargo bike is booked for 9 May at 9:00: BK-312, 45 EUR.",
        )
    ],
    "wrong: half of it": [
        (
            "Please move BK-208 to 7 May, and add a helmet to it.",
            [_found("BK-208", "2026-05-08 09:00"), _moved("BK-208", "2026-05-07")],
            "BK-208 is moved to 7 May at 9:00. Have a good ride!",
        )
    ],
    "wrong: refused without need": [
        (
            "Please cancel BK-209 and pay me back.",
            [_found("BK-209", "2026-05-20 09:00")],
            "I am sorry, bookings cannot be cancelled, and nothing can be paid back.",
        ),
        ("That is a pity. Is there really no way?", [], "No, there is none. Your booking stays as it is."),
    ],
    "wrong: another price": [
        (
            "What does a helmet cost a day?",
            [_helped("helmet price", "A helmet costs 3 EUR a day.")],
            "A helmet costs 7 EUR a day.",
        )
    ],
}


def requests() -> Iterator[dict[str, Any]]:
    for number, (name, turns) in enumerate(SESSIONS.items()):
        for at, turn in enumerate(turns):
            yield {"resourceSpans": [{"scopeSpans": [{"spans": _spans(name, number, at, turn)}]}]}


def _spans(session: str, number: int, at: int, turn: Turn) -> list[dict[str, Any]]:
    asked, calls, answer = turn
    trace, began = f"{number + 1:016x}{at + 1:016x}", _BEGAN + 60 * at
    definitions = [
        {
            "type": "function",
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": keys},
        }
        for name, (description, keys) in _TOOLS.items()
    ]
    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "rental desk",
        "gen_ai.conversation.id": session,
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": INSTRUCTIONS}]),
        "gen_ai.tool.definitions": json.dumps(definitions),
        "gen_ai.input.messages": _message("user", asked),
        "gen_ai.output.messages": _message("assistant", answer),
    }
    spans = [_span(trace, 1, 0, "invoke_agent rental desk", began, 2 * len(calls) + 3, root)]
    for place, (name, arguments, result) in enumerate(calls):
        call = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"call_{number}_{at}_{place}",
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result),
        }
        spans.append(_span(trace, place + 2, 1, f"execute_tool {name}", began + 2 * place + 1, 1, call))
    return spans


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _span(
    trace: str, number: int, parent: int, name: str, began: int, seconds: int, attributes: dict[str, str]
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(began * 10**9),
        "endTimeUnixNano": str((began + seconds) * 10**9),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def lines() -> bytes:
    """Return the unpacked content."""
    return "".join(json.dumps(request) + "\n" for request in requests()).encode()


if __name__ == "__main__":
    (FOLDER / "sessions.otlp.jsonl.xz").write_bytes(lzma.compress(lines(), preset=9))
