"""The command line: one module per command or group, imported only when that command is used."""
