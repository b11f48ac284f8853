"""How Spark goes about the main queries, beside the plans that were checked in."""

from __future__ import annotations

from benchmarks.queryplans import FOLDER, PLAN_SETTINGS, operators, plans
from tests.spark.pipeline.cases import PipelineCase

#: What moves rows through Python, or every row past every other one.
_NEVER = ("CartesianProduct", "BroadcastNestedLoopJoin", "BatchEvalPython", "ArrowEvalPython")


class PlanTests(PipelineCase):
    """A change that costs a shuffle or a sort is seen before it is measured."""

    settings = PLAN_SETTINGS

    def test_operators(self) -> None:
        """The operators are those of the plans in benchmarks/plans; make them anew with
        ``python -m benchmarks.queryplans`` when a query was meant to change."""
        found = plans(self.spark, self.folder)
        self.assertEqual({path.stem for path in FOLDER.glob("*.txt")}, set(found))
        for name, plan in found.items():
            expected = operators((FOLDER / f"{name}.txt").read_text())
            self.assertEqual(expected, operators(plan), f"{name}:\n{plan}")
            for operator in _NEVER:
                self.assertNotIn(operator, plan, name)

    def test_jobs_are_not_sorted(self) -> None:
        """Events of a job are added up in place, after one shuffle by job."""
        plan = plans(self.spark, self.folder)["jobs"]
        events = plan[plan.index("HashAggregate(keys=[job_id]") :]
        events = events[: events.index("FileScan")]
        self.assertEqual((1, 0), (events.count("Exchange hashpartitioning"), events.count("Sort")))
