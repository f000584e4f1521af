"""The Language Server Protocol, by pygls. What pygls can't do stands beside it:

- `framing`: bounds. Garbage and oversized messages are skipped, and a client that does not read is given up.
- `lenience`, with the types in `params`, `arguments` and `messages`: invalid details are dropped, not the message.
- `rpc`: one answer for each request, whatever it holds; its docstring lists what it replaces of pygls.
- `initialize`: its answer, before pygls is imported.
"""
