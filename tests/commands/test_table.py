"""The command table (client protocol, section 7) and its renames (section 21.3)."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.table import standard_registry

#: Name, arity and flags, as listed in section 7.
TABLE = """\
auth 2 readonly loading fast
ping -1 readonly fast
info -1 readonly loading
shutdown -1 readonly admin loading
monitor 1 readonly admin
debug -2 admin
config -2 readonly admin
cluster -2 readonly admin
client -2 readonly admin
slowlog -2 readonly
time 1 readonly fast
command 0 readonly loading
latency -2 readonly admin loading
hello 1 readonly fast
addjob -4 write denyoom fast
getjob -2 write fast
ackjob -1 write fast
fastack -1 write fast
deljob -1 write fast
show 2 readonly fast
loadjob 2 write
bgrewriteaof 1 readonly admin
qlen 2 readonly fast
qpeek 3 readonly
qstat 2 readonly fast
qscan -1 readonly
jscan -1 readonly
enqueue -1 write denyoom fast
nack -1 write denyoom fast
dequeue -1 write fast
working 2 write fast
pause -3 readonly fast
"""
#: Commands that the original does not have stand behind its own.
OWN = """\
qpolicy -2 admin
qcount -2 readonly fast
qlist -1 readonly
qflush -2 write
waitjob -2 readonly fast
qmove -3 write denyoom
schedule -2 admin
ask -3 admin
note -2 readonly fast
actions -1 readonly
"""
COMMANDS = len((TABLE + OWN).splitlines())


class RegistryTests(SynchronousTestCase):
    """``standard_registry`` and ``Registry``."""

    def setUp(self) -> None:
        self.registry = standard_registry()

    def test_table(self) -> None:
        """Names, arities, flags and order are those of the original, whose commands come first."""
        lines = [
            f"{command.name.decode()} {command.arity} {' '.join(command.flags)}\n"
            for command in self.registry.table
        ]
        self.assertEqual(TABLE + OWN, "".join(lines))

    def test_arity(self) -> None:
        """A positive arity is exact, a negative one is a minimum, zero allows any."""
        for name, words, accepted in (
            (b"show", 2, True),
            (b"show", 1, False),
            (b"show", 3, False),
            (b"addjob", 3, False),
            (b"addjob", 4, True),
            (b"addjob", 40, True),
            (b"ackjob", 1, True),
            (b"command", 1, True),
            (b"command", 9, True),
            (b"hello", 1, True),
        ):
            command = self.registry.by_name[name]
            self.assertEqual(accepted, command.accepts([name] + [b"x"] * (words - 1)), name)

    def test_rename(self) -> None:
        """A renamed command is found under its new name only, in any case, and keeps its original
        one."""
        self.assertTrue(self.registry.rename(b"SHUTDOWN", b"Halt"))
        self.assertNotIn(b"shutdown", self.registry.by_name)
        self.assertEqual(b"shutdown", self.registry.by_name[b"halt"].name)
        self.assertEqual(COMMANDS, len(self.registry.table))

    def test_remove(self) -> None:
        """An empty new name disables the command."""
        self.assertTrue(self.registry.rename(b"debug", b""))
        self.assertNotIn(b"debug", self.registry.by_name)
        self.assertEqual(COMMANDS - 1, len(self.registry.by_name))

    def test_refused(self) -> None:
        """Unknown commands and names in use have different errors, and nothing changes."""
        self.assertFalse(self.registry.rename(b"select", b"x"))
        self.assertRaises(ValueError, self.registry.rename, b"debug", b"PING")
        self.assertEqual(b"debug", self.registry.by_name[b"debug"].name)
