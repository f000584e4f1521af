"""Counts survive the process, several writers, and a broken file."""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from dg_lsp.suggest.stats import Stats, StatsError, Tally, reset, stats_path, tallies
from engine.common.errors import BadInput


def write_some(path, times):
    stats = Stats(lambda: path)
    for _ in range(times):
        stats.add("python", "shown", 3)
        stats.write()


def test_counts_add_up_across_servers(tmp_path):
    path = tmp_path / "deep" / "stats.sqlite3"
    for _ in range(2):
        stats = Stats(lambda: path)
        stats.add("python", "shown", 10)
        stats.add("python", "accepted", 10)
        stats.add("go", "shown", 5)
        stats.add("python", "shown", 4)
        stats.add("python", "partial", 2)
        stats.write()
        stats.write()
    assert tallies(path) == [
        Tally(language="python", shown=4, accepted=2, partial=2, accepted_chars=24),
        Tally(language="go", shown=2),
    ]


def test_servers_write_at_the_same_time(tmp_path):
    path = tmp_path / "stats.sqlite3"
    writers = [multiprocessing.get_context("spawn").Process(target=write_some, args=(path, 20)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [tally.shown for tally in tallies(path)] == [40]


def test_a_reset_forgets_everything(tmp_path):
    path = tmp_path / "stats.sqlite3"
    reset(path)
    assert tallies(path) == []
    write_some(path, 1)
    reset(path)
    assert tallies(path) == []


def test_a_reset_forgets_what_a_running_server_has_not_written(tmp_path):
    path = tmp_path / "stats.sqlite3"
    stats, idle = Stats(lambda: path), Stats(lambda: path)
    for _ in range(2):
        stats.add("python", "shown", 3)
        idle.add("python", "shown", 3)
        reset(path)
        stats.write()
        assert tallies(path) == []
    stats.add("go", "shown", 5)
    idle.add("go", "shown", 5)
    stats.write()
    idle.write()
    assert tallies(path) == [Tally(language="go", shown=2)]


def test_a_reset_while_a_server_writes_forgets_what_it_writes(tmp_path, monkeypatch):
    path = tmp_path / "stats.sqlite3"
    stats = Stats(lambda: path)
    stats.add("python", "shown", 3)
    connect = sqlite3.connect

    def connect_late(*arguments, **options):
        reset(path)
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", connect_late)
    stats.write()
    monkeypatch.undo()
    assert tallies(path) == []


def test_a_reset_that_is_cut_leaves_the_one_before(tmp_path, monkeypatch):
    path = tmp_path / "stats.sqlite3"
    stats = Stats(lambda: path)
    stats.add("python", "shown", 3)
    reset(path)

    def cut(self, text):
        with self.open("w") as stream:
            stream.write(text[:0])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", cut)
    with pytest.raises(StatsError, match="No space left on device"):
        reset(path)
    stats.write()
    assert tallies(path) == []


def test_a_broken_file_is_a_sentence_and_loses_nothing(tmp_path):
    path = tmp_path / "stats.sqlite3"
    path.write_text("no database, and long enough to be looked at" * 100)
    stats = Stats(lambda: path)
    stats.add("python", "shown", 1)
    with pytest.raises(StatsError, match="--reset"):
        stats.write()
    with pytest.raises(StatsError, match="--reset"):
        tallies(path)
    path.unlink()
    stats.write()
    assert [tally.shown for tally in tallies(path)] == [1]


def test_a_file_that_can_not_be_looked_for_is_a_sentence(tmp_path):
    with pytest.raises(StatsError, match="too long"):
        tallies(tmp_path / ("a" * 300) / "stats.sqlite3")


def test_a_folder_that_is_none_keeps_what_is_counted(monkeypatch, tmp_path):
    stats = Stats(stats_path)
    stats.add("python", "shown", 1)
    monkeypatch.setenv("DG_LSP_STATE_DIR", "here")
    with pytest.raises(BadInput, match="set it to a whole path"):
        stats.write()
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path))
    stats.write()
    assert [tally.shown for tally in tallies(stats_path())] == [1]


def test_a_reset_starts_a_broken_file_anew(tmp_path):
    path = tmp_path / "stats.sqlite3"
    path.write_text("no database, and long enough to be looked at" * 100)
    reset(path)
    write_some(path, 1)
    assert [tally.shown for tally in tallies(path)] == [1]


def test_the_folder_can_be_moved(tmp_path, monkeypatch):
    monkeypatch.setenv("DG_LSP_STATE_DIR", str(tmp_path))
    assert stats_path() == tmp_path / "stats.sqlite3"


@pytest.mark.asyncio
async def test_what_could_not_be_written_once_is_tried_again(tmp_path):
    file = tmp_path / "stats.sqlite3"
    file.write_text("no database at all, but of some length")
    told: list[str] = []
    stats = Stats(lambda: file)
    stats.add("python", "shown", 3)
    writing = asyncio.create_task(stats.keep_writing(told.append, every_s=0.01))
    async with asyncio.timeout(20):
        while not told:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        file.unlink()
        while not file.exists() or not tallies(file):
            await asyncio.sleep(0.01)
    writing.cancel()
    assert [tally.language for tally in tallies(file)] == ["python"]
    assert len(told) == 1
