"""``disque-check-aof`` on files that the original was shown too."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from subprocess import CompletedProcess

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs import check_aof
from disque_tx.engine.ownership import claim
from disque_tx.services.host.files import RealFiles
from tests.cli.program import run

VECTORS = Path(__file__).parents[2] / "vectors" / "aof"
NODE0 = (VECTORS / "node0.aof").read_bytes()
TORN = 3693
OK_UP_TO = 3640
#: What the original prints here is memory behind the end of the file, or stops at a NUL.
RANDOM = ("cut_after_star", "cut_after_star2", "cut_after_dollar", "trailing_nuls")


def edited(edit: dict[str, str | int]) -> bytes:
    """node0.aof with the edit of a case applied."""
    data = NODE0[: int(edit.get("truncate_to", len(NODE0)))]
    data += bytes.fromhex(str(edit.get("append_hex", "")))
    at = int(edit.get("insert_at", 0))
    return data[:at] + bytes.fromhex(str(edit.get("insert_hex", ""))) + data[at:]


_USAGE = "Usage: disque-check-aof [--fix [--force]] <file.aof> | --version"


class CheckAofTests(SynchronousTestCase):
    """The program."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.file = self.directory / "x.aof"

    def check(self, data: bytes, *argv: str, answer: bytes = b"") -> CompletedProcess[bytes]:
        """Run the program in the directory of a file that holds ``data``."""
        self.file.write_bytes(data)
        module = "disque_tx.cli.programs.check_aof"
        return run(module, *argv, "x.aof", stdin=answer, cwd=str(self.directory))

    def names(self) -> list[str]:
        """The files in the directory."""
        return sorted(os.listdir(self.directory))

    def test_like_the_original(self) -> None:
        """Framing is judged in the words, and with the status, of the original."""
        path = str(self.file)
        for case in json.loads((VECTORS / "aof-cases.json").read_text())["cases"]:
            if case["name"] in (*RANDOM, "corrupt_loadjob"):
                continue
            self.file.write_bytes(edited(case["edit"]))
            printed, noted = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(noted):
                status = check_aof.main([path])
            expected = case["check_aof"]
            self.assertEqual(expected["stdout"], printed.getvalue().replace(path, "x.aof"))
            self.assertEqual((case["name"], expected["exit_code"]), (case["name"], status))

    def test_random_bytes_of_the_original(self) -> None:
        """Where the original shows random memory, the text is the same but for these bytes."""
        cases = json.loads((VECTORS / "aof-cases.json").read_text())["cases"]
        for case in [case for case in cases if case["name"] in RANDOM]:
            result = self.check(edited(case["edit"]))
            expected = case["check_aof"]["stdout"].splitlines()
            printed = result.stdout.decode().splitlines()
            self.assertEqual(expected[-2:], printed[-2:])
            self.assertEqual(expected[0][:36], printed[0][:36])
            self.assertEqual(1, result.returncode)

    def test_damaged_job(self) -> None:
        """A job that servers refuse makes the file bad, although its framing is right."""
        result = self.check(NODE0 + b"*2\r\n$7\r\nLOADJOB\r\n$5\r\nhello\r\n")
        lines = result.stdout.decode().splitlines()
        self.assertEqual("AOF analyzed: size=3731, ok_up_to=3731, diff=0", lines[0])
        self.assertTrue(lines[1].startswith("Damaged record at offset 3703: the job has 5 bytes"))
        self.assertEqual("AOF is not valid", lines[-1])
        self.assertEqual(1, result.returncode)

    def test_foreign_record_is_noted(self) -> None:
        """A record no server can load is mentioned without a change of the original's output."""
        result = self.check(NODE0 + b"*1\r\n$4\r\nPING\r\n")
        self.assertTrue(result.stdout.endswith(b"AOF is valid\n"))
        self.assertIn(b"which servers refuse: 1", result.stderr)

    def test_fix(self) -> None:
        """A torn end is cut, and what is cut stays beside the file."""
        result = self.check(NODE0[:TORN], "--fix", answer=b"y\n")
        lines = result.stdout.decode().splitlines()
        self.assertEqual(
            [
                "This will shrink the AOF from 3693 bytes, with 53 bytes, to 3640 bytes",
                "Continue? [y/N]: Successfully truncated AOF",
                "The 53 bytes that were cut off are in x.aof.cut-3640",
            ],
            lines[2:],
        )
        self.assertEqual(0, result.returncode)
        self.assertEqual(["x.aof", "x.aof.cut-3640"], self.names())
        self.assertEqual(NODE0[:OK_UP_TO], self.file.read_bytes())
        kept = self.directory / "x.aof.cut-3640"
        self.assertEqual(NODE0[OK_UP_TO:TORN], kept.read_bytes())

    def test_kept_bytes_are_never_overwritten(self) -> None:
        """A second repair at the same offset keeps both pieces."""
        self.check(NODE0[:TORN], "--fix", answer=b"y\n")
        self.check(NODE0[: TORN + 1], "--fix", answer=b"Y\n")
        self.assertEqual(["x.aof", "x.aof.cut-3640", "x.aof.cut-3640.2"], self.names())

    def test_fix_of_a_log_in_use(self) -> None:
        """Nothing is cut off a file that a node writes to."""
        self.file.write_bytes(NODE0[:TORN])
        node = claim(RealFiles(), str(self.file))
        self.addCleanup(node.close)
        reported = run("disque_tx.cli.programs.check_aof", "--fix", str(self.file), stdin=b"y\n")
        self.assertEqual(1, reported.returncode)
        self.assertIn(b"the log of a running node", reported.stdout + reported.stderr)
        self.assertEqual(TORN, node.size())

    def test_fix_refused_by_the_user(self) -> None:
        """Any answer but yes, and no answer, leaves everything as it is."""
        for answer in (b"n\n", b"\n", b""):
            result = self.check(NODE0[:TORN], "--fix", answer=answer)
            self.assertTrue(result.stdout.endswith(b"Continue? [y/N]: Aborting...\n"))
            self.assertEqual(1, result.returncode)
            self.assertEqual(NODE0[:TORN], self.file.read_bytes())
            self.assertEqual(["x.aof"], self.names())

    def test_fix_of_a_good_file(self) -> None:
        """Nothing to repair is no error."""
        result = self.check(NODE0, "--fix")
        self.assertTrue(result.stdout.endswith(b"diff=0\nAOF is valid\n"))
        self.assertEqual(0, result.returncode)

    def test_damage_in_the_middle(self) -> None:
        """Cutting at damage with records behind it would drop good jobs, so it is refused."""
        damaged = NODE0[:163] + b"garbage" + NODE0[163:]
        result = self.check(damaged, "--fix", answer=b"y\n")
        self.assertIn(b"Refused: the damage at offset 163 (0xa3)", result.stdout)
        self.assertIn(b"a complete record follows at offset 170", result.stdout)
        self.assertEqual(1, result.returncode)
        self.assertEqual(damaged, self.file.read_bytes())
        self.assertEqual(["x.aof"], self.names())

    def test_damaged_job_in_the_middle(self) -> None:
        """The same for a job that contradicts itself."""
        damaged = b"*2\r\n$7\r\nLOADJOB\r\n$5\r\nhello\r\n" + NODE0
        result = self.check(damaged, "--fix", answer=b"y\n")
        self.assertIn(b"Refused: the damage at offset 0 (0x0)", result.stdout)
        self.assertEqual(damaged, self.file.read_bytes())

    def test_force(self) -> None:
        """Who insists may cut in the middle; the rest is kept in any case."""
        damaged = NODE0[:163] + b"garbage" + NODE0[163:]
        result = self.check(damaged, "--fix", "--force", answer=b"y\n")
        self.assertEqual(0, result.returncode)
        self.assertEqual(NODE0[:163], self.file.read_bytes())
        self.assertEqual(damaged[163:], (self.directory / "x.aof.cut-163").read_bytes())

    def test_usage(self) -> None:
        """Wrong words, a missing file and a directory are errors with a text."""
        cases = {
            (): _USAGE,
            ("--fix",): _USAGE,
            (
                "--force",
                "x.aof",
            ): _USAGE,
            ("--foo", "x.aof"): "Invalid argument: --foo",
            ("missing",): "Cannot open file: missing",
            ("/",): "Cannot open file: /",
        }
        for argv, expected in cases.items():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(1, check_aof.main(list(argv)))
            self.assertEqual(expected + "\n", printed.getvalue())


class Terminal(io.StringIO):
    """A text device that is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


class ProgressBarTests(SynchronousTestCase):
    """The bar on the error output."""

    def draw(self, terminal: bool) -> str:
        """What half a file shows."""
        device = Terminal() if terminal else io.StringIO()
        with contextlib.redirect_stderr(device):
            bar = check_aof.ProgressBar(200)
            bar.show(100)
            bar.clear()
        return device.getvalue()

    def test_on_a_terminal(self) -> None:
        """A person sees how much is done, and at the end nothing is left of the bar."""
        shown = self.draw(terminal=True)
        self.assertIn("[" + "#" * 20 + "-" * 20 + "]  50 %", shown)
        self.assertTrue(shown.endswith("\r\x1b[K"))

    def test_elsewhere(self) -> None:
        """A log file does not want it."""
        self.assertEqual("", self.draw(terminal=False))
