"""The data that screens and commands show, read from the state and files into frozen dataclasses; it draws nothing."""
