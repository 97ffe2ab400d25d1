"""The engine's process: a loop that answers requests, starts runs, takes in their reports and grades submissions."""
