"""What attempts use: model calls and their budgets, hosts on the network, resource samples; and providers' outages."""
