"""How long Kaggle may keep us waiting: every request ends, and is asked again by those who have patience."""

from __future__ import annotations

from typing import Any

# Seconds until a connection is there, and of silence on one.
TIMEOUTS = (30.0, 60.0)


def limit_silence(client: Any) -> None:
    """Give every request of Kaggle's client a timeout; it has none, and would wait for ever."""
    from requests.adapters import HTTPAdapter

    class Patient(HTTPAdapter):
        def send(self, request: Any, *arguments: Any, **settings: Any) -> Any:
            settings["timeout"] = TIMEOUTS
            return super().send(request, *arguments, **settings)

    session = client.http_client()._session
    for scheme in ("https://", "http://"):
        session.mount(scheme, Patient())
