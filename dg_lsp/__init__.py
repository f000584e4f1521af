"""The language server and the command line of dg-lsp. Never imports torch or transformers."""
