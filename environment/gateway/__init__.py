"""The model gateway: passes one agent's model calls on with the operator's keys, and counts what they used."""
