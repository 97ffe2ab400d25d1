#!/bin/bash
set -eu

eval "$(conda shell.bash hook)"
conda activate agent
cd "${AGENT_DIR:-/home/agent}"
exec python drive.py "$@"
