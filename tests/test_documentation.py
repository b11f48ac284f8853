"""The reference documentation agrees with the code."""

from __future__ import annotations

import ast
import re
from itertools import chain
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.syntax import ENTRIES
from disque_tx.cli.verbs.base.registry import USAGE
from disque_tx.commands.table import standard_registry
from disque_tx.config.directives import DIRECTIVES, GET_BY_NAME, GET_ORDER, Directive
from disque_tx.config.settings import DEFAULTS

_ROOT: Final = Path(__file__).resolve().parents[1]
_REFERENCE: Final = _ROOT / "docs" / "reference"
_PYTHON: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)
_GUIDE: Final = re.compile(r"^- \[[^\]]*\]\(how-to/([^)]*)\)", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


def table(page: str, heading: str) -> list[list[str]]:
    """The rows, without markup, of the table whose first column has this heading."""
    lines = (_REFERENCE / page).read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip().strip("`") for cell in line.strip("|").split(" | ")])
    return rows


def _introduction(chapter: str) -> str:
    """The syntax at the beginning of a chapter on a command; of subcommands with long texts, each
    has one in a list."""
    first, _, rest = chapter.partition("\n\n")
    found = [first] if first.startswith("`") else []
    items = re.findall(r"^- (`[^:]*):", rest, re.MULTILINE)
    return "\n".join(found or items)


def shown_default(directive: Directive) -> str:
    """A directive's default in the form of the page."""
    if directive.name == "dir":
        return "start directory"
    line = directive.line(DEFAULTS)
    text = line.decode().strip('"') if line else ""
    return text or "none"


def listed(directive: Directive) -> str:
    """How CONFIG GET lists a directive, in the form of the page."""
    if directive.name in GET_BY_NAME:
        return "by name"
    return "yes" if directive.name in GET_ORDER else "no"


class ReferenceTests(SynchronousTestCase):
    """Tables in the reference compared with tables in the code."""

    def test_configuration(self) -> None:
        """Operators look up defaults, and what can be changed while a node runs."""
        expected = [
            [
                directive.name,
                shown_default(directive),
                "yes" if directive.in_file else "no",
                listed(directive),
                "yes" if directive.settable else "no",
            ]
            for directive in DIRECTIVES.values()
        ]
        rows = table("configuration.md", "Directive")
        self.assertEqual(expected, [[row[0], *row[2:6]] for row in rows])

    def test_command_table(self) -> None:
        """Names, arities and flags are those of COMMAND."""
        expected = [
            [command.name.decode(), str(command.arity), " ".join(command.flags)]
            for command in standard_registry().table
        ]
        self.assertEqual(expected, table("commands.md", "Command"))

    def test_syntax(self) -> None:
        """Every command is described, with the syntax from the client's help, and no other."""
        chapters = (_REFERENCE / "commands.md").read_text().split("\n### ")[1:]
        described = {
            syntax.replace("\n", " ")
            for heading, _, text in (chapter.partition("\n\n") for chapter in chapters)
            if heading.isupper()
            for syntax in re.findall(rf"`({heading}(?: [^`]*)?)`", _introduction(text))
        }
        self.assertEqual({entry.syntax for entry in ENTRIES}, described)

    def test_options(self) -> None:
        """All options of the client are described, and no others."""
        rows = table("tools.md", "Option")
        documented = {option for row in rows for option in _OPTION.findall(row[0])}
        in_usage = {
            option
            for line in USAGE.splitlines()
            if line.startswith("  -")
            for option in _OPTION.findall(re.split(r"\s{2,}", line.strip())[0])
        }
        self.assertEqual(in_usage, documented)


class ConsoleTests(SynchronousTestCase):
    """What is claimed of the console."""

    def test_shown(self) -> None:
        """Whoever compares consoles may run the test that shows a row: it exists, and each row
        that this console has names one."""
        lines = (_ROOT / "docs/explanation/console-beside-others.md").read_text().splitlines()
        rows = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
        named = 0
        for feature, *others, test in ([cell.strip() for cell in row] for row in rows):
            if test == "Shown by":
                continue
            if others and others[0] == "no":
                self.assertEqual("", test, feature)
                continue
            self.assertIn(test.strip("`"), _tests_of(test.strip("`")), feature)
            named += 1
        self.assertGreater(named, 30)


def _tests_of(name: str) -> set[str]:
    """The names of all tests in the module of this one."""
    module = name.rsplit(".", 2)[0]
    tree = ast.parse((_ROOT / "tests" / f"{module.replace('.', '/')}.py").read_text())
    return {
        f"{module}.{case.name}.{test.name}"
        for case in tree.body
        if isinstance(case, ast.ClassDef)
        for test in case.body
        if isinstance(test, ast.FunctionDef)
    }


class HowToTests(SynchronousTestCase):
    """The groups of how-to guides in the index."""

    def test_every_guide_in_one_group(self) -> None:
        """A reader with a goal finds its guide among a few, not among all."""
        text = (_ROOT / "docs/index.md").read_text()
        chapter = text.partition("## How-to guides\n")[2].partition("\n## ")[0]
        groups = [_GUIDE.findall(group) for group in chapter.split("\n### ")[1:]]
        self.assertEqual(8, len(groups))
        guides = [page.name for page in (_ROOT / "docs/how-to").glob("*.md")]
        self.assertEqual(sorted(guides), sorted(chain(*groups)))
        self.assertLessEqual(max(map(len, groups)), 10)


class MakefileTests(SynchronousTestCase):
    """The output of ``make help``: the comment at the head of the Makefile."""

    def test_every_target_once(self) -> None:
        """Contributors find every target in the list, and every listed target exists."""
        lines = (_ROOT / "Makefile").read_text().splitlines()
        head = lines[: lines.index("")]
        listed = [found[1] for line in head if (found := re.match(r"#   make ([\w-]+)", line))]
        phony = [name for line in lines if line.startswith(".PHONY:") for name in line.split()[1:]]
        # Two lines: all tests, and some of them.
        self.assertEqual(2, listed.count("test"))
        listed.remove("test")
        self.assertEqual(sorted(set(phony) - {"help"}), sorted(listed))


class ExampleTests(SynchronousTestCase):
    """The programs in the documentation."""

    def test_python(self) -> None:
        """Readers copy them, so they must at least be valid Python."""
        pages = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
        programs = [(page, text) for page in pages for text in _PYTHON.findall(page.read_text())]
        self.assertTrue(programs)
        for page, text in programs:
            # Some are the body of a coroutine.
            compile(text, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
