"""What a reply cost, from the price table that the optional `genai-prices` package carries (extra `[prices]`)."""

from __future__ import annotations

from transcripts.messages import Usage


def cost_usd(model: str, usage: Usage, base_url: str) -> float | None:
    """The price of one reply in USD, or None if the table is not installed, does not know the model, or no tokens were
    counted. Nothing is fetched."""
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    counts = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens or 0,
    )
    try:
        return float(genai_prices.calc_price(counts, model, provider_api_url=base_url).total_price)
    except LookupError:
        pass
    try:
        # A proxy's address says nothing; the model's name may still.
        return float(genai_prices.calc_price(counts, model).total_price)
    except LookupError:
        return None
