"""The hands: a small process per host that owns the host's runs and knows only their directories."""
