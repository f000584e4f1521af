"""The training recipe of the bundled model: `python -m engine.train`."""
