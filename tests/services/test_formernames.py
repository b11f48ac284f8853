"""Names that version 1.0.0 documented and that have moved."""

from __future__ import annotations

import importlib
import sys

from twisted.trial.unittest import SynchronousTestCase

#: Former module → where its names are now.
_FORMER = {
    "disque_tx.services.interfaces": ("disque_tx.plugins", "disque_tx.services.turns.interfaces"),
    "disque_tx.services.root": ("disque_tx.services.node.root",),
}


class FormerNameTests(SynchronousTestCase):
    """Programs that were written for 1.0.0 still run."""

    def test_same(self) -> None:
        """Each former name is the object of today, and its use is warned of once."""
        for former, places in _FORMER.items():
            sys.modules.pop(former, None)
            module = importlib.import_module(former)
            for name in module.__all__:
                found = [
                    getattr(importlib.import_module(place), name)
                    for place in places
                    if hasattr(importlib.import_module(place), name)
                ]
                self.assertIs(found[0], getattr(module, name))
            (warning,) = self.flushWarnings()
            self.assertEqual(DeprecationWarning, warning["category"])
            self.assertIn(places[0], warning["message"])
