"""Everything that does input and output: the only server code that imports Twisted."""
