"""The process of an attempt's model gateway, and its supervision by the runner."""
