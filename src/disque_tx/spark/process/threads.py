"""Several pieces of work at once, in threads of this process, and Ctrl-C meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from disque_tx.client.signals import postponed

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


def in_threads(
    do: Callable[[_Work], _Result], work: Sequence[_Work], threads: int
) -> list[_Result]:
    """The result of each piece of work, in their order.

    A signal takes effect when the pieces that were begun are done; the others are done only if its
    handler raises nothing. A second one takes effect at once. After an error, which is raised, no
    more pieces are begun.
    """
    results: dict[int, _Result] = {}
    while missing := [at for at in range(len(work)) if at not in results]:
        failed: list[int] = []
        with postponed() as arrived, ThreadPoolExecutor(min(threads, len(missing))) as pool:

            def one(at: int, arrived: list[int] = arrived, failed: list[int] = failed) -> None:
                if arrived or failed:
                    return
                try:
                    results[at] = do(work[at])
                except BaseException:
                    failed.append(at)
                    raise

            calls = [pool.submit(one, at) for at in missing]
        for call in calls:
            call.result()
    return [results[at] for at in range(len(work))]
