"""INFO discovery: what the sources of addresses of other nodes answer, and what comes of it."""

from __future__ import annotations

from disque_tx.commands.base.context import Server


def discovery_fields(server: Server) -> list[tuple[str, str]]:
    """The fields of the section, in order; a line for each source."""
    node = server.node
    discovery = node.cluster.discovery
    sources = list(discovery.sources.values())
    fields = [
        ("discovery_sources", str(len(sources))),
        ("discovery_sources_failing", str(len(discovery.errors()))),
        ("discovery_lookups_failed", str(sum([int(source.failures) for source in sources]))),
        ("discovery_addresses", str(discovery.addresses)),
        ("discovery_addresses_ignored", str(discovery.ignored)),
        ("discovery_meets", str(discovery.meets)),
        ("discovery_error", "; ".join(discovery.errors())),
        ("cluster_awaited_nodes", str(server.awaited_nodes)),
    ]
    for number, source in enumerate(sources):
        age_s = (node.now_ms - source.answered_ms) // 1_000 if source.answered_ms else -1
        fields.append(
            (
                f"discovery_source_{number}",
                f"addresses={len(source.places)},failures={source.failures}"
                f",answered_seconds_ago={age_s},source={source.name}",
            )
        )
    return fields
