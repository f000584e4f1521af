"""The commands of the language-server side."""
