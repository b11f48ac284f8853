"""A worker as others see it: what it says about itself, and what it is told."""
