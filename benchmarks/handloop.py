"""What somebody would write by hand to store jobs: GETJOB with the blocking client, a Parquet file
with pyarrow for every 10,000 jobs, ACKJOB.

``python -m benchmarks.handloop FOLDER QUEUE PORT…`` does it once, and prints how many jobs it
stored and the CPU seconds it took, so that the clients of two versions can be compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from disque_tx import Disque
from disque_tx.client.values import Job

_FILE_JOBS: Final = 10_000
_AT_ONCE: Final = 500


def by_hand(folder: Path, queue: str, ports: Sequence[int]) -> int:
    """The loop over these nodes; returns how many jobs it stored."""
    folder.mkdir()
    stored = 0
    clients = [Disque(f"127.0.0.1:{port}", discover=False) for port in ports]
    for client in clients:
        jobs: list[Job] = []
        while True:
            found = client.get_jobs(queue, count=_AT_ONCE, no_hang=True)
            jobs += found
            if len(jobs) >= _FILE_JOBS or (jobs and not found):
                columns = {
                    "id": [job.id for job in jobs],
                    "queue": [job.queue for job in jobs],
                    "body": [job.body for job in jobs],
                    "nacks": [job.nacks for job in jobs],
                    "additional_deliveries": [job.additional_deliveries for job in jobs],
                }
                stored += len(jobs)
                pq.write_table(pa.table(columns), folder / f"{stored}.parquet", compression="zstd")
                for at in range(0, len(jobs), _AT_ONCE):
                    client.ack_jobs(*(job.id for job in jobs[at : at + _AT_ONCE]))
                jobs = []
            if not found:
                break
        client.close()
    return stored


def main(folder: str, queue: str, *ports: str) -> None:
    """Run it, and print the figures."""
    begun_s = time.process_time()
    stored = by_hand(Path(folder), queue, [int(port) for port in ports])
    print(stored, time.process_time() - begun_s)


if __name__ == "__main__":
    main(*sys.argv[1:])
