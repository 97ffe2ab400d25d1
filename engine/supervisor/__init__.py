"""The engine's own process: one loop that answers requests, starts runs, takes in reports and grades."""
