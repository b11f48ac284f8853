"""A shop whose tasks Celery runs, on Disque. ``python examples/run.py celery`` shows it."""

import os

from celery import Celery

import disque_tx.integrations.celery  # noqa: F401 -- registers disque://

NODES = f"disque://{os.environ.get('DISQUE_NODES', '127.0.0.1:7711')}"

app = Celery("shop", broker=NODES, backend=NODES)
#: A killed worker's tasks are with another one after ten seconds.
app.conf.broker_transport_options = {"retry": 10}
app.conf.task_acks_late = True


@app.task
def price(item, count):
    """What so many cost, in cents."""
    return {"tea": 450, "cup": 1200}[item] * count


@app.task
def bill(prices):
    """The sum of an order."""
    return sum(prices)


@app.task
def remind(customer):
    """Sent some time after the order: the delay waits in the node."""
    return f"{customer}: please pay"
