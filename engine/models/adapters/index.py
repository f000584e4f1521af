"""Chooses the adapter that serves a request, by the folder that the request comes from. All adapters are the user's
own."""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.common.errors import EngineError, ModelError, is_broken_device, is_out_of_memory
from engine.common.messages import AdapterUse
from engine.models.adapters.applied import with_adapter
from engine.models.adapters.files import read_adapter
from engine.models.adapters.metadata import AdapterMetadata, adapters_dir, all_adapters, read_metadata
from engine.models.base import Model

_log = logging.getLogger(__name__)
MOST_LOADED = 4
"""Most adapters in memory; the least recently used one goes first."""
_MOST_FOLDERS = 256
"""Most folders of which it is remembered what serves them."""
SHORT_S = 60.0
"""Seconds until an adapter is tried again for which there was no memory."""
_SETTLES_NS = 100_000_000
"""A folder that changed less than this ago may change again without a newer time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    directory: Path
    metadata: AdapterMetadata


class Adapters:
    """A model and its variants with adapters. Not thread-safe, but for `used`: the model thread owns it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.used: tuple[AdapterUse, ...] = ()
        """Use of the adapters that requests came for, newest last; replaced as a whole."""
        self._stamp: int | None = None
        self._known: list[_Known] = []
        self._damaged: list[AdapterUse] = []
        self._serving: dict[str, _Known | None] = {}
        self._loaded: OrderedDict[tuple[Path, float], Model] = OrderedDict()
        self._failed: dict[tuple[Path, float], float] = {}
        """When each of these may be tried again."""
        self._told: set[str] = set()

    @property
    def models(self) -> Sequence[Model]:
        """All variants in memory, the one without an adapter first."""
        return (self.model, *self._loaded.values())

    def model_for(self, folder: str) -> Model:
        """The model for a request from a folder: with the adapter that was trained on it or on the nearest folder above
        it. Where that adapter can't be used, the model without one answers, and `used` says why."""
        if not folder or self.model.adaptable is None:
            return self.model
        self._look()
        if folder not in self._serving:
            if len(self._serving) >= _MOST_FOLDERS:
                self._serving.clear()
            self._serving[folder] = self._chosen(folder)
        known = self._serving[folder]
        return self.model if known is None else self._with(known)

    def drop(self) -> None:
        """Free the memory of all adapters; they are read again when needed."""
        self._loaded.clear()

    def _look(self) -> None:
        """See what changed in the folder of adapters since the last request."""
        try:
            changed_ns = adapters_dir().stat().st_mtime_ns
        except OSError:
            changed_ns = 0
        if changed_ns == self._stamp:
            return
        self._stamp = changed_ns if time.time_ns() - changed_ns > _SETTLES_NS else None
        known, damaged = list[_Known](), list[AdapterUse]()
        try:
            directories = all_adapters()
        except EngineError:
            directories = []
        for directory in directories:
            try:
                known.append(_Known(directory=directory, metadata=read_metadata(directory)))
            except ModelError as error:
                # Which folder it is for nobody knows.
                damaged.append(AdapterUse(folder=directory.name, trouble=str(error)))
        if (known, damaged) == (self._known, self._damaged):
            return
        self._known, self._damaged = known, damaged
        self._serving.clear()
        self._failed.clear()
        self.used = ()
        for each in damaged:
            self._say(each)
        current = {(each.directory, each.metadata.created) for each in self._known if each.metadata.on}
        for key in self._loaded.keys() - current:
            del self._loaded[key]

    def _chosen(self, folder: str) -> _Known | None:
        on = [each for each in self._known if each.metadata.on]
        # Links are followed only where that may matter: a disk that does not answer would hold up all windows.
        path = Path(folder)
        if on:
            with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a name that no folder can have
                path = path.resolve()
        above = {str(each) for each in (path, *path.parents)}
        found = [each for each in on if each.metadata.folder in above]
        found.sort(key=lambda each: (len(each.metadata.folder), each.metadata.created))
        own = [each for each in found if each.metadata.fingerprint == self.model.info.fingerprint]
        if own:
            return own[-1]
        if found and found[-1].metadata.model == self.model.info.name:
            at = found[-1].metadata.folder
            why = f"The adapter of {at} belongs to other weights and is off: run `dg-lsp tune {at}` again."
            self._say(AdapterUse(folder=at, trouble=why))
        return None

    def _with(self, known: _Known) -> Model:
        key = (known.directory, known.metadata.created)
        if key in self._loaded:
            self._loaded.move_to_end(key)
            self._say(AdapterUse(folder=known.metadata.folder))
            return self._loaded[key]
        if time.monotonic() < self._failed.get(key, 0.0):
            return self.model
        assert self.model.adaptable is not None
        try:
            self._loaded[key] = with_adapter(self.model.adaptable, read_adapter(known.directory))
        except Exception as error:  # whatever is wrong with it, the model answers without
            if is_broken_device(error):
                raise
            why = str(error) if isinstance(error, ModelError) else f"The adapter of {known.metadata.folder} failed."
            lasts_s = math.inf
            if is_out_of_memory(error):
                why, lasts_s = f"There is no memory for the adapter of {known.metadata.folder}.", SHORT_S
            self._failed[key] = time.monotonic() + lasts_s
            self._say(AdapterUse(folder=known.metadata.folder, trouble=why))
            return self.model
        while len(self._loaded) > MOST_LOADED:
            self._loaded.popitem(last=False)
        self._say(AdapterUse(folder=known.metadata.folder))
        return self._loaded[key]

    def _say(self, use: AdapterUse) -> None:
        if use in self.used:
            return
        self.used = (*(each for each in self.used if each.folder != use.folder), use)
        if use.trouble and use.trouble not in self._told:
            self._told.add(use.trouble)
            _log.warning("%s", use.trouble)
