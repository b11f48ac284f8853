"""What all clients do, as steps without input and output."""
