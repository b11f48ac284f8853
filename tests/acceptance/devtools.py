"""A real browser without a window, driven by the DevTools protocol over two pipes."""

from __future__ import annotations

import atexit
import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SkipTest

from tests.acceptance.browser import BROWSERS, OPTIONS

#: For a busy machine.
_WAIT_S: Final = 120.0
#: Of pictures, in percent: letters stay sharp.
_QUALITY: Final = 80
_KEYS: Final = {
    "Enter": ("Enter", 13, "\r"), "Tab": ("Tab", 9, ""), "Escape": ("Escape", 27, ""),
    " ": ("Space", 32, " "), "ArrowDown": ("ArrowDown", 40, ""), "ArrowUp": ("ArrowUp", 38, ""),
}  # fmt: skip


class PageError(Exception):
    """A program in the page failed."""


def _pipe() -> tuple[int, int]:
    """Two ends of a pipe, above the descriptors that the browser uses."""
    ends = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return read, write


class Chromium:
    """The process of a browser, whose pages know nothing of each other. ``folder``: of its profile,
    beside which its log lies."""

    def __init__(self, folder: Path) -> None:
        program = next(filter(None, map(shutil.which, BROWSERS)), None)
        if program is None:
            raise SkipTest("Chromium is not installed; this test clicks through pages in it.")
        words = [program, *OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        to_read, self._output = _pipe()
        self._input, to_write = _pipe()
        log = os.open(folder.with_suffix(".log"), os.O_CREAT | os.O_WRONLY)
        # Chromium reads commands from descriptor 3 and writes to 4.
        places = ((log, 1), (log, 2), (to_read, 3), (to_write, 4))
        self._pid = os.posix_spawn(
            program,
            [*words, "about:blank"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, here, there) for here, there in places],
        )
        for number in (to_read, to_write, log):
            os.close(number)
        self._number = 0
        self._unread = b""
        self.events: dict[str, Callable[[str, dict[str, Any]], None]] = {}

    def close(self) -> None:
        """End the browser."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._input)
        os.close(self._output)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Run a method, of a page if a ``session`` is given, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            data = os.read(self._input, 1 << 20)
            if not data:
                raise ConnectionError("The browser has ended.")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        page = self.events.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page(message["method"], message.get("params", {}))
        return message


@cache
def shared_chromium() -> Chromium:
    """The browser of all tests of this process: to start one takes longer than many tests."""
    folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    chromium = Chromium(Path(folder.name, "profile"))
    atexit.register(chromium.close)
    return chromium


class Browser:
    """One page, without cookies, as if in a browser of its own. ``log``: texts and errors of its
    console. ``requested``: addresses that it asked for. ``loaded_bytes``: what came, headers
    included."""

    def __init__(self) -> None:
        self._chromium = shared_chromium()
        self.log: list[str] = []
        self.requested: list[str] = []
        self.loaded_bytes = 0
        call = self._chromium.call
        self._context = call("Target.createBrowserContext")["browserContextId"]
        page = call("Target.createTarget", url="about:blank", browserContextId=self._context)
        attached = call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self._chromium.events[self._session] = self._note
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Beside other pages this one has the focus as well.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self) -> None:
        """Close the page, and forget what it stored."""
        del self._chromium.events[self._session]
        self._chromium.call("Target.disposeBrowserContext", browserContextId=self._context)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a method of the page and return its result."""
        return self._chromium.call(method, self._session, **parameters)

    def _note(self, method: str | None, values: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            text = details.get("exception", {}).get("description", details["text"])
            self.log.append(f"exception: {text}")
        elif method == "Log.entryAdded":
            entry = values["entry"]
            self.log.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requested.append(values["request"]["url"])
        elif method == "Network.loadingFinished":
            self.loaded_bytes += int(values["encodedDataLength"])

    # -- looking -----------------------------------------------------------------------------

    def run(self, program: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=program, awaitPromise=True, returnByValue=True,
            allowUnsafeEvalBlockedByCSP=False,
        )  # fmt: skip
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def wait(self, program: str, what: str = "") -> Any:
        """Wait until an expression has a true value, and return it."""
        return self.until(lambda: self._now(program), what or program)

    def _now(self, program: str) -> Any:
        """The value of an expression, ``None`` while there is no page: it is being loaded."""
        try:
            return self.run(program)
        except PageError:
            return None

    def text(self) -> str:
        """What a reader sees."""
        return str(self.run("document.body.innerText"))

    def wait_for_text(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.wait(f"document.body.innerText.includes({json.dumps(text)})", text)

    # -- acting ------------------------------------------------------------------------------

    def open(self, url: str) -> None:
        """Load a page."""
        error = self.call("Page.navigate", url=url).get("errorText")
        if error:
            raise PageError(f"{url}: {error}")
        self.wait(f"location.href.startsWith({json.dumps(url)}) && document.readyState=='complete'")

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        """The size of the window, in pixels of the page."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=phone,
        )  # fmt: skip

    def click(self, label: str, *, within: str = "body") -> None:
        """Click a button, link or tab by its name, as soon as it is there and stays where it is."""
        self.click_at(f"({_FIND})({json.dumps(label)}, {json.dumps(within)})", label)

    def click_at(self, program: str, what: str) -> None:
        """Click the element that an expression finds; again, as a person would, if the page moved
        it away from the mouse meanwhile."""
        self.until(lambda: self._clicked(program, what), f"{what} is clicked")

    def _clicked(self, program: str, what: str) -> bool:
        """Click once; whether that arrived at the element."""
        before: Any = None

        def place() -> Any:
            return self.wait(
                f"(() => {{const e = {program}; if (!e || e.disabled) return null;"
                " e.scrollIntoView({block: 'center', behavior: 'instant'});"
                " const r = e.getBoundingClientRect(); if (!r.width) return null;"
                " const [x, y] = [r.x + r.width / 2, r.y + r.height / 2];"
                " const top = document.elementFromPoint(x, y);"
                " if (!top || !e.contains(top)) return null;"
                " window.arrived = false; const note = () => { window.arrived = true; };"
                " e.addEventListener('click', note, {capture: true, once: true});"
                " return [x, y];})()",
                f"{what} can be clicked",
            )

        while (now := place()) != before:
            before = now
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = kind != "mouseMoved"
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=now[0], y=now[1],
                button="left" if pressed else "none", clickCount=int(pressed),
            )  # fmt: skip
        # Another document, which the click led to, knows nothing of it.
        return self._now("window.arrived") is not False

    def type(self, text: str) -> None:
        """Type into the element with the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False, ctrl: bool = False) -> None:
        """Press a key."""
        code, number, text = _KEYS.get(key, ("", ord(key[0].upper()), key))
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code,
                text="" if ctrl else text, windowsVirtualKeyCode=number,
                modifiers=(8 if shift else 0) + (2 if ctrl else 0),
            )  # fmt: skip

    def picture(self, *, whole: bool = False) -> bytes:
        """A picture of the window, or of the whole page, as WebP."""
        words: dict[str, Any] = {"format": "webp", "quality": _QUALITY}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            words |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        return base64.b64decode(self.call("Page.captureScreenshot", **words)["data"])

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition outside of the page holds."""
        deadline = time.monotonic() + _WAIT_S
        while not (value := condition()):
            if time.monotonic() > deadline:
                raise AssertionError(f"Not in time: {what}\n{self.log}\n{self.text()}")
            time.sleep(0.02)
        return value


#: Finds what is visible and has exactly this name, in a dialog if one is open.
_FIND: Final = """(label, within) => {
  const root = document.querySelector('dialog[open]') ?? document.querySelector(within);
  const all = [...(root?.querySelectorAll('button, a, input, select') ?? [])];
  const names = (e) => [e.ariaLabel, e.textContent.trim(), e.labels?.[0]?.textContent.trim()];
  return all.find((e) => e.checkVisibility() && names(e).includes(label));
}"""
