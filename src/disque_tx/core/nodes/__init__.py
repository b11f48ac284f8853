"""Other nodes: who is in the cluster, what they can do, who has failed, whose clock is wrong."""
