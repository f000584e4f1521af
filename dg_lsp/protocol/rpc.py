"""JSON-RPC by pygls, which also answers what is malformed or out of order.

Every request gets exactly one answer, whatever it holds. A message that can't be read or handled is dropped. If it may
have changed a document, that document's text is forgotten; if nobody can tell which document, the text of all is.

What `Rpc` replaces of pygls, and why:

- `take`, for pygls' loop over messages: pygls drops what it can't read and answers what it can't handle with a
  traceback. Here a request is refused with the protocol's error, and a lost change is noticed.
- `structure_message`: pygls demands all that the protocol says. Here only what is used must be there (`lenience`).
- `send_request`: pygls numbers its requests by texts (UUIDs), which some clients never answer.
- `_execute_handler`: pygls keeps the futures of notifications for ever.
- `lsp_initialize`: pygls' own answers what it can do, and fails where a client says odd things of itself.
- `_send_response`: `initialize` may have been answered before pygls was imported (`initialize.py`).
- `lsp_shutdown`: pygls' own fails where a request ends while it cancels the others.
- `lsp_exit`: pygls' own ends the process from inside the event loop.
- `_register_builtin_features`: pygls' workspace would hold each document a second time, and its commands can't be
  cancelled and have no progress bars.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from itertools import count
from typing import TYPE_CHECKING, Any, cast

import msgspec
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage

from dg_lsp.protocol.initialize import ClientHello, result
from dg_lsp.protocol.lenience import needed
from dg_lsp.protocol.messages import NOTIFICATIONS
from dg_lsp.protocol.params import ANSWERS, PARAMS
from engine.common.json_values import UNREADABLE

if TYPE_CHECKING:
    from cattrs import Converter

log = logging.getLogger(__name__)

_ABOUT_TEXT = ("textDocument/did", "notebookDocument/did")
_FIRST_ID = 1_000_000_000
"""The first id of the server's own requests: pygls keeps them in one table with the client's, which count from 0."""
_OURS = (
    "textDocument/",
    "notebookDocument/",
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
)


class Rpc(LanguageServerProtocol):
    """pygls' protocol, with what the module's docstring lists."""

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.on_lost: Callable[[str | None], None] = lambda _: None
        """Called with the URI of the document that a dropped message may have changed; None: any."""
        self.on_exit: Callable[[], None] = lambda: None
        self.answered_initialize_id: object = None
        """The id of an `initialize` request that has its answer already."""
        self._initialized = False
        self._own_ids = count(_FIRST_ID)

    @property
    def was_shut_down(self) -> bool:
        """Whether the client has sent `shutdown`."""
        return self._shutdown

    def give_up(self, but: object = None) -> None:
        """Cancel all requests under way except the one with the id `but`."""
        for id_, future in list(self._request_futures.items()):
            if id_ != but and not future.done():
                future.cancel()

    def take(self, message: object) -> None:
        """Handle one message that was read. Never raises."""
        fields = cast(dict[str, Any], message) if isinstance(message, dict) else None
        try:
            if message is UNREADABLE:
                raise JsonRpcParseError("The message is not valid JSON.")
            if fields is None:
                raise JsonRpcInvalidRequest("The message is not a JSON object; batches are not supported.")
            self._receive(fields)
        except JsonRpcException as error:
            self._refuse(fields, error)
            self._lose_change(fields or {})
        except Exception:  # whatever it is, the next message may be fine
            log.exception("A message could not be handled.")
            self._lose_change(fields or {})

    def _receive(self, fields: dict[str, Any]) -> None:
        if fields.get("jsonrpc") != self.VERSION:
            raise JsonRpcInvalidRequest('The message does not say "jsonrpc": "2.0".')
        if "method" in fields:
            self._check_order(fields)
            if "id" not in fields and not self._is_known(fields["method"]):
                return
        elif fields.get("error") is None:
            # Some clients write both, and one of them null.
            fields = {"result": None} | {name: value for name, value in fields.items() if name != "error"}
        try:
            message: Any = self.structure_message(fields)
        except (JsonRpcException, msgspec.ValidationError, RecursionError):
            refusal = JsonRpcInvalidParams("The message's parameters are not what the protocol says.")
            if "method" not in fields:
                self._handle_response(fields.get("id", ""), error=refusal.to_response_error())
            raise refusal from None
        self._initialized |= fields.get("method") == types.INITIALIZE
        self.handle_message(message)

    def send_request(
        self, method: str, params: Any = None, callback: Callable[[Any], None] | None = None, msg_id: Any = None
    ) -> Any:
        """Send a request with a whole number as its id."""
        return super().send_request(method, params, callback, next(self._own_ids) if msg_id is None else msg_id)

    def _check_order(self, fields: dict[str, Any]) -> None:
        method = fields["method"]
        if not isinstance(method, str) or type(fields.get("id", 0)) not in (int, str):
            raise JsonRpcInvalidRequest("The method must be a text and the id a text or whole number.")
        if self._shutdown and method != types.EXIT:
            raise JsonRpcInvalidRequest("The server was told to shut down.")
        if method == types.INITIALIZE and self._initialized:
            raise JsonRpcInvalidRequest("The server is initialized already.")
        if not self._initialized and method not in (types.INITIALIZE, types.EXIT):
            raise JsonRpcServerNotInitialized("The server is not initialized yet.")
        if "id" in fields and _is_notification(method):
            raise JsonRpcInvalidRequest("Only a notification can say this.")
        if "id" in fields and not self._is_known(method):
            raise JsonRpcMethodNotFound.of(method)

    def _is_known(self, method: str) -> bool:
        return method in self.fm.features or method in self.fm.builtin_features or method == types.CANCEL_REQUEST

    def _refuse(self, fields: dict[str, Any] | None, error: JsonRpcException) -> None:
        """Answer a request, or what may have been one, with an error."""
        log.info("Refused a message: %s", error)
        if fields is None or ("id" in fields and "method" in fields):
            id_ = fields["id"] if fields and type(fields["id"]) in (int, str) else None
            refusal = {"code": error.code, "message": error.message}
            self._send_data({"jsonrpc": self.VERSION, "id": id_, "error": refusal})

    def _lose_change(self, fields: dict[str, Any]) -> None:
        is_answer = "id" in fields and "method" not in fields
        method = fields.get("method")
        changes_text = not isinstance(method, str) or (method.startswith(_ABOUT_TEXT) and method not in NOTIFICATIONS)
        if not is_answer and changes_text:
            # After the handlers of earlier messages, which have not started yet.
            asyncio.get_running_loop().call_soon(self.on_lost, _uri_in(fields))

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Callable[..., Any],
        callback: Callable[[Any], None],
        args: Any = None,
        kwargs: Any = None,
    ) -> None:
        def done(future: Any) -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if msg_id == self.answered_initialize_id:
            self.answered_initialize_id = None
            return
        super()._send_response(msg_id, result, error)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message with the parameters that its handler uses."""
        if "method" not in data:
            return self._structured_answer(data)
        method = data["method"]
        if "id" not in data and not _is_notification(method):
            raise JsonRpcInvalidRequest("Only a request can say this.")
        params = needed(data.get("params"), PARAMS.get(method, Any))
        if "id" not in data:
            return JsonRPCNotification(method=method, jsonrpc=self.VERSION, params=params)
        return JsonRPCRequestMessage(id=data["id"], method=method, jsonrpc=self.VERSION, params=params)

    def _structured_answer(self, data: dict[str, Any]) -> Any:
        """A client's answer, as far as it is used."""
        id_: Any = data.get("id")
        expected = self._result_types.pop(id_, None) if type(id_) in (int, str) else None
        if "result" not in data:
            return super().structure_message(data)
        result = needed(data["result"], ANSWERS.get(expected, Any))
        return JsonRPCResponseMessage(id=id_, jsonrpc=self.VERSION, result=result)

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()
        for method in [name for name in self.fm.builtin_features if name.startswith(_OURS)]:
            del self.fm.builtin_features[method]

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: Any) -> Generator[Any, Any, Any]:
        """Answer what the client is offered."""
        hello = ClientHello(params)
        yield self.fm.features[types.INITIALIZE], (hello,), None
        return result(hello)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """Cancel what is under way."""
        self.give_up(but=self.msg_id)
        self._shutdown = True
        yield from ()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Let the session end."""
        self.on_exit()
        yield from ()


def _is_notification(method: str) -> bool:
    """Whether a message of that name gets no answer, by the protocol or our own `messages`."""
    about = types.METHOD_TO_TYPES.get(method)
    return not about[1] if about else method in NOTIFICATIONS


def _uri_in(fields: dict[str, Any]) -> str | None:
    """The URI of the document or notebook that a message is about."""
    try:
        params = fields["params"]
        uri = params["textDocument" if "textDocument" in params else "notebookDocument"]["uri"]
    except (KeyError, TypeError):
        return None
    return uri if isinstance(uri, str) else None
