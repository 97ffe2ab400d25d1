"""The data that several screens, or commands too, show, read from the state and files; it draws nothing."""
