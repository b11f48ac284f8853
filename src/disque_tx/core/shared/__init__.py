"""What all nodes of ours have alike: tables, and the policies for queues in one of them."""
