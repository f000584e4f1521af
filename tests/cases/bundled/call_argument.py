import json


def load_settings(path, encoding="utf-8"):
    """Read a settings file."""
    with open(▮path▮, encoding=encoding) as file:
        return json.load(file)


def save_settings(path, settings, encoding="utf-8"):
    """Write a settings file."""
    with open(path, "w", encoding=encoding) as file:
        json.dump(settings, file, indent=2)
