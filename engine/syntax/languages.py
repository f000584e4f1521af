"""Which languages can be checked, and what names them: LSP ids, file names, shebangs.

Grammars are wheels of their own, imported at first use, so that a daemon for Python never loads the one for C++.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import PurePath

from tree_sitter import Language

_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S++\s++)*+)?(?:\S*/)?([A-Za-z][A-Za-z+_-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A language, the package that holds its grammar, and the names it goes by."""

    name: str
    module: str
    function: str = "language"
    aliases: frozenset[str] = field(default_factory=lambda: frozenset[str]())
    """Identifiers that editors send, beside `name`."""
    extensions: frozenset[str] = field(default_factory=lambda: frozenset[str]())
    """Endings of file names, lower case, without the dot."""
    filenames: frozenset[str] = field(default_factory=lambda: frozenset[str]())
    interpreters: frozenset[str] = field(default_factory=lambda: frozenset[str]())
    """Programs of a shebang, without version digits."""


def _grammar(
    name: str,
    module: str,
    function: str = "language",
    *,
    aliases: str = "",
    extensions: str = "",
    filenames: str = "",
    interpreters: str = "",
) -> Grammar:
    return Grammar(
        name=name,
        module=module,
        function=function,
        aliases=frozenset(aliases.split()),
        extensions=frozenset(extensions.split()),
        filenames=frozenset(filenames.split()),
        interpreters=frozenset(interpreters.split()),
    )


GRAMMARS: tuple[Grammar, ...] = (
    _grammar(
        "python",
        "tree_sitter_python",
        aliases="py",
        extensions="py pyi pyw",
        filenames="SConstruct SConscript wscript",
        interpreters="python pypy",
    ),
    _grammar(
        "javascript",
        "tree_sitter_javascript",
        aliases="javascriptreact javascript.jsx js jsx",
        extensions="js mjs cjs jsx",
        interpreters="node nodejs bun",
    ),
    _grammar(
        "typescript",
        "tree_sitter_typescript",
        "language_typescript",
        aliases="ts",
        extensions="ts mts cts",
        interpreters="deno ts-node tsx",
    ),
    _grammar(
        "tsx",
        "tree_sitter_typescript",
        "language_tsx",
        aliases="typescriptreact typescript.tsx",
        extensions="tsx",
    ),
    _grammar("go", "tree_sitter_go", aliases="golang", extensions="go"),
    _grammar("rust", "tree_sitter_rust", aliases="rs", extensions="rs"),
    _grammar("c", "tree_sitter_c", extensions="c h"),
    _grammar(
        "cpp",
        "tree_sitter_cpp",
        aliases="c++ cuda cuda-cpp",
        extensions="cc cpp cxx c++ hh hpp hxx h++ ipp inl ino cu cuh",
    ),
    _grammar("java", "tree_sitter_java", extensions="java"),
    _grammar("csharp", "tree_sitter_c_sharp", aliases="cs c#", extensions="cs csx"),
    _grammar(
        "ruby",
        "tree_sitter_ruby",
        aliases="rb eruby",
        extensions="rb rake gemspec ru",
        filenames="Gemfile Rakefile Guardfile Vagrantfile Podfile Brewfile",
        interpreters="ruby jruby",
    ),
    _grammar("php", "tree_sitter_php", "language_php", extensions="php phtml", interpreters="php"),
    _grammar("lua", "tree_sitter_lua", extensions="lua", interpreters="lua luajit"),
    _grammar(
        "bash",
        "tree_sitter_bash",
        aliases="shellscript sh",
        extensions="sh bash",
        filenames=".bashrc .bash_profile .bash_aliases .bash_logout .profile PKGBUILD APKBUILD",
        interpreters="bash sh dash ash",
    ),
    _grammar(
        "json",
        "tree_sitter_json",
        aliases="jsonc",
        extensions="json jsonc webmanifest geojson",
        filenames=".eslintrc .prettierrc .babelrc composer.lock Pipfile.lock",
    ),
    _grammar("toml", "tree_sitter_toml", extensions="toml", filenames="Cargo.lock Pipfile poetry.lock uv.lock"),
    _grammar(
        "yaml",
        "tree_sitter_yaml",
        aliases="dockercompose github-actions-workflow yaml.docker-compose",
        extensions="yaml yml",
        filenames=".clang-format .clang-tidy .clangd",
    ),
    _grammar("html", "tree_sitter_html", extensions="html htm xhtml"),
    _grammar("css", "tree_sitter_css", extensions="css"),
    _grammar("markdown", "tree_sitter_markdown", aliases="md", extensions="md markdown"),
)


def language_of(identifier: str = "", path: str = "", first_line: str = "") -> str | None:
    """The name (`Grammar.name`) of a language, by what the editor calls it, by file name or by shebang, in this order.

    None where nothing names one that is known.
    """
    return _by_identifier(identifier) or _by_path(path) or _by_shebang(first_line)


@cache
def load(name: str) -> Language | None:
    """The grammar of a language; None where there is none or the installed one can't be used."""
    grammar = next((known for known in GRAMMARS if known.name == name), None)
    if grammar is None:
        return None
    try:
        capsule: object = getattr(import_module(grammar.module), grammar.function)()
        return Language(capsule)
    except (ImportError, AttributeError, ValueError):
        return None


def _by_identifier(identifier: str) -> str | None:
    wanted = identifier.strip().lower()
    return next((known.name for known in GRAMMARS if wanted == known.name or wanted in known.aliases), None)


def _by_path(path: str) -> str | None:
    name = PurePath(path.replace("\\", "/")).name
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    return next((known.name for known in GRAMMARS if name in known.filenames or ending in known.extensions), None)


def _by_shebang(first_line: str) -> str | None:
    found = _SHEBANG.match(first_line)
    program = found.group(1).lower() if found else ""
    return next((known.name for known in GRAMMARS if program in known.interpreters), None)
