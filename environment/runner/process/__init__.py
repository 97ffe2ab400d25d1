"""Runtimes without a daemon: run an agent as a child process, in bubblewrap, or in its exported image."""
