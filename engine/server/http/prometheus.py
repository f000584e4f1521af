"""The engine's figures as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.common.messages import EngineStatus, Percentiles

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Samples = Iterable[tuple[str, float]]
"""Labels, as they are written, and a value."""


def metrics(status: EngineStatus, answered: Mapping[tuple[str, int], int]) -> str:
    """`answered`: requests by path and status."""
    requests = [(f'{{path="{path}",status="{code}"}}', count) for (path, code), count in sorted(answered.items())]
    failed = [(f'{{code="{code}"}}', count) for code, count in sorted(status.failed.items())]
    parts = [
        _metric("http_requests_total", "counter", "Requests that came by HTTP.", requests),
        _metric("fills_total", "counter", "Fills that were answered, whoever asked.", [("", status.served)]),
        _metric("fills_failed_total", "counter", "Fills that were not.", failed),
        _metric("fills_running", "gauge", "Fills under way.", [("", status.running)]),
        _metric("fills_queued", "gauge", "Fills that wait for their first forward pass.", [("", status.queued)]),
        _metric("forwards_total", "counter", "Forward passes of the decoder.", [("", status.forwards)]),
        _metric("forwards_shared_total", "counter", "Those that served several fills.", [("", status.shared_forwards)]),
        _metric("context_tokens_total", "counter", "Tokens of context since the load.", [("", status.context_tokens)]),
        _metric("cached_tokens_total", "counter", "Those that were in the cache.", [("", status.cached_tokens)]),
        _metric("resident_bytes", "gauge", "Main memory of the process.", [("", status.rss_nbytes)]),
        _metric("device_bytes", "gauge", "Memory held on the accelerator.", [("", status.device_nbytes)]),
        _metric("model_loaded", "gauge", "Whether the weights are loaded.", [("", status.loaded_s is not None)]),
        _metric("clients", "gauge", "Windows that are connected.", [("", len(status.clients))]),
        _metric("uptime_seconds", "gauge", "Since the engine started.", [("", status.up_s)]),
        _metric("encode_milliseconds", "gauge", "To read a context, lately.", _quantiles(status.encode_ms)),
        _metric("step_milliseconds", "gauge", "A forward pass, lately.", _quantiles(status.step_ms)),
        _metric("fill_milliseconds", "gauge", "From arrival to answer, lately.", _quantiles(status.total_ms)),
    ]
    return "".join(parts)


def _quantiles(times: Percentiles) -> _Samples:
    held = (("0.5", times.p50), ("0.95", times.p95))
    return [(f'{{quantile="{name}"}}', value) for name, value in held if value is not None]


def _metric(name: str, kind: str, help: str, samples: _Samples) -> str:
    lines = [f"# HELP dg_lsp_{name} {help}", f"# TYPE dg_lsp_{name} {kind}"]
    lines += [f"dg_lsp_{name}{labels} {float(value):.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"
