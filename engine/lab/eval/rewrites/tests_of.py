"""Tests a rewrite: by its patterns, then by its test in a sandbox. TypeScript needs node and Rust rustc; without them,
or without a sandbox that can hold them, the patterns alone decide."""

from __future__ import annotations

import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tree_sitter import Node, Parser

from engine.lab.eval.inside.confine import SandboxLimits
from engine.lab.eval.rewrites.rewrite_tasks import RewriteTask
from engine.lab.eval.sandbox import ProgramOutput, SandboxResult, run_command, run_program, standard_limits
from engine.syntax.compiler import diagnose
from engine.syntax.languages import load

_TYPES = {
    *("type_annotation", "type_parameters", "type_arguments", "interface_declaration", "type_alias_declaration"),
    *("accessibility_modifier", "override_modifier", "asserts_annotation", "type_predicate_annotation"),
    *("implements_clause", "ambient_declaration", "function_signature"),
}
_WORDS = {"readonly", "abstract"}
_AFTER = {"as_expression": ("as",), "satisfies_expression": ("satisfies",), "non_null_expression": ("!",)}
_COMPILE_S = 60.0
_NATIVE = SandboxLimits(memory_nbytes=64 << 30, processes=64)
"""Limits for node, which reserves addresses by the gigabyte and starts a thread for each core."""
_PYTHON = """\
import sys, types
text, new, test, done = {given!r}
sys.stderr = sys.stdout
def raises(kind, call, /, *args, **named):
    try:
        call(*args, **named)
    except kind:
        return True
    return False
module = sys.modules["subject"] = types.ModuleType("subject")
exec(compile(text, "subject.py", "exec"), module.__dict__)
module.__dict__.update(new=new, raises=raises)
exec(compile(test, "test.py", "exec"), module.__dict__)
print()
print(done)
"""
_JAVASCRIPT = """\
{text}
const same = (found, wanted) => {{
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${{one}} is not ${{other}}`);
}};
{test}
console.log("\\n{done}");
"""
_RUST = """\
#![allow(dead_code, unused)]
{text}
fn main() {{
{test}
println!("\\n{done}");
}}
"""


def checked(task: RewriteTask, new: str) -> SandboxResult:
    """Test `new` in the place of the selection."""
    for pattern in task.has:
        if not re.search(pattern, new, re.M):
            return SandboxResult(passed=False, reason=f"it lacks {pattern}")
    for pattern in task.lacks:
        if re.search(pattern, new, re.M):
            return SandboxResult(passed=False, reason=f"it has {pattern}")
    run = {"python": _run_python, "typescript": _run_typescript, "rust": _run_rust}[task.language]
    done = secrets.token_hex(8)
    output = run(task, new, done)
    if output is None:
        return SandboxResult(passed=True, reason="by its patterns alone")
    passed = output.code == 0 and output.output.rstrip().endswith(done)
    return SandboxResult(passed=passed, reason="" if passed else f"its test fails {output.output[-300:]}".strip())


def is_run(language: str) -> bool:
    """Whether tests in a language are run here; otherwise patterns alone decide."""
    return language == "python" or (_has_node() if language == "typescript" else _has_rustc())


def _run_python(task: RewriteTask, new: str, done: str) -> ProgramOutput:
    text = task.file_with(new)
    if refused := diagnose(text):
        return ProgramOutput(code=1, output=refused.message)
    return run_program(_PYTHON.format(given=(text, new, task.test, done)), standard_limits())


def _run_typescript(task: RewriteTask, new: str, done: str) -> ProgramOutput | None:
    if not _has_node():
        return None
    text = plain_javascript(task.file_with(new))
    return _by_node(_JAVASCRIPT.format(text=text, test=task.test, done=done))


def _by_node(program: str) -> ProgramOutput:
    return run_command([shutil.which("node") or "", "program.mjs"], {"program.mjs": program.encode()}, _NATIVE)


@cache
def _has_node() -> bool:
    program = "console.log(6 * 7)"
    return bool(shutil.which("node")) and _is_walled() and _by_node(program) == ProgramOutput(code=0, output="42\n")


def _run_rust(task: RewriteTask, new: str, done: str) -> ProgramOutput | None:
    if not _has_rustc():
        return None
    return _by_rustc(_RUST.format(text=task.file_with(new), test=task.test, done=done))


def _by_rustc(program: str) -> ProgramOutput:
    """Compile outside of the sandbox, as the compiler runs nothing of the code, and run inside."""
    with tempfile.TemporaryDirectory(prefix="dg-lsp-rust-") as folder:
        source, built = Path(folder, "program.rs"), Path(folder, "program")
        source.write_text(program, encoding="utf-8")
        command = ["rustc", "--edition=2021", "-Cstrip=symbols", "-Cdebuginfo=0", "-o", str(built), str(source)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return ProgramOutput(code=1, output=str(error))
        if said.returncode:
            return ProgramOutput(code=said.returncode, output=said.stderr)
        return run_command(["./program"], {"program": built.read_bytes()}, _NATIVE)


@cache
def _has_rustc() -> bool:
    if not shutil.which("rustc") or not _is_walled():
        return False
    return _by_rustc('fn main() { println!("{}", 6 * 7); }') == ProgramOutput(code=0, output="42\n")


def _is_walled() -> bool:
    """Whether the kernel can confine programs that are not Python."""
    return sys.platform == "linux" and standard_limits().level == "namespaces"


def plain_javascript(text: str) -> str:
    """TypeScript without its types, so that any node can run it. Types become blanks, as in node's own type stripping.
    Enums, namespaces and decorators stay, and don't run."""
    grammar = load("typescript")
    assert grammar is not None
    data = text.encode()
    root = Parser(grammar).parse(data).root_node
    changes = [(start, end, b"") for start, end in _types(root)] + list(_kept_parameters(root))
    for start, end, new in sorted(changes, reverse=True):
        blank = bytes(letter if letter in b"\r\n" else ord(" ") for letter in data[start:end])
        data = data[:start] + new + blank + data[end:]
    return data.decode()


def _types(node: Node) -> Iterator[tuple[int, int]]:
    """Spans of types in bytes, none inside another."""
    if node.type in _TYPES or (not node.is_named and node.type in _WORDS):
        yield node.start_byte, node.end_byte
        return
    optional = node.type in ("optional_parameter", "public_field_definition", "method_definition")
    for child in node.children:
        if child.type in _AFTER.get(node.type, ()):
            yield child.start_byte, node.end_byte
            return
        if optional and child.type == "?":
            yield child.start_byte, child.end_byte
        else:
            yield from _types(child)


def _kept_parameters(node: Node) -> Iterator[tuple[int, int, bytes]]:
    """Assignments that a constructor owes for parameters that are fields as well."""
    body = node.child_by_field_name("body")
    parameters = node.child_by_field_name("parameters")
    if node.type == "method_definition" and body and parameters:
        for each in parameters.named_children:
            name = each.child_by_field_name("pattern")
            if name and any(part.type in ("accessibility_modifier", "readonly") for part in each.children):
                said = name.text or b""
                yield body.start_byte + 1, body.start_byte + 1, b" this." + said + b" = " + said + b";"
    for child in node.children:
        yield from _kept_parameters(child)
