"""The package's metadata covers all its parts."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

_ROOT = Path(__file__).resolve().parents[1]


class SetupTests(SynchronousTestCase):
    """setup.cfg compared with the folders."""

    def setUp(self) -> None:
        self.setup = ConfigParser()
        self.setup.read(_ROOT / "setup.cfg")

    def words(self, section: str, key: str) -> list[str]:
        return self.setup[section][key].split()

    def test_packages(self) -> None:
        """Packages are found by their ``__init__.py``: a folder of modules without one would be
        missing, but only from an installed package."""
        source = _ROOT / "src"
        folders = {path.parent for path in (source / "disque_tx").rglob("*.py")}
        packages = {path.parent for path in source.rglob("__init__.py")}
        self.assertEqual(packages, folders)
        modules = sorted(path.stem for path in source.glob("*.py"))
        self.assertEqual(modules, sorted(self.words("options", "py_modules")))

    def test_dev_is_everything(self) -> None:
        """``pip install -e .[dev]`` installs everything that the targets of make need, except the
        fuzzer, which has no wheels for the newest Pythons."""
        (everything,) = [
            line for line in self.words("options.extras_require", "dev") if "disque-tx" in line
        ]
        named = set(everything.removeprefix("disque-tx[").removesuffix("]").split(","))
        extras = set(self.setup["options.extras_require"])
        self.assertEqual(extras - {"dev", "fuzz"}, named)


class ToxTests(SynchronousTestCase):
    """tox.ini compared with the folders."""

    def test_same_unit_tests(self) -> None:
        """On other Python versions tox runs the same tests as ``make unit``."""
        tox = ConfigParser(interpolation=None)
        tox.read(_ROOT / "tox.ini")
        tests = _ROOT / "tests"
        packages = {f"tests.{path.parent.name}" for path in tests.glob("*/__init__.py")}
        packages -= {"tests.acceptance", "tests.fuzz", "tests.mutants", "tests.spark"}
        modules = {f"tests.{path.stem}" for path in tests.glob("test_*.py")}
        self.assertEqual(sorted(packages | modules), sorted(tox["unit"]["tests"].split()))


class WheelTests(SynchronousTestCase):
    """The wheels of a release."""

    def setUp(self) -> None:
        """Read what the release builds."""
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
        self.built = project["tool"]["cibuildwheel"]
        self.workflow = (_ROOT / ".github/workflows/release.yml").read_text()

    def test_every_python(self) -> None:
        """Nobody with a supported Python has to compile."""
        setup = (_ROOT / "setup.cfg").read_text()
        versions = re.findall(r"Programming Language :: Python :: 3\.(\d+)", setup)
        self.assertEqual([f"cp3{minor}-manylinux_*" for minor in versions], self.built["build"])
        self.assertEqual("1", self.built["environment"]["DISQUE_TX_COMPILE"])

    def test_tried(self) -> None:
        """A wheel that cannot start a node is not published."""
        self.assertIn("python -m disque_tx.cli.programs.demo", self.built["test-command"])

    def test_trusted(self) -> None:
        """Only an approved job may publish, and there is no password that could be stolen."""
        before, _, publish = self.workflow.partition("  publish:\n")
        self.assertNotIn("id-token: write", before)
        for line in ("environment: release", "id-token: write", "needs: [sdist, wheels]"):
            self.assertIn(line, publish)
        self.assertNotIn("secrets.", self.workflow)


class GateTests(SynchronousTestCase):
    """The gates of the Makefile."""

    def setUp(self) -> None:
        """Read the Makefile."""
        self.text = (_ROOT / "Makefile").read_text()

    def gate(self, number: int) -> list[str]:
        """The stages of a gate that run side by side."""
        (line,) = re.findall(rf"^GATE_{number} = (.*)$", self.text, re.MULTILINE)
        return re.sub(r"\$\(if \$\(filter[^)]*\)\)?,([^)]*)\)", r"\1", line).split()

    def test_every_stage(self) -> None:
        """A stage in the list for contributors is a stage of its gate, so that nothing is left
        untested."""
        head = self.text.partition("\n\n")[0]
        _, first, second = re.split(r"# Stages of the \w+ gate", head.partition("# To measure")[0])
        listed = [re.findall(r"#   make ([\w-]+)", part) for part in (first, second)]
        self.assertEqual(sorted(self.gate(1)), sorted(listed[0]))
        self.assertEqual(sorted(self.gate(2)), sorted(listed[1]))

    def test_every_acceptance_test(self) -> None:
        """Tests in a new folder are not forgotten."""
        for path in (_ROOT / "tests/acceptance").glob("*/__init__.py"):
            self.assertRegex(self.text, rf"tests\.acceptance\.{path.parent.name}\b")
