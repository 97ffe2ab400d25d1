"""`python -m mlebench_console.environment.gateway.probe URL`: try whether a provider can be connected to.

The gateway asks this process before it records a provider as unreachable: nothing that an agent does to the gateway
delays or exhausts it. No request is sent, so that nothing is paid.
"""

from __future__ import annotations

import http.client
import sys
import urllib.request
from base64 import b64encode
from urllib.parse import unquote, urlsplit

NOT_REACHED = 3
_SECONDS = 10.0


def proxy_to(url: str) -> str | None:
    """Return the operator's proxy to a provider; None where there is none."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def main() -> int:
    """Connect, with TLS where the provider has it, and return the process's exit code."""
    url = sys.argv[1]
    there, proxy = urlsplit(url), proxy_to(url)
    first = urlsplit(proxy or url)
    kind = http.client.HTTPSConnection if there.scheme == "https" else http.client.HTTPConnection
    connection = kind(first.hostname or "", first.port, timeout=_SECONDS)
    if proxy and there.scheme == "https":
        user = f"{unquote(first.username or '')}:{unquote(first.password or '')}"
        headers = {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"}
        connection.set_tunnel(there.hostname or "", there.port, headers if first.username else None)
    try:
        connection.connect()
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return NOT_REACHED
    connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
