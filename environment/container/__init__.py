"""What runs inside containers and sandboxes, with the standard library alone."""
