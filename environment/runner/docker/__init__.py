"""The Docker runtime: a grader sidecar, the agent's container in its network namespace, and an optional proxy."""
