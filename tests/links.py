"""``python -m tests.links FILE...``: every link between the project's documents leads somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)


def broken(document: Path) -> list[str]:
    """Targets of links in ``document`` that are not there."""
    text = _CODE.sub("", document.read_text())
    targets = [found.split("#")[0] for found in _LINK.findall(text)]
    local = [name for name in targets if name and "://" not in name and "mailto:" not in name]
    return [name for name in local if not (document.parent / name).exists()]


def main(words: list[str]) -> int:
    """Check the documents and folders named; returns the exit status."""
    documents: list[Path] = []
    for word in words:
        path = Path(word)
        documents += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    missing = {str(document): broken(document) for document in documents}
    for document, names in missing.items():
        for name in names:
            print(f"{document}: {name} is not there")
    print(f"{len(documents)} documents, {sum(map(len, missing.values()))} broken links")
    return 1 if any(missing.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
