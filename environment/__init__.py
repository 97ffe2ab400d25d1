"""What is on an agent's host: images and instructions, our agents, the validation server, and the runner.

`runner` starts, watches and ends attempts on the host; `container` is what runs inside containers and sandboxes,
with a bare Python; `grading_server` checks the form of submissions for an agent. None of them knows the state or
the engine.
"""
