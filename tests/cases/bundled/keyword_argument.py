import subprocess


def run(command, folder, environment=None):
    """Run a command in a folder and return what it printed."""
    result = subprocess.run(
        command,
        cwd=folder,
        env=▮environment▮,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout
