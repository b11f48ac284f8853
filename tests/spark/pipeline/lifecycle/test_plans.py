"""The plans of the main queries, compared with those that are checked in."""

from __future__ import annotations

from benchmarks.queryplans import FOLDER, PLAN_SETTINGS, operators, plans
from tests.spark.pipeline.cases import PipelineCase

#: Operators that move rows through Python, or compare every row with every other one.
_NEVER = ("CartesianProduct", "BroadcastNestedLoopJoin", "BatchEvalPython", "ArrowEvalPython")


class PlanTests(PipelineCase):
    """A change that adds a shuffle or a sort is noticed without a measurement."""

    settings = PLAN_SETTINGS

    def test_operators(self) -> None:
        """The operators are those of the plans in benchmarks/plans; write these again with ``python
        -m benchmarks.queryplans`` after an intended change of a query."""
        found = plans(self.spark, self.folder)
        self.assertEqual({path.stem for path in FOLDER.glob("*.txt")}, set(found))
        for name, plan in found.items():
            expected = operators((FOLDER / f"{name}.txt").read_text())
            self.assertEqual(expected, operators(plan), f"{name}:\n{plan}")
            for operator in _NEVER:
                self.assertNotIn(operator, plan, name)

    def test_jobs_are_not_sorted(self) -> None:
        """The events of a job are aggregated after one shuffle by job, without a sort."""
        plan = plans(self.spark, self.folder)["jobs"]
        events = plan[plan.index("HashAggregate(keys=[job_id]") :]
        events = events[: events.index("FileScan")]
        self.assertEqual((1, 0), (events.count("Exchange hashpartitioning"), events.count("Sort")))
