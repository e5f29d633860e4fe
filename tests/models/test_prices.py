"""What a reply costs, by the table that genai-prices carries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent.models.prices import cost_usd
from transcripts.messages import Usage

OPENAI = "https://api.openai.com/v1"


def test_price_is_per_token_and_cached_tokens_are_cheaper() -> None:
    pytest.importorskip("genai_prices")
    full = cost_usd("gpt-4o", Usage(prompt_tokens=1_000_000, completion_tokens=0), OPENAI)
    cached = cost_usd("gpt-4o", Usage(prompt_tokens=1_000_000, completion_tokens=0, cached_tokens=900_000), OPENAI)
    written = cost_usd("gpt-4o", Usage(prompt_tokens=0, completion_tokens=1_000_000), OPENAI)
    assert full is not None
    assert cached is not None
    assert written is not None
    assert 0 < cached < full < written
    # The model's name decides when the address is a proxy's.
    assert cost_usd("gpt-4o", Usage(prompt_tokens=1_000_000, completion_tokens=0), "https://proxy.example/v1") == full


def test_unknown_stays_unknown() -> None:
    assert cost_usd("no-such-model-at-all", Usage(prompt_tokens=1, completion_tokens=1), OPENAI) is None
    assert cost_usd("gpt-4o", Usage(completion_tokens=1), OPENAI) is None


def test_without_the_table_nothing_is_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost_usd("gpt-4o", Usage(prompt_tokens=1, completion_tokens=1), OPENAI) is None


def test_models_are_imported_without_the_sdk() -> None:
    code = (
        "import sys, agent.models, agent.models.recorded, agent.models.mailbox, transcripts;"
        "print([name for name in ('openai', 'httpx2', 'torch', 'rich', 'genai_prices') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
