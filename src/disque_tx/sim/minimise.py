"""A failing run made smaller: fewer faults, clients, nodes, seconds, as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from disque_tx.sim.checked import checked_run
from disque_tx.sim.shape import Shape


def fails(seed: int, shape: Shape) -> bool:
    """Whether this run breaks a promise."""
    return bool(checked_run(seed, shape).execute())


def smaller(shape: Shape) -> Iterator[Shape]:
    """Shapes with a little less in them."""
    if shape.clients > 2:
        yield attrs.evolve(shape, clients=max(2, shape.clients // 2))
    if shape.fault_s > 5:
        yield attrs.evolve(shape, fault_s=shape.fault_s // 2)
    names = sorted(shape.faults)
    half = len(names) // 2
    if half:
        yield attrs.evolve(shape, faults=frozenset(names[:half]))
        yield attrs.evolve(shape, faults=frozenset(names[half:]))
    for name in names:
        yield attrs.evolve(shape, faults=shape.faults - {name})
    if shape.nodes > 2:
        yield attrs.evolve(shape, nodes=shape.nodes - 1)
    if shape.queues > 1:
        yield attrs.evolve(shape, queues=1)
    if shape.password:
        yield attrs.evolve(shape, password=False)
    if shape.appendonly:
        yield attrs.evolve(shape, appendonly=False)


def minimise(
    seed: int, shape: Shape, tries: int, failing: Callable[[int, Shape], bool] = fails
) -> Shape:
    """The smallest failing shape found with at most ``tries`` runs."""
    best = shape
    left = tries
    found = True
    while found and left > 0:
        found = False
        for candidate in smaller(best):
            left -= 1
            if failing(seed, candidate):
                best, found = candidate, True
                break
            if left <= 0:
                break
    return best
