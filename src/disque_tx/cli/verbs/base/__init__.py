"""What all verbs need: the registry, the cluster, output."""
