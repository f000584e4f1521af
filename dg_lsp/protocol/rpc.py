"""JSON-RPC as this server speaks it: pygls' protocol, made to answer what is malformed or comes out of order.

Every request gets exactly one answer, whatever it holds. A message that can't be read or handled is dropped; where it
may have changed a document, that document's text is no longer known, and where nobody can tell which, none is.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import abc
from collections.abc import Callable, Generator
from itertools import count
from typing import TYPE_CHECKING, Any, Union, cast, get_args, get_origin

import attrs
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
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage

from dg_lsp.protocol.copilot import table, understood
from dg_lsp.protocol.messages import NOTIFICATIONS
from dg_lsp.protocol.params import ANSWERS, PARAMS
from dg_lsp.protocol.reading import needed
from engine.common.json_values import UNREADABLE

if TYPE_CHECKING:
    from cattrs import Converter

log = logging.getLogger(__name__)

_NOTHING = object()
_CAPITAL = re.compile("_([a-z])")
_ABOUT_TEXT = ("textDocument/did", "notebookDocument/did")
_FIRST_ID = 1_000_000_000
"""Of this server's own requests: pygls keeps them beside the client's, which begin with 0 or 1."""
_OWN = (
    "textDocument/",
    "notebookDocument/",
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
    types.WORKSPACE_EXECUTE_COMMAND,
)


class Rpc(LanguageServerProtocol):
    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.on_lost: Callable[[str | None], None] = lambda _: None
        """Told which document a message that was dropped may have changed; None: any."""
        self.on_exit: Callable[[], None] = lambda: None
        self.answered_initialize_id: object = None
        """The id of an `initialize` request that was answered already."""
        self._initialized = False
        self._own_ids = count(_FIRST_ID)

    @property
    def was_shut_down(self) -> bool:
        """Whether the client has sent `shutdown`, as it should before it goes."""
        return self._shutdown

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self._send_data({"jsonrpc": self.VERSION, "method": method, "params": params})

    def give_up(self, but: object = None) -> None:
        """Cancel all requests under way, the one with the id `but` aside."""
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
                self._fail(fields.get("id"), refusal)
            raise refusal from None
        self._initialized |= fields.get("method") == types.INITIALIZE
        self.handle_message(message)

    def _fail(self, id_: Any, error: JsonRpcException) -> None:
        """End a request of this server's own."""
        future = self._request_futures.pop(id_, None) if type(id_) in (int, str) else None
        if future is not None and not future.done():
            future.set_exception(error)

    def send_request(
        self, method: str, params: Any = None, callback: Callable[[Any], None] | None = None, msg_id: Any = None
    ) -> Any:
        """Some clients leave a request without an answer whose id is a text."""
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
        """Answer a request, or what nobody can tell from one."""
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
            # Behind the handlers of the messages before, which have not begun yet.
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
            # pygls keeps those of notifications.
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        if msg_id == self.answered_initialize_id:
            self.answered_initialize_id = None
            return
        super()._send_response(msg_id, result, error)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message, with what is needed of it; of itself, and of what it can do, a client may say anything."""
        if "method" not in data:
            return self._structured_answer(data)
        method = data["method"]
        if "id" not in data and not _is_notification(method):
            raise JsonRpcInvalidRequest("Only a request can say this.")
        if method == types.INITIALIZE:
            return super().structure_message(data)
        params = needed(data.get("params"), PARAMS.get(method, Any))
        if "id" not in data:
            return JsonRPCNotification(method=method, jsonrpc=self.VERSION, params=params)
        return JsonRPCRequestMessage(id=data["id"], method=method, jsonrpc=self.VERSION, params=params)

    def _structured_answer(self, data: dict[str, Any]) -> Any:
        """What a client answers, as far as it is needed."""
        id_: Any = data.get("id")
        asked = self._result_types.pop(id_, None) if type(id_) in (int, str) else None
        if "result" not in data:
            return super().structure_message(data)
        result = needed(data["result"], ANSWERS.get(asked, Any))
        return JsonRPCResponseMessage(id=id_, jsonrpc=self.VERSION, result=result)

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()
        # Documents and folders are kept in `Documents` and `Configuration`, not in pygls' workspace; its commands can't
        # be cancelled and are not told of progress bars.
        for method in [name for name in self.fm.builtin_features if name.startswith(_OWN)]:
            del self.fm.builtin_features[method]

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """Give up what is under way. pygls does so too, but stumbles over requests that end meanwhile."""
        self.give_up(but=self.msg_id)
        self._shutdown = True
        yield from ()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Generator[Any, Any, None]:
        """Let the session end; pygls would leave the process from inside the event loop."""
        self.on_exit()
        yield from ()


def converter() -> Converter:
    """pygls' converter, for what a client says of itself.

    A client that names inline completion among its capabilities has it; lsp-mode writes null where it has no options.
    One that does not keep to the encoding that was agreed on offers but the one that it writes. What else a client says
    of itself counts as far as it is what the protocol says.
    """
    lenient = default_converter()
    # The first thing that is wrong is enough: a text in the place of a list has one for each of its characters.
    lenient.detailed_validation = False
    as_told = lenient.get_structure_hook(types.TextDocumentClientCapabilities)

    def capabilities(value: dict[str, Any], kind: Any) -> types.TextDocumentClientCapabilities:
        named = "inlineCompletion" in value
        return as_told({**value, "inlineCompletion": table(value, "inlineCompletion")} if named else value, kind)

    lenient.register_structure_hook(types.TextDocumentClientCapabilities, capabilities)
    lenient.register_structure_hook(types.WorkspaceFolder, _folder)
    as_initialize = lenient.get_structure_hook(types.InitializeParams)

    def structures(value: Any, kind: Any) -> bool:
        try:
            lenient.structure(value, kind)
        except Exception:  # noqa: BLE001 each kind of value that is wrong raises another
            return False
        return True

    def initialize(value: Any, kind: Any) -> types.InitializeParams:
        params = understood(value)
        try:
            return as_initialize(params, kind)
        except Exception:  # each kind of value that is wrong raises another
            if not isinstance(params, dict):
                raise
        kept = _salvaged_fields(cast(dict[str, Any], params), kind, structures)
        return as_initialize({"capabilities": {}, **kept}, kind)

    lenient.register_structure_hook(types.InitializeParams, initialize)
    return lenient


def _folder(value: Any, _: Any) -> types.WorkspaceFolder:
    """A folder, which is known by its URI; its name is for people."""
    uri, name = value["uri"], value.get("name")
    if not isinstance(uri, str):
        raise JsonRpcInvalidParams
    return types.WorkspaceFolder(uri=uri, name=name if isinstance(name, str) else uri)


def _salvaged_fields(value: dict[str, Any], kind: Any, structures: Callable[[Any, Any], bool]) -> dict[str, Any]:
    """The fields of a type of the protocol's that a JSON object has, but for what does not structure."""
    kept = {name: _salvaged(value[name], type_, structures) for name, type_ in _fields(kind).items() if name in value}
    return {name: held for name, held in kept.items() if held is not _NOTHING}


def _salvaged(value: Any, kind: Any, structures: Callable[[Any, Any], bool]) -> Any:
    """A JSON value without the innermost parts that do not structure as what they have to be; _NOTHING where that does
    not help."""
    kept: list[Any] = [value]
    if not structures(value, kind):
        if get_origin(kind) is Union:
            kept = [_salvaged(value, part, structures) for part in get_args(kind) if part is not type(None)]
        elif get_origin(kind) is abc.Sequence and isinstance(value, list):
            each = (_salvaged(held, get_args(kind)[0], structures) for held in cast(list[Any], value))
            kept = [[held for held in each if held is not _NOTHING]]
        elif attrs.has(kind) and isinstance(value, dict):
            kept = [_salvaged_fields(cast(dict[str, Any], value), kind, structures)]
        kept = [held for held in kept if held is not _NOTHING and structures(held, kind)]
    return kept[0] if kept else _NOTHING


def _is_notification(method: str) -> bool:
    """Whether a message of that name gets no answer, by the protocol or by `messages`."""
    about = types.METHOD_TO_TYPES.get(method)
    return not about[1] if about else method in NOTIFICATIONS


def _fields(kind: Any) -> dict[str, Any]:
    """The types of a type's fields, by the names that they have in JSON."""
    return {_CAPITAL.sub(lambda found: found[1].upper(), field.name): field.type for field in attrs.fields(kind)}


def _uri_in(fields: dict[str, Any]) -> str | None:
    """Of the document or notebook that a message is about."""
    try:
        params = fields["params"]
        uri = params["textDocument" if "textDocument" in params else "notebookDocument"]["uri"]
    except (KeyError, TypeError):
        return None
    return uri if isinstance(uri, str) else None
