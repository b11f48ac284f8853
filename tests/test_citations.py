"""The sections of the protocols that the source cites exist in the reference documentation.

A citation names its document, "client protocol, section 14.2"; after a module or a docstring has
done that, "section 14.2" is enough. The names of a document's pages begin with its name,
``docs/reference/protocol/client-*.md``, and a section is a heading that begins with its number.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import attrs
from twisted.trial.unittest import SynchronousTestCase

from tests.links import headings

_ROOT: Final = Path(__file__).resolve().parents[1]
_PAGES: Final = _ROOT / "docs" / "reference" / "protocol"
_DOCUMENTS: Final = ("client", "cluster")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)*")
_NUMBERS: Final = r"\d+(?:\.\d+)*(?:(?:,| and| to|, and) \d+(?:\.\d+)*)*"
_CITATION: Final = re.compile(
    rf"(?:\b(client|cluster) protocol(?:,|'s)? (?:sections? )?|\bsections? )({_NUMBERS})",
    re.IGNORECASE,
)


@attrs.frozen
class Citation:
    """``text``: as written in the source; ``document``: empty if it is unclear."""

    place: str
    text: str
    document: str
    numbers: tuple[str, ...]


def citations(source: str, place: str) -> list[Citation]:
    """All citations in the comments and strings of a module."""
    module = ast.get_docstring(ast.parse(source)) or ""
    known = {found[1].lower() for found in _CITATION.finditer(_joined(module)) if found[1]}
    usual = known.pop() if len(known) == 1 else ""
    result: list[Citation] = []
    for line, text in _texts(source):
        document = usual
        for found in _CITATION.finditer(text):
            document = found[1].lower() if found[1] else document
            numbers = tuple(_NUMBER.findall(found[2]))
            result.append(Citation(f"{place}:{line}", found[0], document, numbers))
    return result


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Strings and blocks of comments, each as one line of text, with their first line number."""
    block: list[str] = []
    begun = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if block and line != last + 1:
                yield begun, " ".join(block)
                block = []
            begun, last = line if not block else begun, line
            block.append(token.string.lstrip("#: "))
        elif token.type == tokenize.STRING:
            yield line, _joined(token.string)
    if block:
        yield begun, " ".join(block)


def _joined(text: str) -> str:
    return " ".join(text.split())


@cache
def all_citations() -> list[Citation]:
    """The citations in the package and its tests."""
    paths = [path for folder in ("src", "tests") for path in sorted((_ROOT / folder).rglob("*.py"))]
    return [
        citation
        for path in paths
        if path != Path(__file__).resolve()
        for citation in citations(path.read_text(), str(path.relative_to(_ROOT)))
    ]


def sections(document: str) -> dict[str, list[str]]:
    """The page and anchor of each section of ``client`` or ``cluster``, by its number."""
    result: dict[str, list[str]] = {}
    for page in sorted(_PAGES.glob(f"{document}-*.md")):
        for anchor, heading in headings(page.read_text()).items():
            number = _NUMBER.match(heading)
            if number is not None:
                result.setdefault(number[0], []).append(f"{page.name}#{anchor}")
    return result


class CitationTests(SynchronousTestCase):
    """Citations in the source, and the sections they refer to."""

    def test_sections_exist(self) -> None:
        """A reader who looks up a citation finds the section."""
        known = {document: sections(document) for document in _DOCUMENTS}
        cited = all_citations()
        self.assertTrue(cited)
        missing = [
            f"{citation.place}: {citation.text}"
            for citation in cited
            if citation.document
            and not all(number in known[citation.document] for number in citation.numbers)
        ]
        self.assertEqual([], missing)

    def test_documents_are_named(self) -> None:
        """A number alone is ambiguous: both documents have a section 9."""
        unclear = [f"{c.place}: {c.text}" for c in all_citations() if not c.document]
        self.assertEqual([], unclear)

    def test_sections_are_unique(self) -> None:
        """A section number occurs only once."""
        for document in _DOCUMENTS:
            places = sections(document)
            self.assertEqual({}, {number: at for number, at in places.items() if len(at) > 1})

    def test_index(self) -> None:
        """The index links to every section of both documents."""
        index = (_PAGES / "index.md").read_text()
        for document in _DOCUMENTS:
            targets = [place for places in sections(document).values() for place in places]
            self.assertEqual([], [target for target in targets if f"({target})" not in index])


class ReadingTests(SynchronousTestCase):
    """How citations are found."""

    def found(self, source: str) -> list[tuple[str, tuple[str, ...]]]:
        """Document and numbers of the citations in a module."""
        return [(c.document, c.numbers) for c in citations(source, "module.py")]

    def test_several_numbers(self) -> None:
        """Each number of a list or range is a citation."""
        source = '"""A module (client protocol, sections 2, 13.7 and 20; cluster protocol, 9)."""'
        self.assertEqual([("client", ("2", "13.7", "20")), ("cluster", ("9",))], self.found(source))

    def test_wrapped(self) -> None:
        """A citation may continue on the next line."""
        source = "#: A number (cluster\n#: protocol, section\n#: 8.4).\nx = 1\n"
        self.assertEqual([("cluster", ("8.4",))], self.found(source))

    def test_number_alone(self) -> None:
        """It belongs to the document named in its own text, or in the module's docstring."""
        source = '"""A module (client protocol, section 3)."""\n# See section 4.\nx = 1\n'
        self.assertEqual([("client", ("3",)), ("client", ("4",))], self.found(source))

    def test_unclear(self) -> None:
        """It belongs to none if the module names no document, or both."""
        self.assertEqual([("", ("4",))], self.found("# See section 4.\n"))
        both = '"""Client protocol, section 3; cluster protocol, section 4."""\n'
        self.assertEqual(("", ("5",)), self.found(both + "# See section 5.\n")[-1])
