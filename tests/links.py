"""``python -m tests.links FILE...``: every link between the project's documents leads somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def headings(text: str) -> dict[str, str]:
    """The headings of a page by their anchors, which are those that GitHub makes.

    An anchor is the text in lower case without punctuation, blanks turned into dashes; of equal
    ones, the second gets ``-1``, the third ``-2``.
    """
    found: dict[str, str] = {}
    for heading in _HEADING.findall(_CODE.sub("", text)):
        plain = _LINK.sub(lambda link: link[0][1:].partition("](")[0], heading).replace("`", "")
        anchor = re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-")
        number, unique = 0, anchor
        while unique in found:
            number += 1
            unique = f"{anchor}-{number}"
        found[unique] = plain
    return found


def broken(document: Path) -> list[str]:
    """The targets of links in ``document`` that do not exist."""
    text = _CODE.sub("", document.read_text())
    targets = [name for name in _LINK.findall(text) if "://" not in name and "mailto:" not in name]
    return [name for name in targets if not _exists(document, name)]


def _exists(document: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    page = document.parent / name if name else document
    if not page.exists():
        return False
    return not anchor or page.suffix != ".md" or anchor in headings(page.read_text())


def main(words: list[str]) -> int:
    """Check the given documents and folders; returns the exit status."""
    documents: list[Path] = []
    for word in words:
        path = Path(word)
        documents += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    missing = {str(document): broken(document) for document in documents}
    for document, names in missing.items():
        for name in names:
            print(f"{document}: {name} does not exist")
    print(f"{len(documents)} documents, {sum(map(len, missing.values()))} broken links")
    return 1 if any(missing.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
