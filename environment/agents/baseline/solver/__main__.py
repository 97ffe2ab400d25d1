"""`python -m solver`: solve the competition that the environment names."""

import sys

from .train import main

sys.exit(main())
