"""The report in a real browser."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any, Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from disque_tx.spark.pipeline.report.page import HEADINGS

_REPORT: Final = (
    Path(__file__).parents[2] / "spark" / "pipeline" / "report" / "golden" / "report.html"
)
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
_RUN_S: Final = 90
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
#: What the browser believes that the user prefers.
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_LIGHT: Final = "--blink-settings=preferredColorScheme=1"
_ROWS_MIN: Final = 300
_ITSELF: Final = "not an origin"


class BrowserTests(SynchronousTestCase):
    """Chromium without a window and without a network, on the report of the tests."""

    def browse(self, *words: str, page: Path = _REPORT) -> tuple[bytes, str]:
        """Open a page; returns the output, and what the browser logged."""
        program = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if program is None:
            raise SkipTest("There is no Chromium here, in which the report could be looked at.")
        profile = Path(self.mktemp()).resolve()
        result = subprocess.run(
            [program, *_OPTIONS, f"--user-data-dir={profile}", *words, page.as_uri()],
            capture_output=True,
            timeout=_RUN_S,
            check=True,
        )
        return result.stdout, result.stderr.decode(errors="replace")

    def asked_by(self, page: Path) -> tuple[list[str], str]:
        """The addresses that a page asked for, and what the browser logged."""
        network = Path(self.mktemp()).resolve()
        _, log = self.browse("--dump-dom", f"--log-net-log={network}", page=page)
        return requests(json.loads(network.read_text())), log

    def screenshot(self, *words: str) -> tuple[tuple[int, ...], int]:
        """The colour of the upper left corner, and how many different rows of pixels there are."""
        # The browser takes no other name.
        file = Path(f"{self.mktemp()}.png").resolve()
        self.browse(f"--screenshot={file}", *words)
        rows = png_rows(file.read_bytes())
        # The first byte of a row says what the others differ from: at the corner, from nothing.
        return tuple(rows[0][1:4]), len(set(rows))

    def test_headings(self) -> None:
        """Every part of the page is there for readers, and the hostile queue is a text."""
        page = self.browse("--dump-dom")[0].decode()
        for heading in HEADINGS.values():
            self.assertIn(f">{heading}</h2>", page)
        self.assertIn('&lt;script&gt;alert("queue")&lt;/script&gt;', page)
        self.assertNotIn("<script", page)

    def test_quiet(self) -> None:
        """The page asks nobody for anything, and the browser has nothing to complain about."""
        asked, log = self.asked_by(_REPORT)
        self.assertNotIn("CONSOLE", log)
        self.assertEqual([], asked)

    def test_not_quiet(self) -> None:
        """Of another page the test above would notice both."""
        page = Path(f"{self.mktemp()}.html").resolve()
        page.write_text("<img src='http://a.invalid/b.png'><script>console.error('c')</script>")
        asked, log = self.asked_by(page)
        self.assertIn("CONSOLE", log)
        self.assertEqual(["http://a.invalid/b.png"], asked)

    def test_colours(self) -> None:
        """Light or dark, as the reader prefers it, and something is to be seen in both."""
        light, rows = self.screenshot(_LIGHT, "--window-size=1100,4700")
        self.assertGreater(rows, _ROWS_MIN)
        dark, rows = self.screenshot(_DARK, "--window-size=1100,4700")
        self.assertGreater(rows, _ROWS_MIN)
        self.assertGreater(min(light), 200)
        self.assertLess(max(dark), 60)

    def test_phone(self) -> None:
        """On the narrow screen of a phone, there is something to be seen, too."""
        _, rows = self.screenshot(_LIGHT, "--window-size=500,3000")
        self.assertGreater(rows, _ROWS_MIN)


def png_rows(image: bytes) -> list[bytes]:
    """The rows of an image of 8-bit RGB or RGBA, each with its filter, as the format has them."""
    at, packed = 8, b""
    width = height = colours = 0
    while at < len(image):
        size, kind = struct.unpack_from(">I4s", image, at)
        if kind == b"IHDR":
            width, height, _, colours = struct.unpack_from(">IIBB", image, at + 8)
        elif kind == b"IDAT":
            packed += image[at + 8 : at + 8 + size]
        at += size + 12
    length = 1 + width * {2: 3, 6: 4}[colours]
    data = zlib.decompress(packed)
    return [data[row * length : (row + 1) * length] for row in range(height)]


def requests(log: dict[str, Any]) -> list[str]:
    """The addresses that pages asked for, out of a browser's network log. It asks for some by
    itself, and tells them apart."""
    started = log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in log["events"] if event["type"] == started]
    by_pages = (each for each in found if each.get("initiator", _ITSELF) != _ITSELF)
    return sorted({each["url"] for each in by_pages})
