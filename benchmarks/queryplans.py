"""The plans of the main queries of the pipeline, as Spark explains them.

``python -m benchmarks.queryplans`` writes them to ``benchmarks/plans``, where they are checked in;
tests/spark/pipeline/lifecycle/test_plans.py holds that the present ones have the same operators.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark import session
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.lifecycle import nodes, queues
from disque_tx.spark.pipeline.lifecycle.audit import suspects
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.lifecycle.totals import SIGN, distributions, sums, totals
from disque_tx.spark.pipeline.tables import counting
from disque_tx.spark.pipeline.tables.events import EVENT_COLUMNS

#: Tables without rows are small enough to be sent to everybody, which real ones are not.
PLAN_SETTINGS: Final = {**SETTINGS, "spark.sql.autoBroadcastJoinThreshold": "-1"}
FOLDER: Final = Path(__file__).parent / "plans"
#: What changes from run to run: numbers of columns and plans, and places of files.
_CHANGING: Final = (
    (re.compile(r"#\d+L?"), ""),
    (re.compile(r"\[plan_id=\d+\]"), "[plan]"),
    (re.compile(r"_common_expr_\d+|_groupingexpression"), "_common"),
    (re.compile(r"file:[^\], ]*"), "file"),
    (re.compile(r"Location: \S+ ?\([^)]*\)\[[^\]]*\]"), "Location"),
)
_OPERATOR: Final = re.compile(r"^[\s:+*()\d-]*([A-Z]\w*(?: (?:parquet|json))?)")
_EXTENT: Final = Extent(tuple(letter * 40 for letter in "abc"), 1_795_202_588_193_000, 500, 0)


def plans(spark: SparkSession, folder: Path) -> Mapping[str, str]:
    """Query → its plan. ``folder``: an empty one, for tables without rows."""

    def empty(name: str, columns: str) -> DataFrame:
        (folder / name).mkdir()
        return spark.read.schema(columns).parquet(str(folder / name))

    events = empty("events", f"{EVENT_COLUMNS}, dt DATE")
    made = jobs(events, _EXTENT)
    kept = empty("jobs", made._jdf.schema().toDDL())
    counted = kept.withColumn(SIGN, fn.lit(1))
    queries: dict[str, Any] = {
        "ingest-runs": counting.counted(events),
        "jobs": made,
        "queues": queues.with_backlog(queues.windows(events, kept, 60)),
        "totals": totals(sums(counted), distributions(counted)),
        "clocks": nodes.clocks(events, kept),
        "audit": suspects(events, kept, _EXTENT, {"a" * 40: 1}, 1000),
    }
    return {name: _explained(query) for name, query in queries.items()}


def operators(plan: str) -> Counter[str]:
    """How often each operator stands in a plan."""
    found = (_OPERATOR.match(line) for line in plan.splitlines())
    return Counter(match.group(1) for match in found if match)


def _explained(query: DataFrame) -> str:
    plan = str(query._jdf.queryExecution().executedPlan().toString())
    for pattern, word in _CHANGING:
        plan = pattern.sub(word, plan)
    return plan


def main() -> None:
    """Write them."""
    spark = session("plans", "local[2]", PLAN_SETTINGS)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, plan in plans(spark, Path(folder)).items():
            (FOLDER / f"{name}.txt").write_text(plan)


if __name__ == "__main__":
    main()
