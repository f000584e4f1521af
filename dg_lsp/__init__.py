"""The language server and the command line of dg-lsp. Never imports torch or transformers."""

# Written here, as to ask the installed package takes a fifth of the time that an editor waits for the first answer.
__version__ = "0.1.0"
