"""Commands that people type or programs pipe in."""
