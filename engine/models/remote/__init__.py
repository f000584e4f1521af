"""Models that a server runs: vLLM 0.31 or newer denoises canvases, everything else happens here."""
