"""What torch's threads do while they have no work."""

import os
import subprocess
import sys

import pytest

UNSET = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


@pytest.mark.parametrize(("set_by_user", "spins"), [({}, "3000"), ({"OMP_WAIT_POLICY": "PASSIVE"}, "0")])
def test_threads_wait_a_moment_and_then_give_way(set_by_user, spins):
    environment = {name: value for name, value in os.environ.items() if name not in UNSET} | set_by_user
    # What the OpenMP library of this very process goes by.
    program = "import engine, torch; print(torch.get_num_threads())"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "OMP_DISPLAY_ENV": "VERBOSE"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told
    if sys.platform == "linux":
        assert f"GOMP_SPINCOUNT = '{spins}'" in told
