"""Runtimes without a daemon: an agent as a child process, in bubblewrap, or in its exported image."""
