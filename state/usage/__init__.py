"""Usage by attempts: model calls and their budgets, network traffic, resource samples; and providers' outages."""
