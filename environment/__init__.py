"""What lives where an agent runs: its warden, relay, instructions, validation server, and our own agents.

It knows nothing of sweeps, state or the engine: the same files serve the process runtime and the images.
"""
