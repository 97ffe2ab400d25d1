"""What can be done to runs and datasets: what it applies to, what is asked first, which request is filed."""
