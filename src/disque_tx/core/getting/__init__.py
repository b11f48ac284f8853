"""GETJOB: clients wait, other nodes are asked, leases run out."""
