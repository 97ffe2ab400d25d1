"""The Textual app: its shell, widgets, keys and look; screens are in `console.screens`."""
