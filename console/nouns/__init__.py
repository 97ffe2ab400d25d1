"""What the console lists, one module a noun: its row, its fields, its filter and its JSON document."""
