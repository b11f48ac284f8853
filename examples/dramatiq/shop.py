"""A shop whose actors dramatiq runs, on Disque. ``python examples/run.py dramatiq`` shows it."""

import os

import dramatiq
from dramatiq.results import Results

from disque_tx.integrations.dramatiq import DisqueBackend, DisqueBroker

NODES = f"disque://{os.environ.get('DISQUE_NODES', '127.0.0.1:7711')}"

#: A killed worker's messages are with another one after ten seconds.
broker = DisqueBroker(NODES, retry_s=10)
broker.add_middleware(Results(backend=DisqueBackend(NODES)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def price(item, count):
    """What so many cost, in cents."""
    return {"tea": 450, "cup": 1200}[item] * count


@dramatiq.actor(store_results=True)
def remind(customer):
    """Sent some time after the order: the delay waits in the node."""
    return f"{customer}: please pay"
