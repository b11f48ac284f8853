"""``python -m tests.filelist``: writes the list of folders in ARCHITECTURE.md and that of files in
docs/explanation/files.md, each with the first sentence of its docstring."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
#: The pages, relative to the root of the project.
FOLDERS_PAGE = "ARCHITECTURE.md"
FILES_PAGE = "docs/explanation/files.md"
#: The list of folders in its page, between a line before it and a line after it.
_FOLDERS = re.compile(
    r"(?<=<!-- folders: python -m tests.filelist -->\n```\n).*?(?=```\n)", re.DOTALL
)
#: The packages of the daemon: their folders are listed, too. For those of other programs, and for
#: folders further down, there is the page of files.
_DAEMON = {"commands", "core", "engine", "protocols", "services", "wire"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ROLE = re.compile(r":\w+:`~?([^`]*)`")

_HEAD = """# Files

Every file of the program, by folder, with the first sentence of its docstring. How the folders
work together: [Architecture](../../ARCHITECTURE.md). `python -m tests.filelist` writes this page.
"""


def sentence(source: str) -> str:
    """The first sentence of a module's docstring, as Markdown; empty if there is none."""
    words = " ".join((ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0].split())
    first = _SENTENCE_END.split(words, maxsplit=1)[0]
    return _ROLE.sub(r"`\1`", first).replace("``", "`")


def packages(source: Path) -> Iterator[Path]:
    """All packages below a folder, each before the packages in it."""
    return iter(sorted(path.parent for path in source.rglob("__init__.py")))


def folders(source: Path) -> str:
    """The list of folders, one line each."""
    rows = []
    for package in packages(source):
        parts = package.relative_to(source).parts
        if len(parts) <= 2 or (len(parts) == 3 and parts[1] in _DAEMON):
            name = "  " * (len(parts) - 1) + f"{parts[-1]}/"
            rows.append(f"{name:19} {sentence((package / '__init__.py').read_text())}\n")
    return "".join(rows)


def files(source: Path) -> str:
    """The page of all files: a section for each package, and one for modules in none."""
    sections = [_HEAD]
    for package in (source, *packages(source)):
        named = package.relative_to(source).as_posix()
        own = package / "__init__.py"
        title = f"`{named}`" if own.exists() else "Modules outside of the package"
        text = f"\n{sentence(own.read_text())}\n" if own.exists() else ""
        rows = [
            f"- `{path.name}`: {sentence(path.read_text())}\n"
            for path in sorted(package.glob("*.py"))
            if path != own
        ]
        if rows or text:
            sections.append(f"\n## {title}\n{text}" + ("\n" + "".join(rows) if rows else ""))
    return "".join(sections)


def pages(root: Path) -> dict[str, str]:
    """The pages as they should be, by name; ``ValueError`` if one has no place for its list."""
    text = (root / FOLDERS_PAGE).read_text()
    found = _FOLDERS.search(text)
    if found is None:
        raise ValueError(f"{FOLDERS_PAGE} has no place for the list of folders")
    listed = text[: found.start()] + folders(root / "src") + text[found.end() :]
    return {FOLDERS_PAGE: listed, FILES_PAGE: files(root / "src")}


def main() -> int:
    """Write the pages; returns the exit status."""
    for name, text in pages(ROOT).items():
        (ROOT / name).write_text(text)
        print(f"Written: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
