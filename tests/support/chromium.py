"""Headless Chromium over the DevTools pipe.

Uses ``$CHROMIUM`` or the path; tests skip without it. Debian: ``apt-get install chromium``.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

_PATIENCE_S = 60.0
_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests often run as root in a container, where its sandbox cannot start
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    """Return the program, or ``None``."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


class Page:
    """A browser tab as a context manager. ``requests``: requested addresses; ``complaints``: console errors."""

    def __init__(self, program: str, folder: Path, width: int = 1280, height: int = 900) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number, self._unread = 0, b""
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def place() -> None:  # copy first: descriptors 3 and 4 may already be these pipes
            copies = fcntl.fcntl(to_read, fcntl.F_DUPFD, 20), fcntl.fcntl(to_write, fcntl.F_DUPFD, 20)
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        flags = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*flags, "about:blank"], preexec_fn=place, close_fds=False, stdout=log, stderr=log
            )
        os.close(to_read)
        os.close(to_write)
        self._session = ""
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._write)  # Chromium ends when its pipe is closed
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def open(self, file: Path, address: str = "#/") -> None:
        self._call("Page.navigate", url="about:blank")  # otherwise the same file would not load again
        self._call("Page.navigate", url=f"{file.absolute().as_uri()}{address}")
        self.wait("document.documentElement?.dataset.ready === ''")

    def visit(self, address: str) -> None:
        """Open a collector's live page and wait for it."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === ''")

    def browse(self, address: str, until: str) -> None:
        """Open another page and wait until an expression is true."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        self.wait(until)

    def go(self, address: str) -> None:
        """Open another page of the report."""
        self.run(f"location.hash = {json.dumps(address)}")
        self.wait(f"document.documentElement?.dataset.page === {json.dumps(address)}")

    def run(self, script: str) -> Any:
        """Return the value of an expression, after awaiting promises."""
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self.run(script):
            if time.monotonic() > deadline:
                raise AssertionError(f"never came true: {script}; {self.complaints}")
            time.sleep(0.02)

    def text(self, selector: str = "main") -> str:
        """Return the visible text of the first match."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)")
        return list(found)

    def count(self, selector: str) -> int:
        return int(self.run(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, *keys: str) -> None:
        """Press real keys, such as ``Tab`` or ``Enter``."""
        for key in keys:
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            arrows = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
            code = {"Enter": 13, "Tab": 9, "Escape": 27, "End": 35, "Home": 36, **arrows}.get(key, 0)
            shared = {"key": key, "windowsVirtualKeyCode": code}
            self._call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
            self._call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def drag(self, selector: str, start: float, end: float) -> None:
        """Drag across an element, between two shares of its width."""
        box = self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); "
            "return [box.x, box.y + box.height / 2, box.width]; })()"
        )
        for kind, share in (
            ("mouseMoved", start),
            ("mousePressed", start),
            ("mouseMoved", end),
            ("mouseReleased", end),
        ):
            event = {"x": box[0] + box[2] * share, "y": box[1], "button": "left", "clickCount": 1, "buttons": 1}
            self._call("Input.dispatchMouseEvent", type=kind, **event)

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def dark(self, on: bool = True) -> None:
        value = "dark" if on else "light"
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def picture(self, file: Path) -> None:
        """Save a screenshot as PNG or WebP."""
        how = {"format": "webp", "quality": 70} if file.suffix == ".webp" else {"format": "png"}
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", **how)["data"]))

    def print(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._call("Page.printToPDF")["data"]))

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._next(lambda each: each.get("id") == number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            while b"\0" not in self._unread:
                ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
                data = os.read(self._read, 1 << 20) if ready else b""
                if not data:
                    raise AssertionError("chromium does not answer")
                self._unread += data
            one, _, self._unread = self._unread.partition(b"\0")
            message = json.loads(one)
            self._note(message)
            if wanted(message):
                return dict(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.complaints.append(str(params["args"]))
