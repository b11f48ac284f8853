"""What is wrong with a cluster: the same for the console, programs and the command line."""
