"""Sends an order to the worker, and waits for its results."""

from celery import chord
from shop import bill, price, remind

order = chord([price.s("tea", 2), price.s("cup", 1)], bill.s()).delay()
later = remind.apply_async(("alice",), countdown=2)
print("bill:", order.get(timeout=120), "cents")
print("reminder:", later.get(timeout=120))
