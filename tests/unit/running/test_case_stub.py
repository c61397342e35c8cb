"""The ``cases stub`` endpoint rejects hostile requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pandaeval_lab.cli._case_mocks import _MOST_BYTES, stub_app

JSON = {"content-type": "application/json"}
SUITE = """
cases:
- id: shop
  inputs: {task: Pay}
  mocks: {pay: {function: "ran:pay"}}
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Return a client of an endpoint whose mock writes a file."""
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "ran.py").write_text("def pay(**given):\n    open('ran', 'w').close()\n    return sorted(given)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with TestClient(stub_app(tmp_path / "suite.yaml", "shop"), base_url="http://127.0.0.1:4330") as found:
        yield found


@pytest.mark.parametrize("host", ["127.0.0.1:4330", "localhost", "[::1]:4330", "host.docker.internal:4330"])
def test_programs_on_this_machine_are_answered(client: TestClient, host: str) -> None:
    answer = client.post("/pay", content=b'{"order": 17}', headers={**JSON, "host": host})
    assert (answer.status_code, answer.json()) == (200, ["order"])
    assert Path("ran").exists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON, "origin": "http://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "sec-fetch-site": "cross-site"}, 403),
        ({**JSON, "host": "evil.example"}, 421),
        ({**JSON, "host": "evil.example:4330", "origin": "http://evil.example:4330"}, 421),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_requests_that_a_web_page_can_send_are_refused(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/pay", content=b'{"order": 17}', headers=headers)
    assert answer.status_code == status, answer.text
    assert "allowed_hosts" not in answer.text, "the command has no such setting"
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 200_000, 400),
        (b'{"a":' * 900 + b"1" + b"}" * 900, 400),
        (b'{"a": "\\ud800"}', 400),
        (b'{"a": ' + b"1" * 10_000 + b"}", 400),
        (b"\xff\xfe", 400),
        (b"", 400),
        (b'{"a": "' + b"x" * _MOST_BYTES + b'"}', 413),
    ],
)
@pytest.mark.parametrize("is_declared", [True, False])
def test_hostile_bodies_are_refused(client: TestClient, body: bytes, status: int, is_declared: bool) -> None:
    def pieces() -> Iterable[bytes]:
        yield from (body[at : at + 65_536] for at in range(0, len(body), 65_536))

    answer = client.post("/pay", content=body if is_declared else pieces(), headers=JSON)
    assert answer.status_code == status, answer.text
    assert not Path("ran").exists()
