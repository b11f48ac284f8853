"""The lists of folders and files in the documentation."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.filelist import FOLDERS_PAGE, ROOT, files, folders, pages, sentence


class PagesTests(SynchronousTestCase):
    """The lists are those of the files that there are."""

    def test_up_to_date(self) -> None:
        """Whoever looks for the place of a change finds every file, and none that is gone."""
        for name, text in pages(ROOT).items():
            self.assertEqual(text, (ROOT / name).read_text(), "Run python -m tests.filelist")

    def test_everything_is_described(self) -> None:
        """No file in the list leaves its reader to guess what it is for."""
        for path in (ROOT / "src").rglob("*.py"):
            self.assertTrue(sentence(path.read_text()), f"{path} has no docstring")

    def test_short(self) -> None:
        """A newcomer reads how the program is built in one sitting."""
        self.assertLessEqual(len((ROOT / FOLDERS_PAGE).read_text().splitlines()), 250)


class ListTests(SynchronousTestCase):
    """What is listed of a small program."""

    def setUp(self) -> None:
        """A package with a package in it, and a module beside it."""
        self.source = Path(self.mktemp())
        for name, text in (
            ("alone.py", "For Spark."),
            ("pack/__init__.py", "All. Of it."),
            ("pack/one.py", "One: what\n:func:`~pack.two.run` needs. More.\n\nMuch more."),
            ("pack/core/__init__.py", "Within."),
            ("pack/core/base/__init__.py", "Deep."),
            ("pack/core/base/deeper/__init__.py", "Not listed."),
            ("pack/cli/__init__.py", "Beside."),
            ("pack/cli/verbs/__init__.py", "Not listed."),
            ("pack/core/two.py", "``Two``."),
        ):
            path = self.source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'"""{text}"""\n')

    def test_folders(self) -> None:
        """A newcomer sees what each folder is for."""
        rows = [" ".join(row.split()) for row in folders(self.source).splitlines()]
        self.assertEqual(["pack/ All.", "cli/ Beside.", "core/ Within.", "base/ Deep."], rows)

    def test_files(self) -> None:
        """Each file has its first sentence, on one line and without roles of Sphinx."""
        text = files(self.source)
        self.assertIn("\n- `one.py`: One: what `pack.two.run` needs.\n", text)
        self.assertIn("\n## `pack/core`\n\nWithin.\n\n- `two.py`: `Two`.\n", text)
        self.assertIn("\n- `alone.py`: For Spark.\n", text)
