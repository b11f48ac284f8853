"""Sends an order to the worker, and waits for its results."""

from shop import price, remind

tea, cup = price.send("tea", 2), price.send("cup", 1)
later = remind.send_with_options(args=("alice",), delay=2000)
print("bill:", sum(one.get_result(block=True, timeout=120_000) for one in (tea, cup)), "cents")
print("reminder:", later.get_result(block=True, timeout=120_000))
