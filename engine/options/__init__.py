"""The options of sweeps, each in one place, and the arguments of requests to the engine."""
