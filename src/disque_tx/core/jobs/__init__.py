"""Jobs: their states, their memory and order, and what is remembered about each."""
