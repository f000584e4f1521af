"""The version of dg-lsp whose code runs in this process."""

# Written here, as to ask the installed package takes a fifth of the time that an editor waits for the first answer, and
# would name the files on disk, which an upgrade may have replaced under a process that goes on with the old ones.
__version__ = "0.1.0"
