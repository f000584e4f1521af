"""Real package folders for the corpus to find: code that differs from package to package."""

import json
from pathlib import Path


def python_code(name: str, functions: int = 60) -> str:
    return "import os\n\n\n" + "".join(
        f"def {name}_{i}(path, default=None):\n"
        f"    found_{name} = os.environ.get('{name}_{i}', default)\n"
        f"    return [part for part in found_{name}.split(path) if part != {i}]\n\n\n"
        for i in range(functions)
    )


def script_code(name: str, functions: int = 60) -> str:
    return "'use strict';\n" + "".join(
        f"function {name}{i}(path) {{\n  const {name} = lookup(path, {i});\n  return {name}.join('{i}');\n}}\n\n"
        for i in range(functions)
    )


def install_python(site_packages: Path, name: str, licence: str, files: dict[str, str]) -> None:
    info = site_packages / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: {licence}\n", encoding="utf-8"
    )
    for relative, text in files.items():
        path = site_packages / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    (info / "RECORD").write_text("".join(f"{relative},,\n" for relative in files), encoding="utf-8")


def install_npm(node_modules: Path, name: str, licence: str, files: dict[str, str]) -> None:
    root = node_modules / name
    root.mkdir(parents=True)
    manifest = {"name": name, "version": "2.0.0", "license": licence}
    (root / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    for relative, text in files.items():
        (root / relative).write_text(text, encoding="utf-8")
