"""The report in a real browser."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

from disque_tx.spark.pipeline.report.page import HEADINGS
from tests.acceptance.browser import BrowserCase

_REPORT: Final = (
    Path(__file__).parents[2] / "spark" / "pipeline" / "report" / "golden" / "report.html"
)
#: What the browser believes that the user prefers.
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_LIGHT: Final = "--blink-settings=preferredColorScheme=1"
_ROWS_MIN: Final = 300


class BrowserTests(BrowserCase):
    """The report of the tests."""

    def screenshot(self, *words: str) -> tuple[tuple[int, ...], int]:
        """The colour of the upper left corner, and how many different rows of pixels there are."""
        # The browser takes no other name.
        file = Path(f"{self.mktemp()}.png").resolve()
        self.browse(_REPORT, f"--screenshot={file}", *words)
        rows = png_rows(file.read_bytes())
        # The first byte of a row says what the others differ from: at the corner, from nothing.
        return tuple(rows[0][1:4]), len(set(rows))

    def test_headings(self) -> None:
        """Every part of the page is there for readers, and the hostile queue is a text."""
        page = self.browse(_REPORT, "--dump-dom")[0].decode()
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
