"""Sends an order to the worker, and waits for its results."""

import asyncio

from shop import broker, price, remind


async def main() -> None:
    """The order."""
    await broker.startup()
    prices = [await price.kiq("tea", 2), await price.kiq("cup", 1)]
    later = await remind.kicker().with_labels(delay=2).kiq("alice")
    results = [await one.wait_result(timeout=120) for one in prices]
    print("bill:", sum(result.return_value for result in results), "cents")
    print("reminder:", (await later.wait_result(timeout=120)).return_value)
    await broker.shutdown()


asyncio.run(main())
