"""What a query gave back."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.source.returned import Returned

_DAY_S = 86_400


class ReturnedTests(SynchronousTestCase):
    """Files in a checkpoint."""

    def test_kept_for_a_day(self) -> None:
        """What was given back in several batches, in another process, is known for a day; then the
        files are removed."""
        checkpoint = Path(self.mktemp()).resolve()
        now_s = 1_700_000_000.0
        reader = Returned(str(checkpoint), lambda: now_s)
        file = f"disque/{'a' * 16}/1-{'b' * 16}"
        batch = {"seq": 1, "file": file}
        self.assertEqual(set(), reader.ids(batch))
        (checkpoint / "offsets").mkdir(parents=True)
        (checkpoint / "offsets" / "9").write_text("before")
        (checkpoint / "offsets" / "10").write_text(f'v1\n{{"file":"{file}"}}\n{{"seq":2}}')
        for ids in (["a", "b"], ["c"]):
            Returned(str(checkpoint)).add(ids)
        files = [*(checkpoint / "disque" / "returned").iterdir()]
        os.utime(files[0], (now_s - _DAY_S - 1, now_s - _DAY_S - 1))
        os.utime(files[1], (now_s - _DAY_S + 1, now_s - _DAY_S + 1))
        left = reader.ids(batch)
        self.assertEqual(set(), reader.ids({**batch, "file": file.replace("/1-", "/2-")}))
        self.assertIn(left, ({"a", "b"}, {"c"}))
        self.assertEqual(left, reader.ids(batch))
        now_s += 2
        self.assertEqual(set(), reader.ids(batch))
        self.assertEqual([], [*(checkpoint / "disque" / "returned").iterdir()])
