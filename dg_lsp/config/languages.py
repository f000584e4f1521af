"""Names of languages in settings and editors, and which of them match."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

ALL = "*"
"""Matches every language."""
_LIKE = 0.7


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KNOWN = _words(
    """
    abap ada apex applescript arduino asciidoc asm assembly astro awk bash bat bazel bibtex blade c caddyfile
    clojure cmake coffeescript commonlisp cpp crystal csharp css csv cuda cuda-cpp cue cypher cython d dart diff
    django django-html dockercompose dockerfile dotenv ejs elisp elixir elm emacs-lisp eex erb erlang fish fortran
    fsharp gdscript gherkin git-commit git-rebase gitcommit gitconfig gitignore gitrebase gleam glsl go go.mod
    go.sum gomod gowork gotmpl graphql groovy haml handlebars haskell hcl heex helm hlsl html htmldjango http ignore
    ini ipython jade java javascript javascriptreact jinja jinja-html json json5 jsonc jsonl jsonnet jsx julia just
    justfile kotlin latex less lisp liquid log lua luau make makefile markdown markdown_inline matlab mdx mermaid
    meson mojo mysql nasm nginx nim nix objc objective-c objective-cpp objcpp ocaml octave odin org pascal pem perl
    perl6 php pkl plaintext plsql po postcss postgres powershell prisma prolog properties proto proto3 protobuf ps1
    pug puppet purescript python qml quarto r racket raku razor reason rebase rego requirements rescript
    restructuredtext rmd robotframework rst ruby rust sas sass scala scheme scss sh shaderlab shell shellscript slim
    smarty snippets solidity sparql spec sql squirrel starlark stata stylus svelte svg swift systemverilog tcl templ
    terraform terraform-vars tex text toml tsv tsx turtle twig typescript typescriptreact typst v vala vb verilog
    vhdl vim vimdoc viml vlang vue wgsl wit xml xsl yaml yara zig zsh
    """
)
"""Identifiers that editors use; others may exist."""


def is_on(switches: Mapping[str, bool], language: str) -> bool:
    """Whether a language is switched on. Its full name decides before a part of it, and that before `*`."""
    named = [(name, enabled) for name, enabled in switches.items() if is_meant(name, language)]
    whole = [enabled for name, enabled in named if name.lower() == language.lower()]
    parts = [enabled for name, enabled in named if name != ALL]
    return all(whole or parts or (enabled for _, enabled in named))


def is_meant(name: str | None, language: str | None) -> bool:
    """Whether a name matches a document's language, which may be composed: `python.django`. None matches only None."""
    if name is None or language is None:
        return name is language
    return name == ALL or name.lower() in (language.lower(), *language.lower().split("."))


def unknown_language(name: str) -> str:
    """A sentence if no known editor uses a name for a language; else empty."""
    low = name.lower()
    if name == ALL or low in _KNOWN or low.partition(".")[0] in _KNOWN:
        return ""
    close = get_close_matches(low[:40], _KNOWN, n=1, cutoff=_LIKE)
    hint = f": did you mean {close[0]!r}?" if close else "."
    return f"The setting 'languages' names {name[:40]!r}, which no editor is known to call a language{hint}"
