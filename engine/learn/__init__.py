"""Training: the bundled model, pairs for a canvas on a coder, adapters to a repository. `python -m engine.learn`."""
