"""``disque cluster evacuate --wait``, on a node that says how far it is."""

from __future__ import annotations

from disque_tx.cli.cluster import evacuate
from tests.cli.livenode import VerbCase, drawn
from tests.client.scripted import ScriptedNode, bulk


def copies(left: int, moved: int = 0, obstacle: str = "", eta_s: int = -1) -> bytes:
    """A reply to INFO copies."""
    fields = {"evacuating": "yes", "evacuation_left": left, "evacuation_moved": moved}
    fields |= {"evacuation_obstacle": obstacle, "evacuation_eta_s": eta_s}
    return bulk("".join(f"{name}:{value}\r\n" for name, value in fields.items()))


class WaitTests(VerbCase):
    """What is said while it takes long, and in the end."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(evacuate, "_POLL_S", 0.0)

    def run_on(
        self, *infos: bytes, words: tuple[str, ...] = ("--wait",), terminal: bool = False
    ) -> tuple[int, str, str]:
        """Evacuate a node whose INFO says this; its address is shown as ``N``."""
        node = ScriptedNode(INFO=[*infos], CLUSTER=b"+OK\r\n")
        self.addCleanup(node.close)
        said = ("cluster", "evacuate", node.address, "--yes", *words)
        status, output, errors = self.disque(*said, terminal=terminal)
        self.requests = [words for words in node.requests if words[0] != b"INFO"]
        return status, output.replace(node.address, "N"), errors.replace(node.address, "N")

    def test_until_empty(self) -> None:
        """It waits until no job is left, and says that the node can be stopped now."""
        found = self.run_on(copies(2), copies(2), copies(1, 1), copies(0, 2), copies(5))
        self.assertEqual((0, "N is empty, and can be stopped.\n", ""), found)
        self.assertEqual([[b"CLUSTER", b"LEAVING", b"yes", b"EVACUATE"]], self.requests)

    def test_lines(self) -> None:
        """Without a terminal, a line says from time to time how many jobs are left, and what the
        node waits for, or how long that takes if it waits for nothing."""
        self.patch(evacuate, "_LINE_S", 0.0)
        infos = [copies(3, 0, "paused", 5), copies(2, 1, "", 7), copies(2, 1, "", 0)]
        _, _, errors = self.run_on(copies(3), *infos, copies(2, 1), copies(0))
        expected = [
            "N: 3 jobs left: replicate-again-rate is 0",
            "N: 2 jobs left: about 7 s more",
            "N: 2 jobs left: about 0 s more",
            "N: 2 jobs left",
        ]
        self.assertEqual(expected, errors.splitlines())

    def test_called_off(self) -> None:
        """When somebody else has called it off, waiting would never end."""
        kept = bulk("evacuating:no\r\n")
        expected = (1, "", "N does not leave any more.\n")
        self.assertEqual(expected, self.run_on(copies(2), copies(2), kept))

    def test_time_is_over(self) -> None:
        """With a time limit the last state is said; the node goes on by itself."""
        found = self.run_on(copies(4, 1, "clients"), words=("--timeout", "0"))
        said = "N is not empty: 4 jobs left: clients of this node work on them.\n"
        self.assertEqual((1, "", said), found)
        self.assertEqual(1, len(self.requests))

    def test_bar(self) -> None:
        """On a terminal a bar shows how many jobs of all have moved."""
        infos = [copies(3, 1), copies(3, 1), copies(0, 4)]
        status, _, errors = self.run_on(*infos, terminal=True)
        last = drawn(errors)[-1].split()
        self.assertEqual((0, "moving", "4/4"), (status, last[0], last[2]))

    def test_too_old(self) -> None:
        """A node that would leave with its jobs still there is no success."""
        status, output, errors = self.run_on(bulk("uptime:1\r\n"), words=())
        self.assertEqual((1, ""), (status, output))
        self.assertIn("N cannot give its jobs away: its version is too old.", errors)
