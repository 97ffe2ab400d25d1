"""A model-based fault test: real engines, runners and agents under faults, and what must hold whatever happened."""
