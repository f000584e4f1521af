"""What is trained: the bundled model, canvases on a coder, adapters to a repository. `python -m engine.learn`."""
