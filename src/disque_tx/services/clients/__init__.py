"""The connections of clients: whom to admit, what they speak, where they connect."""
