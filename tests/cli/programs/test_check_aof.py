"""``disque-check-aof`` on files that were also checked with the original."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs import check_aof
from disque_tx.engine.ownership import claim
from disque_tx.messages.keys import HELD
from disque_tx.messages.records import KeyEntry
from disque_tx.services.machine.files import RealFiles
from disque_tx.wire.files.aof import LogEncoder, count_record
from tests.cli.double import Screen
from tests.cli.program import run

VECTORS = Path(__file__).parents[2] / "vectors" / "aof"
NODE0 = (VECTORS / "node0.aof").read_bytes()
TORN = 3693
OK_UP_TO = 3640
#: Here the original prints memory beyond the end of the file, or stops at a NUL.
RANDOM = ("cut_after_star", "cut_after_star2", "cut_after_dollar", "trailing_nuls")


def edited(edit: dict[str, str | int]) -> bytes:
    """node0.aof with the edit of a case applied."""
    data = NODE0[: int(edit.get("truncate_to", len(NODE0)))]
    data += bytes.fromhex(str(edit.get("append_hex", "")))
    at = int(edit.get("insert_at", 0))
    return data[:at] + bytes.fromhex(str(edit.get("insert_hex", ""))) + data[at:]


_USAGE = "Usage: disque-check-aof [--fix [--force] | --original] <file.aof> | --version"


def _full(_fd: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class CheckAofTests(SynchronousTestCase):
    """The program ``disque-check-aof``."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.file = self.directory / "x.aof"

    def check(self, data: bytes, *argv: str, answer: bytes = b"") -> CompletedProcess[bytes]:
        """Run the program in the directory of a file with this content."""
        self.file.write_bytes(data)
        out, err = io.StringIO(), io.StringIO()
        said = self.patch(sys, "stdin", io.StringIO(answer.decode()))
        with (
            contextlib.chdir(self.directory),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = check_aof.main([*argv, "x.aof"])
        said.restore()
        printed = out.getvalue().encode(), err.getvalue().encode()
        return CompletedProcess(argv, status, *printed)

    def names(self) -> list[str]:
        """The files in the directory."""
        return sorted(os.listdir(self.directory))

    def test_for_an_original(self) -> None:
        """Before an original takes over, a copy is made that it can load, with all jobs."""
        encoder = LogEncoder()
        encoder.hold_key(KeyEntry(b"k", b"D-" + b"0" * 38, HELD, 1, 0, 1))
        encoder.free_key(b"k")
        encoder.note_job(b"D-" + b"0" * 38, b"line", b"a note")
        encoder.count_job(b"D-" + b"0" * 38, 1, 2)
        keys = encoder.take()
        done = self.check(keys + NODE0 + keys, "--original")
        size = len(keys + NODE0 + keys)
        self.assertEqual(
            [
                f"AOF analyzed: size={size}, ok_up_to={size}, diff=0",
                "Records of keys, notes and counters, which originals refuse: 8",
                "A copy without these records is in x.aof.original: its jobs are the same, without"
                " their keys, notes and latest counters",
            ],
            done.stdout.decode().splitlines(),
        )
        self.assertEqual(0, done.returncode)
        self.assertEqual(NODE0, (self.directory / "x.aof.original").read_bytes())
        self.assertEqual(keys + NODE0 + keys, self.file.read_bytes())
        done = self.check(keys + NODE0)
        self.assertIn(b"AOF is valid", done.stdout)

    def test_no_copy_needed(self) -> None:
        """A file without keys is for originals as it is; one that is damaged is repaired first."""
        done = self.check(NODE0, "--original")
        self.assertIn(b"Originals can load this AOF as it is", done.stdout)
        done = self.check(NODE0[:TORN], "--original")
        self.assertEqual(1, done.returncode)
        self.assertIn(b"repair it first", done.stdout)
        self.assertEqual(["x.aof"], self.names())

    def test_damaged_keys(self) -> None:
        """A key that no server would load is damage, like a job."""
        done = self.check(NODE0 + b"*2\r\n$7\r\nHOLDKEY\r\n$1\r\nx\r\n")
        self.assertIn(b"1 bytes that are no key", done.stdout)
        self.assertEqual(1, done.returncode)
        for note in (
            b"x",
            b"x" * 40 + b"\0",
            b"x" * 40 + b"\5line",
            b"x" * 40 + b"\1y" + b"z" * 513,
        ):
            done = self.check(NODE0 + b"*2\r\n$7\r\nNOTEJOB\r\n$%d\r\n%s\r\n" % (len(note), note))
            self.assertIn(b"bytes that are no note about a job", done.stdout)
            self.assertEqual(1, done.returncode)

    def test_damaged_counters(self) -> None:
        """Counters that no server would load are damage."""
        done = self.check(NODE0 + b"*2\r\n$8\r\nCOUNTJOB\r\n$1\r\nx\r\n")
        self.assertIn(b"1 bytes that are no counters of a job", done.stdout)
        self.assertEqual(1, done.returncode)

    def test_like_the_original(self) -> None:
        """Faults in the framing are reported with the text and status of the original."""
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
        """Where the original prints random memory, the rest of its text is the same."""
        cases = json.loads((VECTORS / "aof-cases.json").read_text())["cases"]
        for case in [case for case in cases if case["name"] in RANDOM]:
            result = self.check(edited(case["edit"]))
            expected = case["check_aof"]["stdout"].splitlines()
            printed = result.stdout.decode().splitlines()
            self.assertEqual(expected[-2:], printed[-2:])
            self.assertEqual(expected[0][:36], printed[0][:36])
            self.assertEqual(1, result.returncode)

    def test_damaged_job(self) -> None:
        """A job that servers cannot load makes the file invalid, although its framing is valid."""
        result = self.check(NODE0 + b"*2\r\n$7\r\nLOADJOB\r\n$5\r\nhello\r\n")
        lines = result.stdout.decode().splitlines()
        self.assertEqual("AOF analyzed: size=3731, ok_up_to=3731, diff=0", lines[0])
        self.assertTrue(lines[1].startswith("Damaged record at offset 3703: the job has 5 bytes"))
        self.assertEqual("AOF is not valid", lines[-1])
        self.assertEqual(1, result.returncode)

    def test_unknown_record_is_reported(self) -> None:
        """A record that no server can load is reported, in addition to the original's output."""
        result = self.check(NODE0 + b"*1\r\n$4\r\nPING\r\n")
        self.assertTrue(result.stdout.endswith(b"AOF is valid\n"))
        self.assertIn(b"which servers refuse: 1", result.stderr)

    def test_fix(self) -> None:
        """A torn tail is cut off, and saved beside the file."""
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

    def test_permissions(self) -> None:
        """Who may not read the log may not read what was cut off it either."""
        self.file.write_bytes(b"")
        for mode in (0o600, 0o640):
            self.file.chmod(mode)
            self.check(NODE0[:TORN], "--fix", answer=b"y\n")
            kept = max(self.directory.glob("*.cut-*"), key=lambda path: path.stat().st_mtime_ns)
            self.assertEqual(mode, kept.stat().st_mode & 0o777)

    def test_kept_bytes_are_never_overwritten(self) -> None:
        """A second repair at the same offset does not overwrite the bytes saved by the first."""
        self.check(NODE0[:TORN], "--fix", answer=b"y\n")
        self.check(NODE0[: TORN + 1], "--fix", answer=b"Y\n")
        self.assertEqual(["x.aof", "x.aof.cut-3640", "x.aof.cut-3640.2"], self.names())

    def test_fix_of_a_log_in_use(self) -> None:
        """A file that a running node writes to is not truncated."""
        self.file.write_bytes(NODE0[:TORN])
        node = claim(RealFiles(), str(self.file))
        self.addCleanup(node.close)
        reported = run("disque_tx.cli.programs.check_aof", "--fix", str(self.file), stdin=b"y\n")
        self.assertEqual(1, reported.returncode)
        self.assertIn(b"the log of a running node", reported.stdout + reported.stderr)
        self.assertEqual(TORN, node.size())

    def test_lock(self) -> None:
        """A log that a node has locked is not repaired, whoever asks."""
        self.file.write_bytes(NODE0)
        held = claim(RealFiles(), str(self.file))
        self.addCleanup(held.close)
        with open(self.file, "r+b") as file:
            self.assertRaises(check_aof.Refusal, check_aof._lock, str(self.file), file)

    def test_question_is_seen(self) -> None:
        """The question is on the screen when its answer is waited for."""
        screen = Screen()
        asked: list[bytes] = []

        def read() -> str:
            asked.append(screen.seen())
            return "n\n"

        self.file.write_bytes(NODE0[:TORN])
        self.patch(sys, "stdin", SimpleNamespace(readline=read))
        with contextlib.redirect_stdout(io.TextIOWrapper(screen)):
            self.assertEqual(1, check_aof.main(["--fix", str(self.file)]))
        (seen,) = asked
        self.assertTrue(seen.endswith(b"Continue? [y/N]: "), seen)

    def test_fix_refused_by_the_user(self) -> None:
        """Without an explicit yes, the file stays unchanged."""
        for answer in (b"n\n", b"\n", b""):
            result = self.check(NODE0[:TORN], "--fix", answer=answer)
            self.assertTrue(result.stdout.endswith(b"Continue? [y/N]: Aborting...\n"))
            self.assertEqual(1, result.returncode)
            self.assertEqual(NODE0[:TORN], self.file.read_bytes())
            self.assertEqual(["x.aof"], self.names())

    def test_fix_of_a_good_file(self) -> None:
        """A valid file is not an error."""
        result = self.check(NODE0, "--fix")
        self.assertTrue(result.stdout.endswith(b"diff=0\nAOF is valid\n"))
        self.assertEqual(0, result.returncode)

    def test_damage_in_the_middle(self) -> None:
        """Damage followed by valid records is not cut off, because valid jobs would be lost."""
        damaged = NODE0[:163] + b"garbage" + NODE0[163:]
        result = self.check(damaged, "--fix", answer=b"y\n")
        self.assertIn(b"Refused: the damage at offset 163 (0xa3)", result.stdout)
        self.assertIn(b"a complete record follows at offset 170", result.stdout)
        self.assertEqual(1, result.returncode)
        self.assertEqual(damaged, self.file.read_bytes())
        self.assertEqual(["x.aof"], self.names())

    def test_refusal(self) -> None:
        """Who is refused reads how much would be lost, that nothing was changed, and what to do
        instead."""
        result = self.check(NODE0[:163] + b"garbage" + NODE0[163:], "--fix", answer=b"y\n")
        self.assertEqual(
            [
                "Refused: the damage at offset 163 (0xa3) is in the middle of the file, for a"
                " complete record follows at offset 170.",
                "Cutting there would drop 3547 bytes with jobs in them; nothing was changed.",
                "Take this node's jobs from a backup or from its replicas, or cut nevertheless with"
                " --fix --force.",
            ],
            result.stdout.decode().splitlines()[2:],
        )

    def test_no_room(self) -> None:
        """Where what is cut off cannot be kept, nothing is cut, and no half of a file is left."""
        self.patch(os, "fsync", _full)
        result = self.check(NODE0[:TORN], "--fix", answer=b"y\n")
        said = b"Failed to truncate AOF: [Errno 28] No space left on device\n"
        self.assertTrue(result.stdout.endswith(said), result.stdout)
        self.assertEqual(1, result.returncode)
        self.assertEqual(NODE0[:TORN], self.file.read_bytes())
        self.assertEqual(["x.aof"], self.names())

    def test_no_room_for_a_copy(self) -> None:
        """Nor is there half of a copy for an original."""
        self.patch(os, "fsync", _full)
        data = NODE0 + count_record(b"D-" + b"0" * 38, 1, 2)
        result = self.check(data, "--original")
        said = b"Failed to write x.aof.original: [Errno 28] No space left on device\n"
        self.assertTrue(result.stdout.endswith(said), result.stdout)
        self.assertEqual((1, ["x.aof"]), (result.returncode, self.names()))

    def test_empty(self) -> None:
        """An empty file is no log: it may be that of a node that lost everything."""
        result = self.check(b"")
        self.assertEqual((1, b"Empty file: x.aof\n"), (result.returncode, result.stdout))

    def test_damaged_job_in_the_middle(self) -> None:
        """The same for an inconsistent job."""
        damaged = b"*2\r\n$7\r\nLOADJOB\r\n$5\r\nhello\r\n" + NODE0
        result = self.check(damaged, "--fix", answer=b"y\n")
        self.assertIn(b"Refused: the damage at offset 0 (0x0)", result.stdout)
        self.assertEqual(damaged, self.file.read_bytes())

    def test_force(self) -> None:
        """With ``--force`` damage in the middle is cut off; the rest is saved in any case."""
        damaged = NODE0[:163] + b"garbage" + NODE0[163:]
        result = self.check(damaged, "--fix", "--force", answer=b"y\n")
        self.assertEqual(0, result.returncode)
        self.assertEqual(NODE0[:163], self.file.read_bytes())
        self.assertEqual(damaged[163:], (self.directory / "x.aof.cut-163").read_bytes())

    def test_version(self) -> None:
        """Who asks for the version gets it, by either word."""
        for word in ("--version", "-v"):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(0, check_aof.main([word]))
            self.assertTrue(printed.getvalue().startswith("disque-check-aof "))

    def test_usage(self) -> None:
        """Wrong arguments, a missing file and a directory are errors with a message."""
        cases = {
            (): _USAGE,
            ("--fix",): _USAGE,
            ("--force", "x.aof"): _USAGE,
            ("--foo", "x.aof"): "Invalid argument: --foo",
            ("missing",): "Cannot open file: missing",
            ("/",): "Cannot open file: /",
        }
        for argv, expected in cases.items():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                self.assertEqual(1, check_aof.main(list(argv)))
            self.assertEqual(expected + "\n", printed.getvalue())
