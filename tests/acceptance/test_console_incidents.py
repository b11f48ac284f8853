"""Five seconds, in short: some of the incidents of ``make console-incidents`` on the overview of a
browser, and half a minute of ``make console-quiet``."""

from __future__ import annotations

from typing import Final

from tests.acceptance.consolebench import ConsoleCase
from tests.acceptance.incidents import INCIDENTS, NAMED_S
from tests.acceptance.incidentscene import quiet, scene

#: One of a queue, and one of a node.
_SHOWN: Final = ("queue without consumers", "node down")
_FIRST: Final = "(document.querySelector('ol.findings li')?.innerText ?? '')"
_WELL: Final = "document.querySelector('p.well')?.hidden === false"
_QUIET_S: Final = 30.0
#: On a busy machine; ``make console-incidents`` measures.
_LIMIT_S: Final = 4 * NAMED_S


class IncidentTests(ConsoleCase):
    """A person who has the overview open while something goes wrong."""

    def test_first_finding(self) -> None:
        """What is wrong is the first thing that the page of another node says, and once it is
        mended, all is well again."""
        page = self.browser()
        with scene() as made:
            page.open(f"http://{made.first.ip}:{made.ports[0]}/")
            for incident in (one for one in INCIDENTS if one.name in _SHOWN):
                page.wait(_WELL, f"all is well before: {incident.name}")
                incident.begin(made)
                made.until_first(incident.words(made), _LIMIT_S)
                words = incident.words(made)
                page.wait(f"{_FIRST}.includes({words!r})", incident.name)
                incident.end(made)
                made.until_well()

    def test_quiet(self) -> None:
        """A cluster whose clients have work, jobs that come late and many at once among it, has
        nothing to tell: findings that mean nothing teach people not to read them."""
        with scene() as made:
            found, looks = quiet(made, _QUIET_S)
            self.assertEqual(set(), found)
            self.assertTrue(looks)
            self.assertTrue(made.traffic.done)
