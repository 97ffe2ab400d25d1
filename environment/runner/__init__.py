"""The runner: a small process per host that starts, watches and ends attempts; it knows run directories only."""
