"""The words of docstrings and pages: phrases that newcomers stumble over do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from twisted.trial.unittest import SynchronousTestCase

_ROOT = Path(__file__).resolve().parents[1]
_SOURCE = _ROOT / "src" / "disque_tx"

#: Where a text is, and the text with single spaces.
Text: TypeAlias = tuple[str, str]

#: Beginnings of a sentence that cannot be understood without the class around it.
ELLIPTIC = re.compile(
    r"(It|Its|Those|These|They|Such|That is|As (the|:meth)|Has|Is|Are|One of the|There (is|are)"
    r"|Nobody|None|Same|So (many|much))\b"
)
ELLIPTIC_MAX = 0
#: Beginnings of a paragraph of a page that say nothing of what it is about.
VAGUE = re.compile(r"(?:[-*] |\d+\. )?(It|Its|Those|These|They|Such|That is)\b")
VAGUE_MAX = 0
#: Phrases → how often they may stand in docstrings, and on pages: as often as today, and when one
#: becomes rarer its number falls. Say rather: is not a; is created; keeps; current; as always; this
#: number of; conflict; another process with the ID; surplus; in progress.
PHRASES = {
    r"\b(?<!there )(?:is|are) no (?!longer)": (0, 1),
    r"\bcomes? to be\b": (0, 0),
    r"\blooks? after\b": (0, 0),
    r"\bof the moment\b": (0, 0),
    r"\bthose that are theirs\b": (0, 0),
    r"\bas ever\b": (0, 0),
    r"\bso (?:many|much)\b": (0, 1),
    r"\bstanding aside\b": (0, 0),
    r"\btwins?\b": (0, 0),
    r"\bnot wanted any more\b": (0, 0),
    r"\bin hand\b": (0, 5),
    r"\bfor ever\b": (0, 3),
}


def docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield " ".join((ast.get_docstring(node) or "").split())


def source_texts() -> list[Text]:
    """All docstrings of the package."""
    return [
        (path.relative_to(_ROOT).as_posix(), text)
        for path in sorted(_SOURCE.rglob("*.py"))
        for text in docstrings(path)
    ]


def page_texts() -> list[Text]:
    """All pages of the documentation, and those at the root."""
    pages = [*sorted((_ROOT / "docs").rglob("*.md")), *sorted(_ROOT.glob("*.md"))]
    return [
        (page.relative_to(_ROOT).as_posix(), " ".join(page.read_text().split())) for page in pages
    ]


def paragraphs(page: str) -> Iterator[str]:
    """The first line of each paragraph and of each item of a list; not of code, nor of tables."""
    for number, part in enumerate(page.split("```")):
        if number % 2 == 0:
            before = ""
            for line in part.splitlines():
                line = line.strip()
                if not before or re.match(r"([-*]|\d+\.) ", line):
                    yield line
                before = line


def vague_texts() -> list[str]:
    """Paragraphs that begin with a word for something that is named elsewhere."""
    pages = [*sorted((_ROOT / "docs").rglob("*.md")), _ROOT / "README.md"]
    return [
        f"{page.relative_to(_ROOT)}: {line}"
        for page in pages
        for line in paragraphs(page.read_text())
        if VAGUE.match(line)
    ]


def found(phrase: str, texts: list[Text]) -> list[str]:
    """Every place with the phrase, with the words around it."""
    return [
        f"{where}: {text[max(0, match.start() - 40) : match.end() + 40]}"
        for where, text in texts
        for match in re.finditer(phrase, text, re.IGNORECASE)
    ]


class WordsTests(SynchronousTestCase):
    """What is written is understood by who reads only that."""

    def test_whole_sentences(self) -> None:
        """``help()`` and editors show a docstring without its class: it names what it is about."""
        elliptic = [f"{where}: {text}" for where, text in source_texts() if ELLIPTIC.match(text)]
        self.assertLessEqual(len(elliptic), ELLIPTIC_MAX, "\n".join(["", *elliptic]))

    def test_paragraphs(self) -> None:
        """Who comes to a page by a link to a section reads its first sentence alone."""
        vague = vague_texts()
        self.assertLessEqual(len(vague), VAGUE_MAX, "\n".join(["", *vague]))

    def test_phrases(self) -> None:
        """A phrase that a newcomer stumbles over is not used once more."""
        sources, pages = source_texts(), page_texts()
        for phrase, (in_sources, in_pages) in PHRASES.items():
            for texts, allowed in ((sources, in_sources), (pages, in_pages)):
                places = found(phrase, texts)
                self.assertLessEqual(len(places), allowed, "\n".join([phrase, *places]))

    def test_finds_them(self) -> None:
        """The rules above detect what they forbid, and leave plain sentences alone."""
        self.assertTrue(ELLIPTIC.match("These are due."))
        self.assertFalse(ELLIPTIC.match("Check the keys that are due."))
        page = "The log.\nIt is long.\n\n```\n\nIt\n```\n\n- It is old.\n- Old.\n\n1. They are."
        vague = [line for line in paragraphs(page) if VAGUE.match(line)]
        self.assertEqual(["- It is old.", "1. They are."], vague)
        phrase = next(iter(PHRASES))
        texts = [("page", "What is no number. There is no such job. It is no longer here.")]
        self.assertEqual(1, len(found(phrase, texts)))
