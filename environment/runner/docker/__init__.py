"""The Docker runtime: a grader sidecar, an agent's container in its network namespace, perhaps a proxy."""
