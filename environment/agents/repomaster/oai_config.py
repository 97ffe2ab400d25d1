"""RepoMaster's model settings, read from the environment, with the interface that its modules expect."""

from __future__ import annotations

import os
from typing import Any


def get_llm_config(
    api_type: str = "basic",  # noqa: ARG001  # RepoMaster's callers give it; there is but one model here
    timeout: int = 240,
    temperature: float = 0.1,
    top_p: float = 0.95,
    service_type: str = "",  # noqa: ARG001  # likewise
) -> dict[str, Any]:
    """Return the settings of the model."""
    model = {"model": os.environ["OPENAI_MODEL"], "api_key": os.environ["OPENAI_API_KEY"]}
    server = os.environ.get("OPENAI_BASE_URL")
    if server:
        model["base_url"] = server
    return {"config_list": [model], "timeout": timeout, "temperature": temperature, "top_p": top_p}
