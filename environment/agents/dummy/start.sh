#!/bin/bash
set -eu

eval "$(conda shell.bash hook)"
conda activate agent
exec python "${AGENT_DIR:-/home/agent}/dummy.py"
