"""The Docker runtime: containers of the validation server, of the agent in its network namespace, and of a proxy."""
