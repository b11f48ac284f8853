"""Sends an order to the worker, and waits for its results."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django_q.tasks import async_task, result  # noqa: E402 -- only after the setup

_WAIT_MS = 120_000

prices = [async_task("shop.tasks.price", "tea", 2), async_task("shop.tasks.price", "cup", 1)]
reminder = async_task("shop.tasks.remind", "alice")
print("bill:", sum(result(task_id, wait=_WAIT_MS) for task_id in prices), "cents")
print("reminder:", result(reminder, wait=_WAIT_MS))
