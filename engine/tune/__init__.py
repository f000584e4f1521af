"""Learning a repository: what is learnt of it, low-rank adapters, before and after. Used by the command line alone."""
