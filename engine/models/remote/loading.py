"""Opens a model that a server runs, by its address. The tokenizer and config.json are of this machine, nothing else
is."""

from __future__ import annotations

from pathlib import Path

import torch

from engine.common.credentials import SERVER_KEY, read_key
from engine.common.errors import ModelError
from engine.common.server_address import ServerAddress, server_address
from engine.models.checkpoints.catalog import cached_folder, folder_here, is_hub_id
from engine.models.checkpoints.directory import Checkpoint, loading, read_files
from engine.models.checkpoints.placement import Placement
from engine.models.registry import family_of_type
from engine.models.remote.client import RemoteError, ServerAway, ServerClient
from engine.models.remote.model import PROBE_S, Remote
from engine.models.remote.probe import probe


def open_remote(name: str) -> Remote:
    """The model at an address, after the server was asked whether it can run it. A server that is away is asked at the
    first request, if the tokenizer is given. Raises ModelError, or BadInput for its key."""
    address = server_address(name)
    client = ServerClient(address, read_key(SERVER_KEY, address.key_file))
    try:
        tokenizer = address.tokenizer or _told(client, address)
        # Only the user's own name may be that of a directory.
        path = _named(tokenizer) if address.tokenizer else _cached(tokenizer)
        with loading(tokenizer):
            checkpoint = _without_weights(path, tokenizer)
            family = family_of_type(checkpoint.config.get("model_type"), tokenizer)
            if family.laid_out is None:
                raise RemoteError(
                    f"vLLM can't fill gaps with {tokenizer}, which has a mask token: run it on this machine."
                )
            # What the loop computes by itself is little.
            info, layout = family.laid_out(checkpoint, Placement(device="cpu", layers=(), dtype=torch.float32))
        model = Remote(client, address, info, layout)
        try:
            model.probe().result(2 * PROBE_S)
        except (ServerAway, TimeoutError):
            # Who names a tokenizer can begin to type before the server is there.
            if not address.tokenizer:
                raise
        return model
    except BaseException as error:  # whatever it is, the client has a thread of its own
        client.close()
        if isinstance(error, TimeoutError):
            raise ServerAway(f"The server at {address.url} gave no answer within {PROBE_S:g} s.") from None
        raise


def _told(client: ServerClient, address: ServerAddress) -> str:
    """The Hub id that the server loaded the model by."""
    _, root = client.run(probe(client, address.url, address.model)).result(PROBE_S)
    # A path would be one of that machine, and it is not for a server to say which files are read here.
    if not is_hub_id(root):
        raise RemoteError(
            f"The server at {address.url} does not say which published model {address.model} is: name the directory or "
            "Hub id that has its tokenizer.json and config.json as tokenizer."
        )
    return root


def _named(tokenizer: str) -> Path:
    folder = folder_here(tokenizer)
    if folder is not None:
        return folder
    if not is_hub_id(tokenizer):
        raise ModelError(f"There is no {tokenizer} here: name a directory or a Hub id as tokenizer.")
    return _cached(tokenizer)


def _without_weights(path: Path, tokenizer: str) -> Checkpoint:
    files = read_files(path, tokenizer)
    family = family_of_type(files.config.get("model_type"), tokenizer)
    return Checkpoint(
        name=tokenizer,
        path=path,
        family=family.name,
        length="discover",
        config=files.config,
        metadata=files.metadata,
        layers=0,
        tensors=(),
        nbytes=0,
    )


def _cached(hub_id: str) -> Path:
    folder = cached_folder(hub_id)
    if folder is None:
        raise ModelError(
            f"The tokenizer of {hub_id} is not on this machine: copy its tokenizer and JSON files into a directory and "
            "name that as tokenizer."
        )
    return folder
