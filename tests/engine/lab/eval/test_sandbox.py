"""A solution that is hostile neither passes nor harms, whichever walls hold it."""

import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from engine.lab.eval.inside.confine import Level, SandboxLimits
from engine.lab.eval.sandbox import ProgramOutput, run_program, run_test, standard_limits

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sandboxes need Linux or macOS")

CHECK = "def check(candidate):\n    for x in range(3):\n        assert candidate(x) == [x, 2 * x]\n"
RIGHT = "def f(x):\n    return [x, 2 * x]\n"


@pytest.fixture(scope="session")
def strongest() -> Level:
    return standard_limits().level


@pytest.fixture(params=["namespaces", "guards"])
def limits(request: pytest.FixtureRequest, strongest: Level) -> SandboxLimits:
    if request.param == "namespaces" and strongest != "namespaces":
        pytest.skip("the kernel gives no namespaces here")
    return SandboxLimits(level=request.param, cpu_s=2, wall_s=30)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sandboxes of this test have their folders, so that their processes can be told from others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Another process of the same user."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def left_in(folder: Path) -> list[int]:
    def belongs(process: psutil.Process) -> bool:
        return any(str(folder) in argument for argument in process.info["cmdline"] or ())

    return [process.pid for process in psutil.process_iter(["cmdline"]) if belongs(process)]


def nothing_is_left_in(folder: Path) -> bool:
    ends = time.monotonic() + 60
    while left_in(folder):
        assert time.monotonic() < ends, f"processes {left_in(folder)} are still there"
        time.sleep(0.05)
    return list(folder.glob("dg-lsp-sandbox-*")) == []


def test_a_right_solution_passes(limits: SandboxLimits):
    assert run_test(RIGHT, CHECK, "f", limits).passed


@pytest.mark.parametrize(
    ("solution", "reason"),
    [
        ("def f(x):\n    return [x, x]\n", "AssertionError"),
        ("def f(x):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def f(x):\n    return f(x)\n", "RecursionError"),
        ("def g(x):\n    return [x, 2 * x]\n", "KeyError"),
        ("def f(x:\n", "SyntaxError"),
        ("", "KeyError"),
        ("def f(x):\n    return (each for each in [x, 2 * x])\n", "generator can't be compared"),
    ],
)
def test_a_wrong_one_does_not_and_the_reason_is_told(limits: SandboxLimits, solution: str, reason: str):
    verdict = run_test(solution, CHECK, "f", limits)
    assert not verdict.passed
    assert reason in verdict.reason


@pytest.mark.parametrize(
    "solution",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "raise SystemExit(0)\n",
        "import os\ndef f(x):\n    os._exit(0)\n",
        "def f(x):\n    raise SystemExit(0)\n",
        "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x):\n    return None\n",
    ],
)
def test_who_ends_early_does_not_pass(limits: SandboxLimits, solution: str):
    assert not run_test(solution, CHECK, "f", limits).passed


YES = '{"passed": true, "reason": ""}'


@pytest.mark.parametrize(
    "solution",
    [
        "class Same:\n    def __eq__(self, other):\n        return True\ndef f(x):\n    return Same()\n",
        "class Same(list):\n    def __eq__(self, other):\n        return True\ndef f(x):\n    return Same()\n",
        "import builtins\nbuiltins.AssertionError = KeyError\ndef f(x):\n    return 0\n",
        "def check(candidate):\n    pass\ndef f(x):\n    return 0\n",
        f"print('{YES}', flush=True)\ndef f(x):\n    return 0\n",
        f"""
import os
for fd in range(64):
    try:
        os.write(fd, b'{YES}\\n')
    except OSError:
        pass
def f(x):
    return 0
""",
        """
import gc, glob, os, sys
held = [repr(sys.argv), repr(dict(os.environ))]
paths = glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/cmdline")
for path in paths + [path.replace("/proc", "/dev/fd/../..", 1) for path in paths]:
    try:
        if os.path.isfile(path):  # a pipe would wait
            with open(path, "rb", buffering=0) as file:
                held.append(repr(file.read(1 << 16)))
    except OSError:
        pass
try:
    held += [repr(each)[:10000] for each in gc.get_objects() if isinstance(each, (str, dict))]
except Exception:
    pass
def f(x):
    # What the test wants is in what it compares with, so whoever has read it knows.
    return [x, 2 * x] if any("assert candidate(x) ==" + " [x" in each for each in held) else 0
""",
        """
import sys
frame = sys._getframe()
while frame:
    for value in list(frame.f_globals.values()):
        if callable(value) and getattr(value, "__name__", "") in ("encode", "pack"):
            frame.f_globals[value.__name__] = lambda value: b'{"value": true}\\n'
    frame = frame.f_back
def f(x):
    return 0
""",
    ],
    ids=[
        "always equal",
        "always equal list",
        "no assertions",
        "own check",
        "says so",
        "says so everywhere",
        "reads",
        "frames",
    ],
)
def test_who_cheats_does_not_pass(limits: SandboxLimits, solution: str):
    assert not run_test(solution, CHECK, "f", limits).passed


@pytest.mark.parametrize(
    "solution",
    [
        "while True:\n    pass\n",
        "def f(x):\n    while True:\n        pass\n",
        "def f(x):\n    return 9 ** 9 ** 9\n",
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(x):\n    return [f(x)] and f(x)\n",
        "import os, sys\nwhile True:\n    print('x' * 100000)\n    print('x' * 100000, file=sys.stderr)\n",
        "import os\nwhile True:\n    for fd in range(3, 64):\n        try:\n            os.write(fd, b'x' * 100000)\n"
        "        except OSError:\n            pass\n",
        "def f(x):\n    return 'x' * (1 << 30)\n",
        "import time\ntime.sleep(600)\n",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGALRM, "
        "signal.SIG_IGN)\ntime.sleep(600)\n",
    ],
    ids=[
        "loops at once",
        "loops",
        "counts",
        "recurses",
        "prints",
        "writes everywhere",
        "answers at length",
        "sleeps",
        "sleeps deaf",
    ],
)
def test_who_does_not_end_is_ended(limits: SandboxLimits, folder: Path, solution: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.lab.eval.sandbox._GRACE_S", 1.0)
    began = time.monotonic()
    short = SandboxLimits(level=limits.level, cpu_s=1, wall_s=3)
    assert not run_test(solution, CHECK, "f", short).passed
    assert time.monotonic() - began < 100
    assert nothing_is_left_in(folder)


def test_who_is_not_wanted_any_more_is_ended_at_once(limits: SandboxLimits, folder: Path):
    stopping = threading.Event()
    threading.Timer(2, stopping.set).start()
    began = time.monotonic()
    sleeper = "import time\ntime.sleep(600)\n"
    assert not run_test(sleeper, CHECK, "f", limits, should_stop=stopping.is_set).passed
    assert time.monotonic() - began < limits.wall_s - 5
    assert nothing_is_left_in(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_nothing_outlives_a_run_that_was_killed(limits: SandboxLimits, folder: Path):
    program = f"""
import tempfile
from engine.lab.eval.inside.confine import SandboxLimits
from engine.lab.eval.sandbox import run_test
tempfile.tempdir = {str(folder)!r}
run_test("import time\\nprint(time.sleep(600))\\n", {CHECK!r}, "f", SandboxLimits(level={limits.level!r}, wall_s=600))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as run:
        try:
            # The run itself, solution and tester; with namespaces also what watches each.
            wait_until(lambda: len(left_in(folder)) == (5 if limits.level == "namespaces" else 3))
            time.sleep(1)
        finally:
            run.kill()
    wait_until(lambda: left_in(folder) == [])


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.parametrize(
    "bomb",
    [
        "import os\nwhile True:\n    os.fork()\n",
        "import os\ndef f(x):\n    while 1:\n        try:\n            os.fork()\n        except OSError: pass\n",
        "import os\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n        while True:\n            pass\n"
        + RIGHT,
        "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(600,)).start()\n",
    ],
    ids=["bomb", "patient bomb", "daemon", "threads"],
)
def test_a_fork_bomb_is_put_out(limits: SandboxLimits, folder: Path, bomb: str):
    short = SandboxLimits(level=limits.level, cpu_s=1, wall_s=5)
    run_test(bomb, CHECK, "f", short)
    assert nothing_is_left_in(folder)


def test_memory_is_limited(limits: SandboxLimits):
    small = SandboxLimits(level=limits.level, cpu_s=5, memory_nbytes=256 << 20)
    assert "MemoryError" in run_test("held = bytearray(1 << 30)\n" + RIGHT, CHECK, "f", small).reason


def test_output_is_limited(limits: SandboxLimits):
    small = SandboxLimits(level=limits.level, cpu_s=5, file_nbytes=1 << 20)
    printed = run_program("while True:\n    print('x' * 1000)\n", small)
    assert printed.code != 0
    assert len(printed.output) <= 1 << 20


def test_files_are_limited_in_size_and_number(limits: SandboxLimits):
    small = SandboxLimits(level=limits.level, cpu_s=5, file_nbytes=1 << 20, files=32)
    large = run_program("with open('large', 'wb') as file:\n    file.write(bytes(4 << 20))\n", small)
    assert large.code != 0
    many = run_program("held = [open('many', 'wb') for _ in range(64)]\n", small)
    assert many.code != 0


def test_its_own_folder_can_be_written_to_and_is_removed(limits: SandboxLimits, folder: Path):
    program = "open('mine', 'w').write('here')\nprint(open('mine').read())\n"
    assert run_program(program, limits) == ProgramOutput(code=0, output="here\n")
    assert nothing_is_left_in(folder)


def test_nothing_can_be_written_elsewhere(limits: SandboxLimits, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("unharmed")
    program = f"""
import os, shutil
for act in (
    lambda: open({str(victim)!r}, "w").write("harmed"),
    lambda: os.remove({str(victim)!r}),
    lambda: os.rename({str(victim)!r}, {str(victim)!r} + "2"),
    lambda: os.truncate({str(victim)!r}, 0),
    lambda: os.chmod({str(victim)!r}, 0),
    lambda: shutil.rmtree({str(tmp_path)!r}),
    lambda: open({str(tmp_path / "new")!r}, "w"),
    lambda: os.mkdir({str(tmp_path / "folder")!r}),
    lambda: os.symlink("/", {str(tmp_path / "link")!r}),
    lambda: open(os.path.expanduser("~/dg-lsp-was-here"), "w"),
    lambda: open("/usr/dg-lsp-was-here", "w"),
    lambda: open(os.__file__, "a"),
):
    try:
        act()
        print("written")
    except OSError:
        print("refused")
"""
    assert run_program(program, limits).output.split() == ["refused"] * 12
    assert [path.name for path in tmp_path.iterdir()] == ["victim"]
    assert victim.read_text() == "unharmed"


def test_nobody_else_can_be_killed(limits: SandboxLimits, bystander: subprocess.Popen[bytes]):
    program = f"""
import os, signal
for pid in (os.getppid(), {os.getpid()}, {bystander.pid}, -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
try:
    os.killpg(0, signal.SIGKILL)
except OSError:
    pass
"""
    run_program(program, limits)
    assert not run_test(program, CHECK, "f", limits).passed
    assert bystander.poll() is None


def test_there_is_no_network(limits: SandboxLimits, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        path = tempfile.mktemp(prefix="dg-lsp-")
        local.bind(path)
        local.listen()
        program = f"""
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})), (socket.AF_UNIX, {path!r})):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError:
        print("refused")
"""
        assert run_program(program, limits).output.split() == ["refused", "refused"]
        Path(path).unlink()


def test_the_environment_and_files_of_the_user_are_hidden(
    tmp_path: Path, strongest: Level, monkeypatch: pytest.MonkeyPatch
):
    if strongest != "namespaces":
        pytest.skip("the kernel gives no namespaces here")
    monkeypatch.setenv("DG_LSP_SECRET", "hidden")
    (tmp_path / "secret").write_text("hidden")
    program = f"""
import os
print(os.environ.get("DG_LSP_SECRET"), os.path.exists({str(tmp_path / "secret")!r}), os.path.exists("/proc/1"))
"""
    assert run_program(program, SandboxLimits()).output.split() == ["None", "False", "False"]


def test_a_test_sees_values_functions_and_imports_of_the_solution(limits: SandboxLimits):
    solution = (
        "import math\nFACTOR = 2\ndef double(x):\n    return FACTOR * x\ndef f(x, *, plus=0):\n    return x + plus\n"
    )
    test = """
def check(candidate):
    assert candidate(1, plus=2) == 3
    assert double(4) == FACTOR * 4
    assert math.floor(1.5) == 1
"""
    assert run_test(solution, test, "f", limits) == run_test(solution, test, "f", limits)
    assert run_test(solution, test, "f", limits).passed


def test_an_exception_that_the_test_expects_reaches_it(limits: SandboxLimits):
    test = """
def check(candidate):
    try:
        candidate(0)
    except ValueError as error:
        assert str(error) == "too small"
        return
    assert False
"""
    assert run_test("def f(x):\n    raise ValueError('too small')\n", test, "f", limits).passed
    assert not run_test("def f(x):\n    raise KeyError('too small')\n", test, "f", limits).passed


def test_a_program_prints(limits: SandboxLimits):
    assert run_program("print(6)\n", limits) == ProgramOutput(code=0, output="6\n")
    assert run_program("raise ValueError\n", limits).code != 0


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="keyrings and System V memory of Linux")
KEYCTL, ADD_KEY = (250, 248) if os.name == "posix" and os.uname().machine == "x86_64" else (219, 217)
SESSION, JOIN, UNLINK = -3, 1, 9


@ON_LINUX
def test_the_keys_of_the_user_are_out_of_reach(limits: SandboxLimits):
    libc = ctypes.CDLL(None)
    name = f"dg-lsp-{os.getpid()}".encode()
    key = libc.syscall(ADD_KEY, b"user", name, b"secret", 6, SESSION)
    if key < 0:
        pytest.skip("the kernel has no keyrings here")
    search = f"ctypes.CDLL(None).syscall({KEYCTL}, 10, {SESSION}, b'user', {name!r}, 0)"
    read = f"ctypes.CDLL(None).syscall({KEYCTL}, 11, {key}, ctypes.create_string_buffer(9), 9)"
    try:
        found = run_program(f"import ctypes\nprint({search}, {read})\n", limits)
    finally:
        libc.syscall(KEYCTL, UNLINK, key, SESSION)
    if limits.level == "namespaces":
        assert found.output == "-1 -1\n"
    else:
        assert found.code != 0  # ctypes is refused


@ON_LINUX
def test_shared_memory_does_not_go_beyond_the_limit(limits: SandboxLimits):
    take = "ctypes.CDLL(None).shmget(0, 64 << 20, 0o1600)"
    found = run_program(f"import ctypes\nprint(sum({take} >= 0 for _ in range(64)))\n", limits)
    if limits.level == "namespaces":
        if os.getuid() != 0:
            pytest.skip("only root may set the bounds of a namespace")
        assert found.output == "0\n"
    else:
        assert found.code != 0
