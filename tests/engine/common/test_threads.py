"""What torch's threads do while they have no work."""

import os
import subprocess
import sys


def test_threads_give_way_while_they_wait():
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    # What the OpenMP library of this very process goes by.
    program = "import engine, torch; print(torch.get_num_threads())"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "OMP_DISPLAY_ENV": "TRUE"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told
