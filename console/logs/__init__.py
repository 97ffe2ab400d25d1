"""One reader of agents' logs for the log view and for `runs logs`."""
