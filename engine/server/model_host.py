"""The model of an engine: loaded when it is wanted, warmed up, kept within memory, unloaded when unused for long. All
methods belong to the model thread; what others read of it are single attributes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.common.errors import is_broken_device
from engine.common.messages import AdapterUse, EngineState, Failed, FailureCode
from engine.common.request import FillRequest
from engine.server import memory
from engine.server.failures import failure_of
from engine.server.watchdog import Watchdog

if TYPE_CHECKING:
    from engine.models.adapters.index import Adapters
    from engine.models.base import Model, ModelInfo, Prefill
    from engine.models.checkpoints.measured import FillTimes

_log = logging.getLogger(__name__)
_RETRY_LOAD_S = 10.0
"""A load that failed is not tried again for so long; each keystroke would."""
_SHORTAGES = 3
"""Requests in a row that run out of memory, each tried twice, until the weights are given back."""
_REST_S = 3600.0
"""Without work, at the most: no system waits for a time without end."""
_WARM_UP_AFTER_S, _WARM_UP_MS = 0.1, 1000.0
_SHOW_S = 0.1
"""Between two words on how far a load has come."""


class ModelHost:
    """`load` is given what to call with the percentage it has come to; `on_state` is called on the model thread."""

    def __init__(
        self,
        load: Callable[[Callable[[float], None]], Model],
        *,
        watchdog: Watchdog,
        unload_after_s: float,
        on_state: Callable[[EngineState], None],
    ) -> None:
        self._load = load
        self._watchdog = watchdog
        self._unload_after_s = unload_after_s
        self._on_state = on_state
        self._adapters: Adapters | None = None
        """The model, and adapters of the folders that requests come from; None while there are no weights."""
        self._times: FillTimes | None = None
        self._failure: Failed | None = None
        self._load_began = self._load_ended = self._idle_since = time.monotonic()
        self._memory_short = False
        self._shortages = 0
        self._warmed_up = False
        self.broken = False
        """The device fails for good; only another process can use it."""
        self.torch_imported = False

    @property
    def model(self) -> Model | None:
        """The model without an adapter; None before the weights are loaded."""
        adapters = self._adapters
        return adapters.model if adapters is not None else None

    @property
    def info(self) -> ModelInfo | None:
        """The model's description; None before the weights are loaded."""
        model = self.model
        return model.info if model is not None else None

    @property
    def loaded_since(self) -> float | None:
        """When the weights were loaded, in monotonic seconds; None before."""
        return self._load_ended if self.model is not None else None

    @property
    def context_tokens(self) -> tuple[int, int]:
        """`Capabilities.context_tokens` since the weights were loaded."""
        model = self.model
        return model.context_tokens if model is not None else (0, 0)

    @property
    def adapters_used(self) -> tuple[AdapterUse, ...]:
        """The adapters used since the weights were loaded."""
        adapters = self._adapters
        return adapters.used if adapters is not None else ()

    def model_for(self, folder: str) -> Model:
        """The model with the adapter of a folder, if it has one. Only where `failure` gave None."""
        assert self._adapters is not None
        return self._adapters.model_for(folder)

    def failure(self) -> Failed | None:
        """Load the model unless it is loaded; returns the error, or None."""
        tried_lately = self._failure and time.monotonic() < self._load_ended + _RETRY_LOAD_S
        if self.model is None and not tried_lately:
            self._try_load()
        return None if self.model is not None else self._failure

    @contextmanager
    def round(self) -> Generator[None]:
        """Within the block the model works; after it, memory that was short is given back."""
        # Not imported before there is a model, for the handshake's sake.
        import torch

        from engine.models.products import threads_for

        model = self.model
        assert model is not None
        threads = threads_for(model.info.parameters, model.info.device)
        with self._watchdog.round(model.info.device), torch.inference_mode(), threads:
            yield
        # Not before the round is over: until then its own tensors are in use.
        if self._memory_short and self._shortages < _SHORTAGES:
            model.shrink_caches()
            if self._adapters is not None:
                self._adapters.drop()
            memory.give_back()
            memory.settle()
        self._memory_short = False

    def is_used(self) -> None:
        """Note that the model is wanted. Failing work does not count, so that a model that only fails is unloaded."""
        self._idle_since = time.monotonic()

    def has_answered(self, ms: float | None = None) -> None:
        """Note an answered request; `ms`: a fill's share of the model's time."""
        if self._times is not None and ms is not None:
            self._times.add(ms)
        self._shortages = 0
        self._warmed_up = True
        self.is_used()

    def has_failed(self, error: BaseException, code: FailureCode, *, retried: bool) -> None:
        """Note a failed request; `retried`: it begins again."""
        if code == "out_of_memory":
            self._memory_short = True
            self._shortages += not retried
        self.broken |= is_broken_device(error)

    def since_load_s(self, moment: float) -> float:
        """Seconds since a moment without those before the weights came: a load does not count against a deadline."""
        return time.monotonic() - max(moment, self._load_ended)

    def load_ms(self, arrived: float) -> float:
        """How long a request that arrived then waited for the weights."""
        return max(self._load_ended - max(arrived, self._load_began), 0) * 1000

    def rest_s(self, *, idle: bool) -> float:
        """How long the thread may wait for requests before `keep_house` has something to do; `idle`: there are none."""
        if self.model is None:
            return _REST_S
        if self._prefill is not None and idle:
            return 0.0
        # Who had the model loaded is likely to ask at once; that warms up as well.
        return min(self._unloads_in_s(), _REST_S if self._warmed_up else _WARM_UP_AFTER_S)

    def keep_house(self) -> None:
        """Without requests: unload, warm up, or read a piece of a context."""
        if self.model is None:
            return
        if self._unloads_in_s() <= 0:
            self._unload()
            return
        prefill = self._prefill
        if not self._warmed_up:
            with self.round():
                self._warm_up(self.model)
        elif prefill is not None:
            with self.round():
                _read_piece(prefill)

    def give_up_if_short(self) -> None:
        """Unload where memory is short again and again: somebody else may need the device, or has left it too little.
        It is tried again in a while."""
        if self._shortages < _SHORTAGES:
            return
        message = (
            "The device ran out of memory again and again, so the model was unloaded: close other programs that use "
            "the device, or use a smaller model."
        )
        self._drop()
        self._failure, self._load_ended = Failed(id=None, code="out_of_memory", message=message), time.monotonic()
        _log.warning("unloaded after %d requests that ran out of memory", self._shortages)
        self._shortages = 0
        self._on_state(EngineState(name="error", message=message))

    @property
    def _prefill(self) -> Prefill | None:
        """Of a model that has a context left to read."""
        models = self._adapters.models if self._adapters is not None else ()
        return next((each.prefill for each in models if each.prefill and each.prefill.later), None)

    def _unloads_in_s(self) -> float:
        return max(self._idle_since + self._unload_after_s - time.monotonic(), 0)

    def _warm_up(self, model: Model) -> None:
        """Fill a gap that nobody asked for: a first pass through code and kernels takes several times as long as the
        next."""
        from engine.fill.answering import answering
        from engine.fill.executor import drive

        self._warmed_up = True
        # Without a language: the process that checks syntax warms up by itself.
        request = FillRequest(
            prefix="def warm_up(values):\n    return sorted(", suffix=")\n", max_tokens=8, deadline_ms=_WARM_UP_MS
        )
        try:
            drive(model, answering(model, request))
        except BaseException as error:  # noqa: BLE001 whatever it is, requests will say so
            _log.warning("the first fill failed: %s", error)
        memory.settle()

    def _try_load(self) -> None:
        self._on_state(EngineState(name="loading"))
        self._load_began = time.monotonic()
        with self._watchdog.load() as moved:
            self._adapters, self._failure = self._loaded(moved)
        self._load_ended = self._idle_since = time.monotonic()
        if self._failure:
            self._on_state(EngineState(name="error", message=self._failure.message))
        else:
            _log.info("loaded in %.1f s", self._load_ended - self._load_began)
            memory.settle()
            memory.trim()
            self._on_state(EngineState(name="ready"))

    def _loaded(self, moved: Callable[[], None]) -> tuple[Adapters | None, Failed | None]:
        shown = 0.0

        def show_percent(percent: float) -> None:
            nonlocal shown
            moved()
            # A small model has hundreds of tensors, and is there before one of these numbers is read.
            if percent == 100 or time.monotonic() - shown >= _SHOW_S:
                shown = time.monotonic()
                self._on_state(EngineState(name="loading", percent=percent))

        try:
            model = self._load(show_percent)
            # Not imported before there is a model, for the handshake's sake.
            from engine.models.adapters.index import Adapters
            from engine.models.checkpoints.measured import FillTimes

            self._times = FillTimes(model.info.name)
            return Adapters(model), None
        except BaseException as error:  # noqa: BLE001 whatever it is, the engine goes on and says so
            code, message = failure_of(error, "loading the model")
            self.broken |= is_broken_device(error)
            return None, Failed(id=None, code="model" if code == "bad_request" else code, message=message)
        finally:
            self.torch_imported = True

    def _unload(self) -> None:
        self._drop()
        _log.info("unloaded after %.0f s without work", self._unload_after_s)
        self._on_state(EngineState(name="unloaded"))

    def _drop(self) -> None:
        self._adapters = None
        self._warmed_up = False
        memory.give_back()


def _read_piece(prefill: Prefill) -> None:
    try:
        prefill.read_piece()
    except BaseException as error:  # noqa: BLE001 whatever it is, requests will say so
        _log.warning("what a deadline left of a context can't be encoded: %s", error)
        prefill.later = ()
