"""The manual pages are complete, and use macros correctly."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import click
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from disque_tx.cli.programs import check_aof
from disque_tx.cli.verbs.base.registry import USAGE, VERBS

_PAGES: Final = Path(__file__).resolve().parents[3] / "docs" / "man"
_OPTION: Final = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
_FONT: Final = re.compile(r"\\f[A-Z]")
#: Macros that the pages use.
_MACROS: Final = {"TH", "SH", "SS", "TP", "PP", "RS", "RE", "nf", "fi", "br"}
_FONTS: Final = {"B", "I", "BI", "BR", "IB", "IR", "RB", "RI"}


def text(page: str) -> str:
    """The text of a page without fonts; dashes as they are typed."""
    shown = _FONT.sub("", (_PAGES / page).read_text()).replace("\\-", "-")
    return shown.replace('"', "")


def commands(command: click.Command) -> Iterator[click.Command]:
    """A command and its subcommands."""
    yield command
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from commands(below)


class ManTests(SynchronousTestCase):
    """The pages are compared with the programs."""

    def test_options(self) -> None:
        """Every option of the usage is documented."""
        listed = "\n".join(line for line in USAGE.splitlines() if line.startswith("  -"))
        documented = set(_OPTION.findall(text("disque.1")))
        self.assertEqual(set(), set(_OPTION.findall(listed)) - documented)

    def test_verbs(self) -> None:
        """Every verb, subcommand, and option of these is documented."""
        page = text("disque.1")
        documented = set(_OPTION.findall(page))
        for word, verb in VERBS.items():
            self.assertRegex(page, rf"(?m)^\.B[IR] {word}\b")
            for command in commands(import_module(verb.module).command):
                self.assertRegex(page, rf"\b{command.name}\b")
                for parameter in command.params:
                    if isinstance(parameter, click.Option):
                        self.assertEqual(set(), set(parameter.opts) - documented, command.name)

    def test_check_aof(self) -> None:
        """The other program has a page with its options."""
        wanted = set(_OPTION.findall(check_aof._USAGE)) - {"-check-aof"}
        self.assertEqual(set(), wanted - set(_OPTION.findall(text("disque-check-aof.1"))))

    def test_macros(self) -> None:
        """Pages with a missing title, or an unknown or unbalanced macro, would be displayed
        badly."""
        for path in _PAGES.glob("*.1"):
            lines = path.read_text().splitlines()
            macros = [line[1:].split(" ")[0] for line in lines if line.startswith(".")]
            self.assertEqual(["TH", "SH"], macros[:2], path.name)
            self.assertEqual(set(), set(macros) - _MACROS - _FONTS, path.name)
            for opening, closing in (("RS", "RE"), ("nf", "fi")):
                self.assertEqual(macros.count(opening), macros.count(closing), path.name)
            for line in lines:
                self.assertNotRegex(line, r"(?<![\\\w])-[a-z-]", f"{path.name}: a bare dash")

    def test_groff(self) -> None:
        """If groff is installed, it reports no warnings."""
        if shutil.which("groff") is None:
            raise SkipTest("groff is not installed")
        for path in sorted(_PAGES.glob("*.1")):
            words = ["groff", "-man", "-ww", "-Tascii", str(path)]
            result = subprocess.run(words, capture_output=True, timeout=20, check=True)
            self.assertEqual(b"", result.stderr, path.name)
