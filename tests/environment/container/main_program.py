"""The container's main process on this host, with another time for looking through what its agent has left."""

from __future__ import annotations

import sys

from mlebench_console.environment.container import main, output

if __name__ == "__main__":
    output.TIDY_SECONDS = float(sys.argv.pop(1))
    sys.exit(main.main())
