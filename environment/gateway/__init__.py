"""The model gateway: forwards one agent's model calls with the operator's keys, and counts their usage."""
