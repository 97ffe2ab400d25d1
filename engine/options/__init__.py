"""Options of sweeps and arguments of requests: read, checked and written in one place; the floor of the engine."""
