"""``python -m disque_tx.spark.pipeline``, and the file for ``spark-submit``."""

from __future__ import annotations

from disque_tx.spark.pipeline.cli.program import main

if __name__ == "__main__":
    main()
