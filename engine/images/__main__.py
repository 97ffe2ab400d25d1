"""`python -m mlebench_console.engine.images FOLDER`: build the images of the order in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from mlebench_console.engine.images.builds import main

if __name__ == "__main__":
    main(Path(sys.argv[1]))
