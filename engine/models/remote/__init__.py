"""Models that a server runs: vLLM 0.31 or newer denoises, all else stays here."""
