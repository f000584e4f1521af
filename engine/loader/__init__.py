"""From a name to a model in memory: which there are, downloads, loading."""
