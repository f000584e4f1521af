"""`python -m dg_lsp`: the command line without its script on the path."""

from dg_lsp.cli import main

main()
