"""Who acts in a run: producers, consumers, operators."""
