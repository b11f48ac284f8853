"""Copies are on more than one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checkers.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.stage import Stage


class HostsDiffer(Checker):
    """When a client learns that its job with REPLICATE 2 or more is accepted, the copies are not
    all on one host, unless no other could be reached.

    A host counts when the node that answered could reach it before the turn of its answer, and
    after it. Excused are jobs a holder of which is down by then, or was when it was looked at.
    """

    def judge(self, run: Stage) -> list[str]:
        """Jobs that were accepted with copies on one host."""
        breaches: list[str] = []
        host_of = {machine.ip: machine.host for machine in run.machines}
        for added in run.history.accepted():
            holders = run.copies.seen.get(added.job_id)
            if added.asynchronous or added.replicate < 2 or not holders:
                continue
            if added.job_id in run.early or len(holders) < added.replicate:
                continue
            excused = any(
                machine.ip in run.copies.down[added.job_id]
                or run.plan.alive_since(machine.ip) > added.asked_us
                for machine in run.machines
            )
            hosts = {host_of[ip] for ip in holders}
            others = run.copies.reached[added.job_id] - hosts
            if len(hosts) == 1 and others and not excused:
                breaches.append(
                    f"{added.job_id.decode()}: accepted with all copies on {hosts.pop().decode()},"
                    f" although {b' '.join(sorted(others)).decode()} could be reached"
                )
        return breaches
