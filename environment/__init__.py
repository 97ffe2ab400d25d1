"""Everything on an agent's host: images and instructions, our agents, the validation server, and the runner.

`runner` starts, watches and ends attempts on the host; `container` runs inside containers and sandboxes, with
the standard library alone; `validation_server` checks the form of an agent's submissions. None of them imports the
state or the engine.
"""
