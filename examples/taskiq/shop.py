"""A shop whose tasks taskiq runs, on Disque. ``python examples/run.py taskiq`` shows it."""

import os

from disque_tx.integrations.taskiq import DisqueBroker, DisqueResultBackend

NODES = f"disque://{os.environ.get('DISQUE_NODES', '127.0.0.1:7711')}"

#: A killed worker's tasks are with another one after ten seconds.
broker = DisqueBroker(NODES, retry_s=10).with_result_backend(DisqueResultBackend(NODES))


@broker.task
async def price(item: str, count: int) -> int:
    """What so many cost, in cents."""
    return {"tea": 450, "cup": 1200}[item] * count


@broker.task
async def remind(customer: str) -> str:
    """Sent some time after the order: the delay waits in the node."""
    return f"{customer}: please pay"
