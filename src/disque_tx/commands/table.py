"""The commands: the original's 32, in its order (client protocol, section 7), then those that are
ours (section 26).
"""

from __future__ import annotations

from disque_tx.commands import asking
from disque_tx.commands.base.arguments import NOT_A_NUMBER, integer
from disque_tx.commands.base.audit import AuditedCommand
from disque_tx.commands.base.context import Command, Registry, Server
from disque_tx.commands.jobs import counting, getjob, jobs, progress, queues, retries
from disque_tx.commands.server import admin, clients, cluster, diagnosis, hello, info, past, process
from disque_tx.commands.tables import policies, schedules
from disque_tx.core.base.client import Client


class HelloCommand(Command):
    """HELLO takes no words in the original; with a number it is the greeting of Redis clients,
    which may bring the password along."""

    def accepts(self, argv: list[bytes]) -> bool:
        return len(argv) == 1 or integer(argv[1]) != NOT_A_NUMBER

    def before_auth(self, argv: list[bytes]) -> bool:
        return len(argv) > 1


class QstatCommand(Command):
    """QSTAT takes one word in the original, which tells nobody who paused a queue."""

    def accepts(self, argv: list[bytes]) -> bool:
        return len(argv) == 2 or (len(argv) == 3 and argv[2].upper() == b"WITHPAUSE")


class WorkingCommand(Command):
    """WORKING takes one word in the original, which keeps no progress."""

    def accepts(self, argv: list[bytes]) -> bool:
        return len(argv) >= 2


class AddJobCommand(Command):
    """The three commands of a job's life call their handlers by name, which is faster when
    compiled."""

    def run(self, server: Server, client: Client, argv: list[bytes]) -> None:
        jobs.addjob(server, client, argv)


class GetJobCommand(Command):
    """See :class:`AddJobCommand`."""

    def run(self, server: Server, client: Client, argv: list[bytes]) -> None:
        getjob.getjob(server, client, argv)


class AckJobCommand(Command):
    """See :class:`AddJobCommand`."""

    def run(self, server: Server, client: Client, argv: list[bytes]) -> None:
        jobs.ackjob(server, client, argv)


def standard_registry() -> Registry:
    """A fresh table: statistics zero, no command renamed."""
    return Registry(
        [
            Command(b"auth", 2, "readonly loading fast", admin.auth),
            Command(b"ping", -1, "readonly fast", admin.ping),
            Command(b"info", -1, "readonly loading", info.info),
            AuditedCommand(b"shutdown", -1, "readonly admin loading", admin.shutdown),
            Command(b"monitor", 1, "readonly admin", admin.monitor),
            AuditedCommand(b"debug", -2, "admin", process.debug),
            AuditedCommand(b"config", -2, "readonly admin", process.config),
            AuditedCommand(b"cluster", -2, "readonly admin", cluster.cluster),
            AuditedCommand(b"client", -2, "readonly admin", clients.client),
            Command(b"slowlog", -2, "readonly", diagnosis.slowlog),
            Command(b"time", 1, "readonly fast", admin.time),
            Command(b"command", 0, "readonly loading", admin.command),
            Command(b"latency", -2, "readonly admin loading", diagnosis.latency),
            HelloCommand(b"hello", 1, "readonly fast", hello.hello),
            AddJobCommand(b"addjob", -4, "write denyoom fast", jobs.addjob),
            GetJobCommand(b"getjob", -2, "write fast", getjob.getjob),
            AckJobCommand(b"ackjob", -1, "write fast", jobs.ackjob),
            Command(b"fastack", -1, "write fast", jobs.fastack),
            Command(b"deljob", -1, "write fast", jobs.deljob),
            Command(b"show", 2, "readonly fast", jobs.show),
            Command(b"loadjob", 2, "write", admin.loadjob),
            Command(b"bgrewriteaof", 1, "readonly admin", admin.bgrewriteaof),
            Command(b"qlen", 2, "readonly fast", queues.qlen),
            Command(b"qpeek", 3, "readonly", queues.qpeek),
            QstatCommand(b"qstat", 2, "readonly fast", queues.qstat),
            Command(b"qscan", -1, "readonly", queues.qscan),
            Command(b"jscan", -1, "readonly", queues.jscan),
            Command(b"enqueue", -1, "write denyoom fast returns", jobs.enqueue),
            Command(b"nack", -1, "write denyoom fast returns", retries.nack),
            Command(b"dequeue", -1, "write fast", jobs.dequeue),
            WorkingCommand(b"working", 2, "write fast", progress.working),
            AuditedCommand(b"pause", -3, "readonly fast", queues.pause),
            AuditedCommand(b"qpolicy", -2, "admin", policies.qpolicy),
            Command(b"qcount", -2, "readonly fast", counting.qcount),
            Command(b"qlist", -1, "readonly", counting.qlist),
            AuditedCommand(b"qflush", -2, "write", counting.qflush),
            Command(b"waitjob", -2, "readonly fast", counting.waitjob),
            Command(b"qmove", -3, "write denyoom", retries.qmove),
            AuditedCommand(b"schedule", -2, "admin", schedules.schedule),
            Command(b"ask", -3, "admin", asking.ask),
            AuditedCommand(b"note", -2, "readonly fast", past.note),
            Command(b"actions", -1, "readonly", past.actions),
        ]
    )
