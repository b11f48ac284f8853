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
#: The colour scheme that the user prefers, according to the browser.
_DARK: Final = "--blink-settings=preferredColorScheme=0"
_LIGHT: Final = "--blink-settings=preferredColorScheme=1"
_ROWS_MIN: Final = 300


class BrowserTests(BrowserCase):
    """The golden report of the tests."""

    def screenshot(self, *words: str) -> tuple[tuple[int, ...], int]:
        """The colour of the upper left corner, and the number of different rows of pixels."""
        # The browser requires this suffix.
        file = Path(f"{self.mktemp()}.png").resolve()
        self.browse(_REPORT, f"--screenshot={file}", *words)
        rows = png_rows(file.read_bytes())
        # The first byte of a row is the PNG filter; the corner has no neighbours to differ from.
        return tuple(rows[0][1:4]), len(set(rows))

    def test_headings(self) -> None:
        """Readers find every part of the page, and markup in the name of a queue is shown as
        text."""
        page = self.browse(_REPORT, "--dump-dom")[0].decode()
        for heading in HEADINGS.values():
            self.assertIn(f">{heading}</h2>", page)
        self.assertIn('&lt;script&gt;alert("queue")&lt;/script&gt;', page)
        self.assertNotIn("<script", page)

    def test_no_requests(self) -> None:
        """The page requests nothing from the network, and the browser logs no error."""
        requested, log = self.addresses_requested_by(_REPORT)
        self.assertNotIn("CONSOLE", log)
        self.assertEqual([], requested)

    def test_requests_are_noticed(self) -> None:
        """With another page, the test above would notice both."""
        page = Path(f"{self.mktemp()}.html").resolve()
        page.write_text("<img src='http://a.invalid/b.png'><script>console.error('c')</script>")
        requested, log = self.addresses_requested_by(page)
        self.assertIn("CONSOLE", log)
        self.assertEqual(["http://a.invalid/b.png"], requested)

    def test_colours(self) -> None:
        """The page is light or dark, as the reader prefers, and has visible content in both."""
        light, rows = self.screenshot(_LIGHT, "--window-size=1100,4700")
        self.assertGreater(rows, _ROWS_MIN)
        dark, rows = self.screenshot(_DARK, "--window-size=1100,4700")
        self.assertGreater(rows, _ROWS_MIN)
        self.assertGreater(min(light), 200)
        self.assertLess(max(dark), 60)

    def test_phone(self) -> None:
        """On the narrow screen of a phone, the page has visible content, too."""
        _, rows = self.screenshot(_LIGHT, "--window-size=500,3000")
        self.assertGreater(rows, _ROWS_MIN)


def png_rows(image: bytes) -> list[bytes]:
    """The rows of an image of 8-bit RGB or RGBA, each with its filter byte, as in the file."""
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
