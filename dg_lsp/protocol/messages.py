"""The messages of this server that are not in the Language Server Protocol; their parameters are in `params`.

`dg/status` (request): the state, for a document if one is given. `dg/status` (notification to the client): the state
changed; sent to clients that announce `experimental: {"dgStatus": true}` or have sent the request once. `dg/draft`
(notification to the client): {token, step, text}, the text after a step of an edit whose command named the token.
`dg/advice` (notification to the client): {message}, a sentence that the user should read once; clients that do not
get `dg/status` get it as `window/showMessage`.
`dg/reopen` (notification to the client): {uri}, a document whose text was lost here and should be sent again by
`textDocument/didOpen`; sent to clients that announce `experimental: {"dgReopen": true}`.
`textDocument/copilotInlineEdit` (request): where else an edit belongs, as GitHub's Copilot Language Server documents
it; with `linked` in an edit: further places that follow, each with `text`, `range` and `textDocument`. Of the same
protocol, `textDocument/didFocus` (notification) names the focused document, if any, and `didChangeStatus` (notification
to the client) {busy, kind, message} the state; it is sent to clients that have `editorInfo` in their
`initializationOptions` or have sent `didFocus`. `textDocument/didShowInlineEdit` is accepted and ignored.
`dg/setEnabled` (request): suggestions on or off, everywhere, for a language, in a folder, or for a language there;
answered like `dg/status`.
"""

from __future__ import annotations

STATUS = "dg/status"
SET_ENABLED = "dg/setEnabled"
DRAFT = "dg/draft"
ADVICE = "dg/advice"
REOPEN = "dg/reopen"
INLINE_EDIT = "textDocument/copilotInlineEdit"
DID_FOCUS = "textDocument/didFocus"
DID_CHANGE_STATUS = "didChangeStatus"
NOTIFICATIONS = frozenset({DID_FOCUS})
"""The messages from above that get no answer."""
