"""The cluster as a whole: its nodes see the same members, send no more than a budget, and serve no
client without the password; their logs equal their memory; and in the end nothing is left to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages.nodes import LEAVING, MYSELF, flags_text
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, STATE_NAMES
from disque_tx.sim.stage.checker import Checker
from disque_tx.sim.stage.workleft import waits_for_copies, work_left

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

#: When nodes that met a moment ago, and have no trouble, know each other.
_GOSSIP_US: Final = 7_900_000


class SameViews(Checker):
    """When all is healed, every node sees the same cluster: all members, linked, none failing, and
    those marked as leaving that are."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Stage) -> None:
        """Every node must know every other by gossip before the first fault."""
        run.world.at(_GOSSIP_US, lambda: self._breaches.extend(self._compare(run)))

    def judge(self, run: Stage) -> list[str]:
        """Nodes that see another cluster than there is."""
        return self._breaches + self._compare(run)

    def _compare(self, run: Stage) -> list[str]:
        nodes = {m.ip: m.process.node for m in run.machines if m.process is not None}
        if len(nodes) < len(run.machines):
            return ["not every node runs"]
        members = {node.id: ip for ip, node in nodes.items()}
        leaving = {node.id for node in nodes.values() if node.membership.leaving}
        breaches: list[str] = []
        for ip, node in nodes.items():
            table = node.membership.nodes
            if set(table) != set(members):
                breaches.append(f"{ip.decode()} knows {len(table)} nodes of {len(members)}")
            for entry in table.values():
                fine = entry.connected and entry.flags == (LEAVING if entry.id in leaving else 0)
                if entry.id in members and not entry.flags & MYSELF and not fine:
                    breaches.append(
                        f"{ip.decode()} sees {members[entry.id].decode()} as"
                        f" {flags_text(entry.flags).decode()}, link {entry.connected}"
                    )
        return breaches


#: Bytes per node pair and second for being a cluster: pings with gossip, and their answers.
IDLE_BYTES_PER_S: Final = 6_000
#: Bytes per ADDJOB and other node.
JOB_BYTES: Final = 40_000
#: Bytes per GETJOB, ACKJOB and other request, and other node.
REQUEST_BYTES: Final = 3_000
#: Bytes per RETRY for which a job waits in a queue, and other node: one asks before it would queue
#: the job again, and is answered.
WAIT_BYTES: Final = 1_000


class WithinBudget(Checker):
    """What the nodes send to each other stays within a budget, per job and when nothing happens.

    The budget is generous: it is there to find storms, not to save bytes. Whoever waits for copies
    on a stalled network sends a job again at growing intervals, an acknowledgement is repeated for
    as long as a holder is away; everything else is a handful of messages per job and node.
    """

    def judge(self, run: Stage) -> list[str]:
        """A run that sent too much."""
        others = len(run.machines) - 1
        pairs = len(run.machines) * others
        seconds = run.world.now_us / 1e6
        budget = pairs * seconds * IDLE_BYTES_PER_S
        budget += len(run.history.added) * others * JOB_BYTES
        budget += run.requests * others * REQUEST_BYTES
        budget += _retries(run) * others * WAIT_BYTES
        sent = run.world.counters["bus.bytes"]
        if sent > budget:
            return [f"{sent} bytes on the bus, where the budget of such a run is {int(budget)}"]
        return []


def _retries(run: Stage) -> float:
    """How often a RETRY was over of a job that waited for its last delivery."""
    last_us = {one.job_id: one.sent_us for one in run.history.delivered}
    return sum(
        max(0, last_us.get(added.job_id, 0) - added.accepted_us) / 1e6 / added.retry_s
        for added in run.history.accepted()
        if added.retry_s > 0
    )


class PasswordRequired(Checker):
    """Without the password a client gets nothing but errors, at any node and under any fault."""

    def judge(self, run: Stage) -> list[str]:
        """Answers that were no errors."""
        return [f"answered without a password: {what}" for what in run.history.admitted]


_EVERY_US: Final = 5_000_000


class LogEqualsMemory(Checker):
    """The log holds what is in memory: the jobs that can still be delivered, and no others."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Stage) -> None:
        """Look again and again."""
        run.world.at(_EVERY_US, lambda: self._check(run))

    def _check(self, run: Stage) -> None:
        for machine in run.machines:
            self._compare(run, machine)
        if not run.over:
            run.world.at(_EVERY_US, lambda: self._check(run))

    def _compare(self, run: Stage, machine: Machine) -> None:
        process = machine.process
        if process is None or not process.logs:
            return
        logged = process.replayed()
        alive = {
            job.id: job for job in process.node.jobs.table.values() if job.state in (ACTIVE, QUEUED)
        }
        for job_id in process.expired - alive.keys():
            logged.pop(job_id, None)
        where = f"{machine.ip.decode()} at {run.world.now_us / 1e6:.3f} s"
        for job_id in [*logged.keys() - alive.keys()][:3]:
            self._breaches.append(f"{job_id.decode('latin-1')}: in the log only, {where}")
        for job_id in [*alive.keys() - logged.keys()][:3]:
            self._breaches.append(f"{job_id.decode('latin-1')}: in memory only, {where}")
        for job_id in alive.keys() & logged.keys():
            job, record = alive[job_id], logged[job_id]
            if (job.queue, job.body, job.retry_s) != (record.queue, record.body, record.retry_s):
                self._breaches.append(f"{job_id.decode('latin-1')}: differs in the log, {where}")

    def judge(self, run: Stage) -> list[str]:
        """What differed, the first few of each look."""
        for machine in run.machines:
            self._compare(run, machine)
        return self._breaches[:10]


class Drained(Checker):
    """After healing, the cluster drains: every job is delivered, and no queue holds one.

    Jobs with RETRY 0 that were delivered and not acknowledged stay until their life ends, and so
    does a copy of one that was kept for others: neither is work that is left.

    A node also drains through nodes that are leaving and are not called back: whatever they hold is
    delivered by the others, whose clients ask for it, so that such a node can be switched off then.
    Excused is the record of an ASYNC job that a leaving node accepted for others, when more copies
    were wanted than there are nodes that stay: it goes on looking for a place for them, until the
    job's TTL. So is a job whose dead letter needs more copies than that.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that are still there."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            left = [job for job in node.jobs.table.values() if work_left(run, node, job)]
            for job in left[:3]:
                breaches.append(
                    f"{job.id.decode('latin-1')}: still {STATE_NAMES[job.state].decode()} on"
                    f" {machine.ip.decode()} in the end, {len(left)} jobs in all there"
                )
            if waits_for_copies(run, node):
                breaches.append(f"{machine.ip.decode()} still waits for copies in the end")
        return breaches


class AcksCollected(Checker):
    """After healing, acknowledgements are collected: no node keeps a job that all have finished."""

    def judge(self, run: Stage) -> list[str]:
        """Nodes that still wait for another node to receive an acknowledgement."""
        breaches: list[str] = []
        for machine, node in run.nodes():
            left = [job for job in node.jobs.table.values() if job.state == ACKED]
            for job in left[:3]:
                kind = "dummy acknowledgement" if job.dummy else "acknowledged job"
                breaches.append(
                    f"{job.id.decode('latin-1')}: {kind} still on {machine.ip.decode()} in the end,"
                    f" after {job.gc_retry} attempts, {len(left)} in all there"
                )
            if node.jobs.acked != len(left):
                breaches.append(f"{machine.ip.decode()} counts {node.jobs.acked} acknowledged jobs")
        return breaches
