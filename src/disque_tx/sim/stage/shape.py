"""What a seed leads to, before anything runs: how large, which clients, which faults.

Seeds are dealt, so that every workload meets every fault: of any 500 seeds in a row, each pair of a
workload and a fault is the task of at least one. Every fifth seed has no fault at all, because many
promises are only as strict as they can be when nothing goes wrong. Everything else is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Final

import attrs

from disque_tx.sim.faults.kinds import FAULTS
from disque_tx.sim.stage.workloads import GROUPS, WORKLOADS, group, workload_called
from disque_tx.sim.world.world import World

#: A workload and a fault.
Pair = tuple[str, str]
#: So many seeds in a row hold every pair.
DEAL: Final = 500
_SHARING_NODES_MIN: Final = 3
_SHARING: Final = 0.25
_PROCESSES_FAULT_S: Final = 40
_LOSSES_FAULT_S: Final = 50
_NAMES_FAULT_S: Final = 60
#: So that two are left when one is lost.
_LOST_HOSTS: Final = 3
#: In runs of seeds from this one on clients use everything, in those below only what the workload
#: says: so each of these shows one thing.
_EVERYTHING_FROM: Final = 2_000
#: Every seed that this divides has no faults.
_QUIET_EVERY: Final = 5
#: Who has the messages that are ours: all nodes, every other one, or none.
BULK: Final = ("all", "all", "some", "some", "none")
_SIZES: Final = (1, 2, 3, 3, 3, 3, 4, 5, 5, 7)
#: Faults that show in what is on the disk only: the nodes keep a log then.
_ON_DISK: Final = frozenset(
    ("short_writes", "disk_full", "sync_fails", "stale_disk", "power_in_write")
)
#: The time of day matters to those who read it from a disk: they keep a log, and start again.
_CLOCK: Final = "clock_step"
_CLOCK_COMPANIONS: Final = ("kill", "restart")


@attrs.define
class Shape:
    """What is dealt and drawn before a run; any of it can be set instead, to make a failing run
    smaller.

    ``faults``: names of those that may strike. ``first``: the one of them that surely does, if any.
    ``fault_s``: for how long. ``intensity``: faults per second. ``password``: clients need one.
    ``stay_leaving``: nodes that are leaving when the faults end are not called back. ``bulk``:
    which nodes have the messages that are ours; the others ignore these, as the original does.
    ``hosts``: number of hosts of the nodes; 0: each has its own. ``everything``: clients also use
    keys, schedules, dead letters, patterns and limits, whatever the workload is.
    """

    nodes: int
    clients: int
    workload: str
    faults: frozenset[str]
    fault_s: int
    intensity: float
    pace_ms: int
    queues: int
    appendonly: bool
    appendfsync: str
    first: str = ""
    password: bool = False
    stay_leaving: bool = False
    bulk: str = "all"
    hosts: int = 0
    everything: bool = False

    def has_own(self, number: int) -> bool:
        """Whether the node with this number has the messages that are ours."""
        return self.bulk == "all" or (self.bulk == "some" and number % 2 == 0)


def pairs() -> list[Pair]:
    """All pairs in the order in which they are dealt."""
    dealt = [(workload, fault) for workload in sorted(WORKLOADS) for fault in sorted(FAULTS)]
    Random("pairs").shuffle(dealt)
    return dealt


def _task(seed: int) -> Pair:
    """The workload of a seed and the fault that it surely has; no fault in every fifth."""
    fifth, rest = divmod(seed, _QUIET_EVERY)
    workloads = group(seed)
    if workloads is not WORKLOADS:
        names, faults = sorted(workloads), sorted(FAULTS)
        name = names[seed % len(names)]
        faults = sorted(workloads[name].faults) or faults
        return name, faults[seed // len(names) % len(faults)] if rest else ""
    if rest == 0:
        names = sorted(WORKLOADS)
        return names[fifth % len(names)], ""
    dealt = _DEALT
    return dealt[(fifth * (_QUIET_EVERY - 1) + rest - 1) % len(dealt)]


_DEALT: Final = pairs()


def draw_shape(world: World) -> Shape:
    """The shape that belongs to the world's seed."""
    random = world.random("shape")
    workload, first = _task(world.seed)
    sizes: tuple[int, ...] = _SIZES[1:] if first.startswith("partition") else _SIZES
    chosen = workload_called(workload)
    if chosen.keys or chosen.key_pool or chosen.crowd or chosen.tables:
        sizes = _SIZES[2:]
    names = sorted(FAULTS)
    faults: set[str] = set()
    named = workload_called(workload).faults
    if first and named:
        faults = set(named)
    elif first:
        faults = {first, *random.sample(names, random.choice((0, 2, 5, len(names))))}
    if _CLOCK in faults:
        faults.update(_CLOCK_COMPANIONS)
    logs = workload_called(workload).logs or _CLOCK in faults or first in _ON_DISK
    nodes = random.choice(sizes)
    shape = Shape(
        nodes=nodes,
        clients=random.randint(1, 20),
        workload=workload,
        faults=frozenset(faults),
        fault_s=random.choice((10, 20, 40)),
        intensity=random.choice((0.2, 0.5, 1.0, 2.0)),
        pace_ms=random.choice((50, 200, 600)),
        queues=random.randint(1, 3),
        appendonly=logs or random.random() < 0.3,
        appendfsync=random.choice(("always", "always", "everysec", "no")),
        first=first,
        password=random.random() < 0.3,
        stay_leaving=workload_called(workload).leaves and random.random() < 0.5,
        bulk=random.choice(BULK),
        hosts=_hosts(world, nodes),
        everything=_EVERYTHING_FROM <= world.seed < min(GROUPS),
    )
    return shaped(world, shape)


def shaped(world: World, shape: Shape) -> Shape:
    """The shape, changed as its workload needs it."""
    chosen = workload_called(shape.workload)
    if chosen.losses or chosen.evacuates:
        shape = with_losses(world, shape)
    if chosen.mixed:
        shape = attrs.evolve(shape, bulk="some")
    if chosen.named:
        shape = with_names(world, shape)
    if chosen.losses and chosen.processes:
        return with_hosts(shape)
    return with_processes(world, shape) if chosen.processes else shape


def with_losses(world: World, shape: Shape) -> Shape:
    """The shape with nodes enough for all copies when one is lost, with time enough for several to
    be lost one by one, with few jobs, and without logs, of which nothing would be left. In a
    quarter of the runs some nodes are originals."""
    random = world.random("losses")
    nodes = random.choice((4, 4, 4, 5, 5))
    bulk = random.choice(("all", "all", "all", "some"))
    return attrs.evolve(
        shape,
        nodes=nodes,
        clients=min(shape.clients, 6),
        pace_ms=600,
        fault_s=_LOSSES_FAULT_S,
        intensity=1.0,
        appendonly=False,
        bulk=bulk,
        hosts=_hosts(world, nodes),
    )


def with_names(world: World, shape: Shape) -> Shape:
    """The shape with nodes of ours only, as others know no name of a cluster, each on a host of its
    own; with few faults, and time between them."""
    random = world.random("names shape")
    return attrs.evolve(
        shape,
        nodes=random.choice((3, 4, 4, 5)),
        clients=min(shape.clients, 6),
        pace_ms=600,
        fault_s=_NAMES_FAULT_S,
        intensity=random.choice((0.1, 0.2, 0.4)),
        appendfsync="always",
        bulk="all",
        hosts=0,
    )


def with_hosts(shape: Shape) -> Shape:
    """The shape with hosts enough for copies on two of them when one is lost."""
    return attrs.evolve(shape, hosts=_LOST_HOSTS, nodes=2 * _LOST_HOSTS, bulk="all")


def with_processes(world: World, shape: Shape) -> Shape:
    """The shape with two or three hosts, and two or three processes on each; and with time enough
    for a daemon to have fewer of them for a while."""
    random = world.random("processes")
    hosts = random.choice((2, 2, 3))
    nodes = hosts * random.choice((2, 3))
    return attrs.evolve(shape, hosts=hosts, nodes=nodes, fault_s=_PROCESSES_FAULT_S)


def _hosts(world: World, nodes: int) -> int:
    """In a quarter of the clusters with three nodes or more, some share a host."""
    random = world.random("hosts")
    if nodes < _SHARING_NODES_MIN or random.random() >= _SHARING:
        return 0
    return min(random.choice((1, 2, 2, 3)), nodes - 1)


def dealt_pairs(seeds: Iterable[int]) -> Counter[Pair]:
    """How many of the seeds may have which fault with which workload; nothing runs for that.

    The fault that a seed surely has strikes in it; the others strike if chance wants it.
    """
    counts: Counter[Pair] = Counter(dict.fromkeys(_DEALT, 0))
    for seed in seeds:
        shape = draw_shape(World(seed))
        counts.update((shape.workload, fault) for fault in shape.faults)
    return counts


def sure_pairs(seeds: Iterable[int]) -> Counter[Pair]:
    """How many of the seeds surely have which fault with which workload."""
    counts: Counter[Pair] = Counter(dict.fromkeys(_DEALT, 0))
    counts.update(pair for pair in map(_task, seeds) if pair[1])
    return counts


def table(seeds: Iterable[int]) -> str:
    """Pairs for people: a fault per line, a workload per column, in how many seeds it surely
    strikes and, behind the stroke, in how many it may."""
    seeds = list(seeds)
    sure, may = sure_pairs(seeds), dealt_pairs(seeds)
    names = sorted(WORKLOADS)
    lines = [f"{chr(ord('A') + place)}  {name}" for place, name in enumerate(names)]
    heads = "".join(f"{chr(ord('A') + place):>8}" for place in range(len(names)))
    lines += ["", " " * 18 + heads]
    for fault in sorted(FAULTS):
        cells = [f"{sure[name, fault]}/{may[name, fault]}" for name in names]
        lines.append(f"{fault:<18}" + "".join(f"{cell:>8}" for cell in cells))
    lines.append(f"\n{len(seeds)} seeds; the rarest pair: {min(sure.values())}/{min(may.values())}")
    return "\n".join(lines)
