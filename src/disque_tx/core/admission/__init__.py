"""Who may be a member: the name of the cluster, and nodes that were forgotten."""
