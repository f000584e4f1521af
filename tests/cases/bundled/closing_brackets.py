import os


def list_sources(root):
    """Paths of all Python files under a folder."""
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            if name.endswith(".py"):
                found.append(os.path.abspath(os.path.join(folder, name▮)))▮
    return sorted(found)
