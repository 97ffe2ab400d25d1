"""The records of traffic.json: what went through an attempt's proxy, by the rules that allowed it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class HostTraffic:
    """The traffic with the hosts of one rule so far."""

    connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def send(self, count: int) -> None:
        """Count bytes sent."""
        self.sent_bytes += count

    def receive(self, count: int) -> None:
        """Count bytes received."""
        self.received_bytes += count


@dataclass
class Traffic:
    """traffic.json: the traffic of each rule, not of each host, since an agent can make up any number of hosts.

    Attributes:
        hosts: by the text of the rule.
        refused: the number of refused requests by well-known host, and of all other hosts together.
    """

    hosts: dict[str, HostTraffic] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
