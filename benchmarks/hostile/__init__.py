"""What one client can do to others: see ``__main__``."""
