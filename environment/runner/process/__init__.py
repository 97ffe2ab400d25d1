"""The process runtime: an agent as a child process, inside bubblewrap where that works."""
