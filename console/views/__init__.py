"""What screens show, read from the state and from files and turned into frozen dataclasses; nothing here draws."""
