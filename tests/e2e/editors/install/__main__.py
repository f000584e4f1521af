"""All editors: `python -m tests.e2e.editors.install`. What is there already stays."""

from tests.e2e.editors.install import emacs, neovim, vscode

neovim.main()
vscode.main()
emacs.main()
