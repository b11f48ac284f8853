"""The kinds of faults that a targets can hold, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

import attrs

from disque_tx.sim.faults.daemons import fewer_processes, machine_down, process_dies
from disque_tx.sim.faults.evacuations import evacuated
from disque_tx.sim.faults.losses import (
    host_lost,
    one_lost,
    one_lost_of_mixed,
    one_started_empty,
)
from disque_tx.sim.faults.names import name_lies, readdressed
from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.names import LIES
from disque_tx.sim.world.connection import SimConnection
from disque_tx.sim.world.network import End
from disque_tx.sim.world.world import DRIFT_PPM_MAX, STEP_US_MAX

_RESTART_US: Final = (500_000, 4_000_000)
_LOST_US: Final = (1_000_000, 20_000_000)
_REPLACED_US: Final = (200_000, 2_500_000)
_EVACUATED_US: Final = (60_000_000, 90_000_000)
_AWAY_US: Final = (4_000_000, 25_000_000)
_FULL_BYTES: Final = 100
_LOWERED_US: Final = (1_000_000, 18_000_000)
_WEEK_US: Final = (16_000_000, 25_000_000)
_PARTED_US: Final = (8_000_000, 30_000_000)
_LIES_US: Final = (2_000_000, 16_000_000)
_READDRESSED_US: Final = (4_000_000, 5_000_000)


@attrs.frozen
class Fault:
    """A kind of fault. ``begin``: does it and returns what ends it; ``None`` when there is nothing
    it could happen to. ``length_us``: shortest and longest time between the two. What a fault
    destroyed is known by the machine (:attr:`Machine.alive_since_us`).
    """

    begin: Callable[[Targets, Random], End | None]
    length_us: tuple[int, int] = (500_000, 8_000_000)


# -- network -----------------------------------------------------------------------------------


def _split(targets: Targets, random: Random) -> tuple[list[bytes], list[bytes]]:
    """Two sides that have at least one machine each, if there are two."""
    ips = [machine.ip for machine in targets.machines]
    random.shuffle(ips)
    size = random.randint(1, max(1, len(ips) - 1))
    return ips[:size], ips[size:]


def _partition(name: str, one_way: bool) -> Callable[[Targets, Random], End | None]:
    def begin(targets: Targets, random: Random) -> End | None:
        here, there = _split(targets, random)
        if not there:
            return None
        targets.record(name, *here)
        return targets.network.partition(here, there, one_way)

    return begin


def _on_connection(
    name: str, hurt: Callable[[Targets, Random, SimConnection], None]
) -> Callable[[Targets, Random], End | None]:
    def begin(targets: Targets, random: Random) -> None:
        near = targets.connection(random)
        if near is not None:
            targets.record(name, near.local_ip, near.peer_ip)
            hurt(targets, random, near)

    return begin


def _stall(targets: Targets, random: Random, near: SimConnection) -> None:
    near.out.stall(random.randint(100_000, 5_000_000))
    if random.random() < 0.5:
        near.other.out.stall(random.randint(100_000, 5_000_000))


def _reset(targets: Targets, random: Random, near: SimConnection) -> None:
    targets.network.reset(near)


def _half_open(targets: Targets, random: Random, near: SimConnection) -> None:
    targets.network.half_open(random.choice((near, near.other)))


def _one_way_dead(targets: Targets, random: Random, near: SimConnection) -> None:
    random.choice((near, near.other)).out.dead = True


def _late_old(targets: Targets, random: Random, near: SimConnection) -> None:
    targets.network.deliver_late(near, random.randint(300_000, 4_000_000))


def _slow_link(targets: Targets, random: Random) -> End | None:
    machine = random.choice(targets.machines)
    targets.record("slow_link", machine.ip)
    extra_us, bytes_per_s = random.randint(1_000, 300_000), random.randint(5_000, 200_000)
    return targets.network.slow([machine.ip], extra_us, bytes_per_s)


def _message_loss(targets: Targets, random: Random) -> End | None:
    network = targets.network
    targets.record("message_loss")
    network.message_faults = random.uniform(0.02, 0.3)

    def end() -> None:
        network.message_faults = 0.0

    return end


# -- disk --------------------------------------------------------------------------------------


def _on_disk(name: str, switch: str) -> Callable[[Targets, Random], End | None]:
    def begin(targets: Targets, random: Random) -> End | None:
        machine = random.choice(targets.machines)
        targets.record(name, machine.ip)
        setattr(machine.disk, switch, True)
        return lambda: setattr(machine.disk, switch, False)

    return begin


def _empty_disk(targets: Targets, random: Random) -> End | None:
    machine = targets.running(random)
    if machine is None:
        return None
    targets.record("empty_disk", machine.ip)
    machine.kill(power=True)
    machine.disk.wipe()
    machine.lose_memory()
    return lambda: targets.bring_back(machine)


def _stale_disk(targets: Targets, random: Random) -> End | None:
    machine = targets.running(random)
    if machine is None:
        return None
    files = machine.disk.snapshot()

    def end() -> None:
        targets.record("stale_disk", machine.ip)
        machine.kill(power=True)
        machine.disk.restore(files)
        machine.lose_memory()
        targets.bring_back(machine)

    return end


# -- processes ---------------------------------------------------------------------------------


def _stopping(name: str, power: bool) -> Callable[[Targets, Random], End | None]:
    def begin(targets: Targets, random: Random) -> End | None:
        machine = targets.running(random)
        if machine is None:
            return None
        targets.record(name, machine.ip)
        machine.kill(power)
        return lambda: targets.bring_back(machine)

    return begin


def _one_down(targets: Targets, random: Random) -> End | None:
    """Kill a node, if all have been up for a while."""
    if not targets.all_up():
        return None
    machine = random.choice(targets.machines)
    targets.record("one_down", machine.ip)
    machine.kill(False)
    return lambda: targets.bring_back(machine)


def _one_away(targets: Targets, random: Random) -> End | None:
    """Kill a node, pause it, or cut it off from the others, long enough for these to notice, if all
    have been up for a while."""
    if not targets.all_up():
        return None
    machine = random.choice(targets.machines)
    targets.record("one_away", machine.ip)
    targets.returned_us = targets.world.now_us + _AWAY_US[1]
    how = random.choice(("kill", "pause", "cut"))
    if how == "kill":
        machine.kill(False)
        back: End = lambda: targets.bring_back(machine)  # noqa: E731
    elif how == "pause":
        machine.pause(_AWAY_US[1])
        back = machine.resume
    else:
        targets.record("one_cut", machine.ip)
        others = [other.ip for other in targets.machines if other is not machine]
        back = targets.network.partition([machine.ip], others, False)

    def end() -> None:
        targets.returned_us = targets.world.now_us
        back()

    return end


def _power_in_write(targets: Targets, random: Random) -> End | None:
    machine = targets.running(random)
    if machine is None:
        return None
    disk = machine.disk
    disk.lose_power_in(random.randint(0, 5), lambda: targets.record("power_in_write", machine.ip))
    return lambda: disk.lose_power_in(-1, lambda: None)


def _restart(targets: Targets, random: Random) -> End | None:
    machine = targets.running(random)
    if machine is None:
        return None
    targets.record("restart", machine.ip)
    machine.stop()
    return lambda: targets.bring_back(machine)


def _pause(targets: Targets, random: Random) -> End | None:
    machine = targets.running(random)
    if machine is None:
        return None
    targets.record("pause", machine.ip)
    longer = random.uniform(1.1, 2.5)
    machine.pause(int(machine.settings.node_timeout_ms * 1000 * longer))
    return machine.resume


def _clock_step(targets: Targets, random: Random) -> None:
    machine = random.choice(targets.machines)
    targets.record("clock_step", machine.ip)
    machine.clocks.step(random.randint(-STEP_US_MAX, STEP_US_MAX))


def _one_clock(targets: Targets, random: Random) -> End | None:
    """The clock of the first machine is set wrong by up to an hour, and put right again."""
    machine = targets.machines[0]
    if machine.clocks.wrong:
        return None
    targets.record("one_clock", machine.ip)
    us = random.choice((-1, 1)) * random.randint(STEP_US_MAX // 100, STEP_US_MAX)
    machine.clocks.step(us)
    machine.clocks.wrong = True

    def end() -> None:
        machine.clocks.step(-us)
        machine.clocks.wrong = False

    return end


def _clock_drift(targets: Targets, random: Random) -> None:
    machine = random.choice(targets.machines)
    targets.record("clock_drift", machine.ip)
    machine.clocks.drift(random.randint(-DRIFT_PPM_MAX, DRIFT_PPM_MAX))


def _memory(percent: int) -> Callable[[Targets, Random], End | None]:
    def begin(targets: Targets, random: Random) -> End | None:
        machine = targets.running(random)
        if machine is None:
            return None
        targets.record(f"memory_{percent}", machine.ip)
        machine.memory_pressure(percent)
        return lambda: machine.memory_pressure(0)

    return begin


def _memory_full(targets: Targets, random: Random) -> End | None:
    """``maxmemory`` is set far below what is used, so that no acknowledgement makes enough room."""
    machine = targets.running(random)
    if machine is None:
        return None
    targets.record("memory_full", machine.ip)
    machine.limit_memory(_FULL_BYTES)
    return lambda: machine.memory_pressure(0)


#: Every fault by its name, under which ``World.counters`` counts it as ``fault.<name>``.
FAULTS: Final[dict[str, Fault]] = {
    "partition": Fault(_partition("partition", False)),
    "partition_one_way": Fault(_partition("partition_one_way", True)),
    "stall": Fault(_on_connection("stall", _stall)),
    "reset": Fault(_on_connection("reset", _reset)),
    "half_open": Fault(_on_connection("half_open", _half_open)),
    "one_way_dead": Fault(_on_connection("one_way_dead", _one_way_dead)),
    "late_old": Fault(_on_connection("late_old", _late_old)),
    "slow_link": Fault(_slow_link),
    "message_loss": Fault(_message_loss),
    "short_writes": Fault(_on_disk("short_writes", "short_writes")),
    "disk_full": Fault(_on_disk("disk_full", "full")),
    "sync_fails": Fault(_on_disk("sync_fails", "sync_fails")),
    "empty_disk": Fault(_empty_disk, _RESTART_US),
    "stale_disk": Fault(_stale_disk),
    "kill": Fault(_stopping("kill", False), _RESTART_US),
    "power": Fault(_stopping("power", True), _RESTART_US),
    "power_in_write": Fault(_power_in_write),
    "restart": Fault(_restart, _RESTART_US),
    "pause": Fault(_pause, (10_000_000, 10_000_000)),
    "clock_step": Fault(_clock_step),
    "clock_drift": Fault(_clock_drift),
    "memory_75": Fault(_memory(75)),
    "memory_95": Fault(_memory(95)),
    "memory_100": Fault(_memory(100)),
}
#: Faults of workloads that name theirs.
NAMED_FAULTS: Final[dict[str, Fault]] = {
    "one_down": Fault(_one_down, _RESTART_US),
    "one_away": Fault(_one_away, _AWAY_US),
    "one_lost": Fault(one_lost, _LOST_US),
    "one_replaced": Fault(one_lost, _REPLACED_US),
    "one_lost_of_mixed": Fault(one_lost_of_mixed, _LOST_US),
    "host_lost": Fault(host_lost, _LOST_US),
    "parted": Fault(_partition("parted", False), _PARTED_US),
    "readdressed": Fault(readdressed, _READDRESSED_US),
    **{f"name_{lie}": Fault(name_lies(lie), _LIES_US) for lie in LIES},
    "one_started_empty": Fault(one_started_empty, _RESTART_US),
    "one_evacuated": Fault(evacuated(1), _EVACUATED_US),
    "two_evacuated": Fault(evacuated(2), _EVACUATED_US),
    "one_clock": Fault(_one_clock, _AWAY_US),
    "memory_full": Fault(_memory_full),
    "process_dies": Fault(process_dies, (100_000, 1_000_000)),
    "machine_down": Fault(machine_down, _RESTART_US),
    "fewer_processes": Fault(fewer_processes("fewer_processes", False), _LOWERED_US),
    "fewer_for_a_week": Fault(fewer_processes("fewer_for_a_week", True), _WEEK_US),
}
#: What these faults do to data, counted in the same way.
EFFECTS: Final = (
    *("unsynced_kept", "unsynced_lost", "unsynced_torn", "unsynced_garbage"),
    *("no_room", "short_write", "sync_failed"),
    *("message_dropped", "message_duplicated", "message_overtaken"),
)
