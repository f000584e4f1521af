import errno
import os
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.common import exclusive, textfile
from engine.common.errors import BadInput, EngineError
from engine.common.textfile import decode, read_text, replace_text

ENCODINGS = {
    "utf-8": b"",
    "utf-8 with mark": b"\xef\xbb\xbf",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\0\0",
    "utf-32-be": b"\0\0\xfe\xff",
}


@given(
    st.sampled_from(sorted(ENCODINGS)), st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\ufeff"))
)
def test_any_text_is_read_without_loss(encoding: str, text: str):
    raw = ENCODINGS[encoding] + text.encode(encoding.partition(" ")[0])
    file = decode(raw, None)
    assert file.text == text
    assert file.byte_order_mark + file.text.encode(file.encoding) == raw


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"\x7fELF\0\0\1", "blob is a binary file: dg-lsp fills gaps in text."),
        (b"caf\xe9", "blob is not UTF-8 text (byte 3 can't be read): convert it first."),
        (b"\xff\xfea", "blob is not UTF-16-LE text (byte 2 can't be read): convert it first."),
    ],
)
def test_what_is_not_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raw: bytes, message: str):
    monkeypatch.chdir(tmp_path)
    Path("blob").write_bytes(raw)
    with pytest.raises(BadInput) as error:
        read_text("blob")
    assert str(error.value) == message


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path):
    with pytest.raises(BadInput, match=r"There is no file .*nowhere\.py: check the path"):
        read_text(str(tmp_path / "nowhere.py"))
    with pytest.raises(BadInput, match="is a directory: name a file in it"):
        read_text(str(tmp_path))


def test_standard_input_that_is_closed_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(BadInput, match="Standard input can't be read: name a file"):
        read_text("-")


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="this system has no such attributes")
def test_a_file_keeps_its_attributes(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("old\n")
    try:
        os.setxattr(path, "user.origin", b"somewhere")
    except OSError:
        pytest.skip("this file system has none")
    replace_text(read_text(str(path)), "new\n")
    assert os.getxattr(path, "user.origin") == b"somewhere"


def test_a_file_is_replaced_with_its_mode_and_mark(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(b"\xef\xbb\xbfold\r\n")
    path.chmod(0o754)
    file = read_text(str(path))
    replace_text(file, file.text.replace("old", "new"))
    assert path.read_bytes() == b"\xef\xbb\xbfnew\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.sh"]


@pytest.mark.parametrize("name", ["n" * 255, "日" * 85], ids=["1 byte", "3 bytes"])
def test_a_file_may_have_the_longest_name_there_is(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_text("a")
    replace_text(read_text(str(path)), "b")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["b"]


def test_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "link.py").symlink_to("real.py")
    replace_text(read_text(str(tmp_path / "link.py")), "new")
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "new"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("mine")
    file = read_text(str(path))
    path.write_text("theirs")
    with pytest.raises(EngineError, match="changed while its gap was being filled"):
        replace_text(file, "filled")
    assert path.read_text() == "theirs"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_went_away_is_not_made_again(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("mine")
    file = read_text(str(path))
    path.unlink()
    with pytest.raises(EngineError, match="can't be written"):
        replace_text(file, "filled")
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_file_is_left_alone(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("mine")
    path.chmod(0o444)
    with pytest.raises(EngineError, match="it is read-only"):
        replace_text(read_text(str(path)), "filled")
    assert path.read_text() == "mine"


def test_standard_input_has_nowhere_to_write():
    with pytest.raises(BadInput, match="--write needs a FILE"):
        replace_text(decode(b"text", None), "filled")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_and_a_device_are_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(BadInput, match=f"{path} is no ordinary file"):
            read_text(str(path))


def test_a_file_without_end_is_read_no_further_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with (tmp_path / "big.py").open("wb") as file:
        file.truncate(textfile.MOST_NBYTES + 1)
    with pytest.raises(BadInput, match=r"big\.py is larger than"):
        read_text(str(tmp_path / "big.py"))
    with Path("/dev/zero").open() as endless:
        monkeypatch.setattr("sys.stdin", endless)
        with pytest.raises(BadInput, match="Standard input is larger than"):
            read_text("-")


APPENDING = """
import random, select, sys, time
line = 0
while line < 1500 or not select.select([sys.stdin], [], [], 0)[0]:
    with open(sys.argv[1], "a") as file:
        file.write(f"{line}\\n")
    line += 1
    time.sleep(random.random() * 0.003)
print(line)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody holds a writer back")
def test_no_append_of_another_writer_is_lost(tmp_path: Path):
    path = tmp_path / "log.txt"
    path.write_text("# 0\n")
    replaced = 0
    # It goes on until enough was replaced beside it, however busy the machine is.
    with subprocess.Popen(
        [sys.executable, "-c", APPENDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        while writer.poll() is None:
            file = read_text(str(path))
            with suppress(EngineError):
                replace_text(file, f"# {replaced + 1}\n{file.text.partition(chr(10))[2]}")
                replaced += 1
            if replaced > 10 and writer.stdin and not writer.stdin.closed:
                writer.stdin.close()
        assert writer.stdout
        written = int(writer.stdout.read())
    assert path.read_text().splitlines() == [f"# {replaced}", *map(str, range(written))]
    assert [entry.name for entry in tmp_path.iterdir()] == ["log.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is told")
def test_a_file_that_is_open_for_writing_elsewhere_is_left_alone(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("mine")
    file = read_text(str(path))
    with path.open("a"), pytest.raises(EngineError, match="another program has it open to write"):
        replace_text(file, "filled")
    replace_text(file, "filled")
    assert path.read_text() == "filled"


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
@pytest.mark.parametrize("unsupported", ["flock", "fcntl"])
def test_where_there_are_no_locks_a_file_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsupported: str
):
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(exclusive.fcntl, unsupported, refuse)
    path = tmp_path / "a.py"
    path.write_text("old")
    replace_text(read_text(str(path)), "new")
    assert path.read_text() == "new"


def test_of_two_writers_at_once_the_second_is_told(tmp_path: Path):
    path = tmp_path / "a.py"
    path.write_text("0")
    done: list[str] = []

    def write(number: int) -> None:
        with suppress(EngineError):
            replace_text(file, str(number))
            done.append(str(number))

    for _ in range(20):
        done.clear()
        file = read_text(str(path))
        threads = [threading.Thread(target=write, args=[int(file.text) + number]) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == [path.read_text()]
