"""What all nodes of ours have alike: policies for queues."""
