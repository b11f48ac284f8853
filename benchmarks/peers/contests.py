"""Who is compared with whom: servers of others, and settings of Disque that keep as much."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import attrs

from benchmarks.daemon.bench import Loaded
from benchmarks.daemon.report import Goal, at_least, at_most
from benchmarks.daemon.servers import Cluster, Server, disque, started
from benchmarks.peers.servers import Nats, RabbitMQ, beanstalk, streams


class Running(Loaded, Protocol):
    """A server that was started."""

    def resident(self) -> int:
        """Bytes in memory."""

    def stop(self) -> None:
        """End it."""


@attrs.frozen
class Setting:
    """A server as somebody would set it up. ``start``: starts it, in a folder. ``copies``: of each
    job, as the load generator asks for them; 0 for servers that are not asked. ``filled``: whether
    the memory of waiting jobs is measured, which does not depend on when a log is synced."""

    name: str
    start: Callable[[Path], Running]
    copies: int = 0
    filled: bool = True


@attrs.frozen
class Contest:
    """``theirs``: beside ``ours``. ``efficiency``: the goal for jobs per second of processor time,
    ours ÷ theirs. ``tail``: the goal for the 99th percentile of latency, ours ÷ theirs."""

    title: str
    theirs: Setting
    ours: tuple[Setting, ...]
    efficiency: Goal | None = None
    tail: Goal | None = None


def _node(policy: str) -> Callable[[Path], Running]:
    return lambda folder: _disque(folder, policy)


def _cluster(policy: str) -> Callable[[Path], Running]:
    return lambda folder: Cluster(started([lambda: _disque(folder, policy)] * 3))


def _disque(folder: Path, policy: str) -> Server:
    return disque(sys.executable, folder, "--appendonly", "yes", "--appendfsync", policy)


_ONE: Final = {
    policy: Setting(f"Disque, AOF {policy}", _node(policy), filled=policy != "always")
    for policy in ("always", "everysec")
}
_THREE: Final = {
    (copies, policy): Setting(
        f"Disque, REPLICATE {copies}, AOF {policy}", _cluster(policy), copies, policy != "always"
    )
    for policy in ("always", "everysec")
    for copies in (2, 3)
}

CONTESTS: Final = {
    "quorum": Contest(
        "RabbitMQ, quorum queues on three nodes",
        Setting("RabbitMQ", lambda folder: RabbitMQ(folder, 3, quorum=True)),
        tuple(_THREE.values()),
        at_least(3),
        at_most(1),
    ),
    "classic": Contest(
        "RabbitMQ, durable classic queues on one node",
        Setting("RabbitMQ", lambda folder: RabbitMQ(folder, 1, quorum=False)),
        tuple(_ONE.values()),
    ),
    "nats": Contest(
        "NATS JetStream, three replicas",
        Setting("NATS", lambda folder: Nats(folder, 3), 3),
        (_THREE[3, "everysec"],),
    ),
    "streams": Contest(
        "Redis Streams, a consumer group, AOF everysec",
        Setting("Redis", streams),
        (_ONE["everysec"],),
    ),
    "beanstalkd": Contest(
        "beanstalkd, its log synced every second",
        Setting("beanstalkd", beanstalk),
        (_ONE["everysec"],),
    ),
}
"""Every contest by the name that ``--only`` takes."""
