"""The check of the links between documents."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.links import broken, headings


class LinksTests(SynchronousTestCase):
    """Which links count as broken."""

    def setUp(self) -> None:
        """A folder with a document to link to."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir(parents=True)
        (self.folder / "other.md").write_text("# Other\n\n## 14.2 The `log`, again\n")

    def broken(self, text: str) -> list[str]:
        """The broken links in a document with this text."""
        page = self.folder / "page.md"
        page.write_text(text)
        return broken(page)

    def test_files(self) -> None:
        """A link to a file leads to it."""
        links = "[there](other.md) [gone](gone.md) [web](https://example.org/gone)\n"
        self.assertEqual(["gone.md"], self.broken(links))

    def test_anchors(self) -> None:
        """A link to a section leads to a heading, in this document or another one."""
        links = "[a](other.md#142-the-log-again) [b](#here) [c](other.md#143) [d](#there)\n"
        self.assertEqual(["other.md#143", "#there"], self.broken("# Here\n" + links))

    def test_equal_headings(self) -> None:
        """Equal headings get different anchors; code contains no headings."""
        text = "## [One](x.md)\n## One\n```\n# Comment\n```\n"
        self.assertEqual({"one": "One", "one-1": "One"}, headings(text))
