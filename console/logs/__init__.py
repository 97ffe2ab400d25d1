"""Reading, searching and merging agents' logs, for the log view and for `runs logs`."""
