"""Who may be a member of the cluster."""
