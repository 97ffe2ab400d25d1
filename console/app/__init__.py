"""The console as an app: it opens the screens, carries out keys and `:` lines, and runs in a terminal or a browser."""
