"""Sends an order to the worker, and waits for its results."""

import os
import time
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django.utils import timezone  # noqa: E402 -- only after the setup
from shop.tasks import price, remind  # noqa: E402


def value(result):
    """What a task returned, when it is done."""
    deadline_s = time.monotonic() + 120
    while not result.is_finished and time.monotonic() < deadline_s:
        time.sleep(0.1)
        result.refresh()
    return result.return_value


prices = [price.enqueue("tea", 2), price.enqueue("cup", 1)]
later = remind.using(run_after=timezone.now() + timedelta(seconds=2)).enqueue("alice")
print("bill:", sum(value(result) for result in prices), "cents")
print("reminder:", value(later))
