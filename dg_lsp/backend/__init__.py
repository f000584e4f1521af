"""The engine's client: discovery, launch, requests, failures."""
