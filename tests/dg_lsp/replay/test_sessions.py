"""Sessions: written and read, generated, made of a history; whoever plays one gets to the same texts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dg_lsp.replay.generate import Edited, changes, edited_files, events
from dg_lsp.replay.session import Event, Open, Session, SessionError, read_session, write_session
from dg_lsp.replay.stage import settled_texts
from engine.common.errors import BadInput
from tests.dg_lsp.replay.repository import commit

SESSIONS = sorted(Path(__file__).parents[2].joinpath("cases", "sessions").glob("*.jsonl"))
texts = st.text(st.sampled_from("ab_( \n\r\f\u2028😋"), max_size=60)


@given(texts, texts)
def test_the_changes_lead_from_one_text_to_the_other(before, after):
    text = before
    for start, removed, new in changes(before, after):
        text = text[:start] + new + text[start + removed :]
    assert text == after


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_new_lines_are_typed_from_the_end_of_the_line_above(line_break):
    before, after = (text.replace("\n", line_break) for text in ("a\nb\nc\n", "a\nnew\nb\nd\n"))
    start = 1 + 2 * len(line_break) + 3 + 1
    assert list(changes(before, after)) == [(1, 0, f"{line_break}new"), (start + len(line_break), 1, "d")]


@example(pairs=[("", "_(___")], seed=11)  # a slip is deleted, then the word is undone
@example(pairs=[("", "a b c\r\n" * 30)], seed=1)  # several lines are hoped for
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=3), st.integers(0, 50))
def test_a_generated_session_arrives_at_the_texts_after(pairs, seed):
    files = [Edited(path=f"{at}.py", before=before, after=after) for at, (before, after) in enumerate(pairs)]
    made = events(files, seed)
    assert {file.after for file in files} <= {text for text, _ in settled_texts(Session(title="", events=made))}
    assert [event.at for event in made] == sorted(event.at for event in made)


def test_the_same_seed_makes_the_same_session():
    files = [Edited(path="a.py", before="one\n", after="two = 1\nthree = 2\n")]
    assert events(files, 1) == events(files, 1)
    assert events(files, 1) != events(files, 2)


def test_a_session_survives_being_written_and_read(tmp_path):
    session = Session(title="Tést", events=events([Edited(path="a.go", before="", after="x := '😋\u2028'\n" * 9)], 3))
    write_session(session, tmp_path / "s.jsonl")
    assert read_session(tmp_path / "s.jsonl") == session


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_the_sessions_of_the_repository_hold_all_that_a_person_does(path):
    assert len(SESSIONS) == 2
    assert {type(event) for event in read_session(path).events} == set(get_args(Event))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("3\n", ":1: not a line of a recorded session: Expected `object`, got `int`"),
        ('{"session": 9}\n', ":1: not a line of a recorded session: Invalid enum value 9 - at `$.session`"),
        ('{"session": 1}\n', ":2: a session begins by opening a document"),
        ('{"session": 1}\n{"at": 0, "do": "type", "text": "x"}\n', ":2: a session begins by opening a document"),
        ('{"session": 1}\n{"at": 0, "do": "focus", "path": "b.py"}\n', ":2: b.py is not open yet: open it first"),
        (
            '{"session": 1}\n{"at": 0, "do": "dance"}\n',
            ":2: not a line of a recorded session: Invalid value 'dance' - at `$.do`",
        ),
        (
            '{"session": 1}\n{"at": 0, "do": "undo", "count": 2}\n',
            ":2: not a line of a recorded session: Object contains unknown field `count`",
        ),
        ('{"session": 1}\nnonsense\n', ":2: not a line of a recorded session: JSON is malformed"),
        ('{"session": 1}\n' + "[" * 100_000, ":2: not a line of a recorded session: Expected `object`, got `array`"),
    ],
)
def test_a_broken_session_is_a_sentence_with_its_line(tmp_path, text, problem):
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    with pytest.raises(SessionError) as caught:
        read_session(path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_ordinary_file_is_no_session(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadInput, match="is no ordinary file"):
            read_session(path)


def test_a_session_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(SessionError, match="can't be read"):
        read_session(tmp_path / "none.jsonl")
    with pytest.raises(SessionError, match="can't be written"):
        write_session(Session(title="", events=()), tmp_path / "no" / "s.jsonl")


def test_a_history_becomes_a_session_of_what_was_typed(tmp_path):
    commit(tmp_path, {"a.py": "one = 1\n", "notes.txt": "x\n"})
    with pytest.raises(SessionError, match="no change to code"):
        edited_files(tmp_path, 1)
    for number, name in enumerate(("a.py", "notes.txt", "a.py", "naïve.py")):
        path = tmp_path / name
        commit(tmp_path, {name: (path.read_text() if path.exists() else "") + f"added = {number}\n"})
    if sys.platform == "linux":  # elsewhere every name is text, and a session can tell no other
        commit(tmp_path, {os.fsdecode(b"\xe9.py"): "x = 1\n"})
        commit(tmp_path, {os.fsdecode(b"\xe9.py"): "x = 2\n"})
    # Generated, not typed.
    commit(tmp_path, {"naïve.py": "x = 1\n" * 2000})
    one = [Edited(path="a.py", before="one = 1\nadded = 0\n", after="one = 1\nadded = 0\nadded = 2\n")]
    assert edited_files(tmp_path, 1) == one
    assert edited_files(tmp_path, 9) == one
    (opening, *_) = events(one, 0)
    assert isinstance(opening, Open)
    assert opening.language == "python"


def test_what_is_no_repository_is_a_sentence(tmp_path):
    with pytest.raises(SessionError, match="git can't read"):
        edited_files(tmp_path / "nowhere", 1)
