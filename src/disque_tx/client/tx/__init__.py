"""The Twisted client: :class:`disque_tx.client.DisqueClient`.

From the wire up: ``protocol`` (bytes to replies), ``connection`` (one open connection), ``pool``
(the connections to one node), ``session`` (which node, and what to do when one is lost),
``client`` (what programs call). Importing any of it imports txredisapi, which imports the global
reactor; that is used only by clients that are made without a reactor.
"""

from __future__ import annotations
