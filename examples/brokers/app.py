"""One Celery application, whose broker and its options come from the environment: ``compare.py``
runs it on two.

Every task writes a line when it is done, so that it can be counted how often that was.
"""

import json
import os
import time

from celery import Celery

import disque_tx.integrations.celery  # noqa: F401 -- registers disque://

app = Celery("app", broker=os.environ["BROKER"])
app.conf.task_ignore_result = True
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
app.conf.broker_connection_retry_on_startup = True
app.conf.broker_transport_options = json.loads(os.environ["OPTIONS"])


@app.task
def work(name, takes_s):
    """Take so long, then write down that it is done."""
    time.sleep(takes_s)
    line = f"{name}\n".encode()
    handle = os.open(os.environ["DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)
