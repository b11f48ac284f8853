"""What each process gets of the configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.errors import ConfigError
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.processes.parent import surplus as leftovers
from disque_tx.services.processes.settings import (
    check,
    folders,
    lookup_folders,
    meeting_ip,
    numbers_found,
    own_bus_port,
    processes,
    share,
)


def settings(folder: str = "/var/lib/disque", **changes: Any) -> Settings:
    """As they are after the configuration was read."""
    made = Settings(
        dir=folder,
        cluster_config_file=f"{folder}/nodes.conf",
        eventlog_dir=f"{folder}/events",
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


class PortTests(SynchronousTestCase):
    """Where each process can be reached."""

    def test_ports(self) -> None:
        """The own ports follow that of the daemon, and each bus port is 10000 above, so that nodes
        of the original find it."""
        ports = [(one.port, own_bus_port(settings(), n)) for n, one in self.shares(settings())]
        self.assertEqual([(7711, 17711), (7712, 17712), (7713, 17713)], ports)

    def shares(self, whole: Settings) -> list[tuple[int, Settings]]:
        """Of the former single process and two others."""
        return [(number, share(whole, number, 2)) for number in (0, 1, 2)]

    def test_configured(self) -> None:
        """Both kinds of ports can lie elsewhere."""
        whole = settings(process_port=7800, cluster_bus_port=9000)
        ports = [(one.port, one.cluster_bus_port) for _, one in self.shares(whole)]
        self.assertEqual([(7711, 9000), (7800, 9001), (7801, 9002)], ports)

    def test_announced(self) -> None:
        """Behind a translation of addresses, the ports that others get are as far apart."""
        whole = settings(cluster_announce_port=30000, cluster_announce_bus_port=31000)
        ports = [
            (one.cluster_announce_port, one.cluster_announce_bus_port)
            for _, one in self.shares(whole)
        ]
        self.assertEqual([(30000, 31000), (30001, 31001), (30002, 31002)], ports)

    def test_refused(self) -> None:
        """What cannot work is refused with the numbers that people need."""
        refused: list[tuple[dict[str, Any], str]] = [
            ({"port": 0}, "leaves them no ports"),
            ({"port": 55_533}, "ports 55534 to 55537 are needed, and 65534 to 65537 for other"),
            ({"cluster_bus_port": 65_532}, "65533 to 65536 for other nodes"),
            ({"process_port": 7709}, "cannot be among those of its 4 processes, 7709"),
        ]
        for changes, message in refused:
            with self.assertRaisesRegex(ConfigError, message):
                check(settings(**changes), 4)
        for highest, text in ((1, "^For 1 process the"), (2, "^For 2 processes the")):
            with self.assertRaisesRegex(ConfigError, text):
                check(settings(port=65_535), highest)
        check(settings(port=55_531), 4)
        check(settings(process_port=7800), 4)

    def test_meeting(self) -> None:
        """Processes meet where their bus listens."""
        for expected, changes in (
            ("127.0.0.1", {}),
            ("127.0.0.1", {"bind": ["10.0.0.1"]}),
            ("::1", {"bind": ["10.0.0.1", "::1"]}),
            ("10.0.0.1", {"bind": ["10.0.0.1", "::1"], "cluster_insecure": True}),
            ("127.0.0.1", {"bind": ["0.0.0.0"], "cluster_bus_tls": True}),
            ("192.0.2.7", {"cluster_announce_ip": "192.0.2.7", "cluster_insecure": True}),
        ):
            self.assertEqual(expected, meeting_ip(settings(**changes)), changes)

    def test_introductions(self) -> None:
        """Where only some networks may introduce nodes, the processes of one host still may."""
        mine = share(settings(cluster_meet_allow=["10.0.0.0/8"]), 1, 2)
        self.assertEqual(["10.0.0.0/8", "127.0.0.1"], mine.cluster_meet_allow)
        self.assertEqual([], share(settings(), 1, 2).cluster_meet_allow)


class FolderTests(SynchronousTestCase):
    """Where each process has its files."""

    def test_own_files(self) -> None:
        """Nothing that one process writes is written by another one."""
        mine = share(settings(logfile="/var/log/disque.log"), 2, 3)
        self.assertEqual(
            (
                "/var/lib/disque/process-2",
                "/var/lib/disque/process-2/nodes.conf",
                "/var/lib/disque/process-2/events",
                "/var/log/process-2/disque.log",
            ),
            (mine.dir, mine.cluster_config_file, mine.eventlog_dir, mine.logfile),
        )
        self.assertEqual(
            ["/var/lib/disque/process-2", "/var/log/process-2"],
            folders(settings(logfile="/var/log/disque.log"), 2),
        )

    def test_single(self) -> None:
        """Number 0 has the files of a daemon of one process."""
        whole = settings()
        mine = share(whole, 0, 1)
        self.assertEqual(whole.dir, mine.dir)
        self.assertEqual(whole.cluster_config_file, mine.cluster_config_file)

    def test_whole_is_kept(self) -> None:
        """The configuration of the daemon is not changed, since CONFIG REWRITE writes it."""
        whole = settings(maxmemory=100, unixsocket="/run/d.sock")
        before = repr(whole)
        share(whole, 3, 4)
        self.assertEqual(before, repr(whole))

    def test_memory_and_the_rest(self) -> None:
        """The memory is divided; the Unix socket is the parent's, and one process is enough to
        clean work queues."""
        whole = settings(maxmemory=1000, unixsocket="/run/d", workqueue_redis="redis://x")
        first, second = share(whole, 1, 3), share(whole, 2, 3)
        self.assertEqual((333, 333), (first.maxmemory, second.maxmemory))
        self.assertEqual(("redis://x", ""), (first.workqueue_redis, second.workqueue_redis))
        self.assertEqual("", first.unixsocket)
        self.assertEqual(0, share(settings(maxmemory=0), 1, 3).maxmemory)

    def test_auto(self) -> None:
        """``auto`` is as many as the cores that this process may use."""
        self.assertEqual(len(os.sched_getaffinity(0)), processes(settings(processes=0)))
        self.assertEqual(7, processes(settings(processes=7)))


class LeftoverTests(SynchronousTestCase):
    """Processes of an earlier start."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.settings = settings(str(self.folder), appendonly=True)

    def make(self, number: int) -> None:
        """The files of a process."""
        mine = share(self.settings, number, 1)
        os.makedirs(mine.dir, exist_ok=True)
        nodes, log = mine.cluster_config_file, f"{mine.dir}/disque.aof"
        tables = (f"{nodes}.policies", f"{nodes}.schedules", f"{nodes}.pauses")
        for path in (nodes, *tables, f"{nodes}.leaving", log, f"{log}.queued"):
            Path(path).write_text("something")

    def test_found(self) -> None:
        """Former processes are found by their nodes files, other folders are none."""
        for number in (0, 2, 11):
            self.make(number)
        for name in ("process-", "process-x", "process-01", "process-3", "process--1"):
            (self.folder / name).mkdir()
        self.assertEqual([0, 2, 11], numbers_found(self.settings))
        self.assertEqual([0, 11], leftovers.surplus(self.settings, [1, 2]))

    def test_lookup_folders(self) -> None:
        """The log of every process that ever ran is looked into by one of those that run."""
        for number in (0, 1, 2, 5):
            self.make(number)

        def looked_into(number: int, *others: int) -> list[str]:
            found = lookup_folders(self.settings, number, list(others))
            return [os.path.relpath(folder, self.folder) for folder in found]

        first = ["process-1/events", "events", "process-5/events"]
        self.assertEqual(first, looked_into(1, 2))
        self.assertEqual(["process-2/events"], looked_into(2, 1))
        self.assertEqual(["process-1/events"], looked_into(1, 0, 2))
        everything = ["process-1/events", "events", "process-2/events", "process-5/events"]
        self.assertEqual(everything, looked_into(1))

    def test_nothing(self) -> None:
        """A new daemon has none."""
        self.assertEqual([], numbers_found(settings("/no/such/folder")))

    def test_removed(self) -> None:
        """An empty process leaves nothing that would be found again: no jobs, and no policies and
        schedules that were deleted since."""
        for number in (0, 2):
            self.make(number)
            leftovers.remove(self.settings, number, DaemonLog())
        self.assertEqual([], list(self.folder.iterdir()))

    def test_log_not_in_use(self) -> None:
        """A log that was not loaded, because logs are off, may have jobs: it stays."""
        self.make(2)
        self.settings.appendonly = False
        leftovers.remove(self.settings, 2, DaemonLog())
        self.assertEqual(
            ["disque.aof", "disque.aof.queued"],
            sorted(path.name for path in (self.folder / "process-2").iterdir()),
        )
