"""Reading, searching and following agents' logs, for the log view and for `runs logs`."""
