"""A signal that asks a process to end, at any moment."""

from __future__ import annotations

import subprocess
import sys

# The signal comes before each line of `wait`, also of those that the standard library has for its own.
_AT_EVERY_LINE = """
import signal, sys
from mlebench_console.foundation.daemons import EndSignal

seen = set()

def signalled(frame, event, argument):
    place = (frame.f_code, frame.f_lineno)
    if event == "line" and place not in seen:
        seen.add(place)
        signal.raise_signal(signal.SIGTERM)
    return signalled

end_signal = EndSignal(signal.SIGTERM)
sys.settrace(lambda frame, event, argument: signalled if frame.f_code.co_name == "wait" else None)
end_signal.wait(600)
sys.settrace(None)
assert end_signal.at is not None and len(seen) > 3
"""


def test_a_signal_in_the_middle_of_a_wait_ends_it() -> None:
    subprocess.run([sys.executable, "-c", _AT_EVERY_LINE], check=True, timeout=60)
