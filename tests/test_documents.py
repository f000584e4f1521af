"""The documents: short enough to be read, led to by links that hold, and at one about every figure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from engine.common.version import __version__

ROOT = Path(__file__).parents[1]
FOLDERS = ("", "docs", "editors", "editors/vscode")
DOCUMENTS = {
    str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
    for folder in FOLDERS
    for file in sorted((ROOT / folder).glob("*.md"))
}
MAX_LINE = 120
MAX_NBYTES = {"README.md": 10_000, "docs/lab-notes.md": 40_000}
MAX_LINES_OF_A_RELEASE = 80
DATED = {"docs/lab-notes.md", "CHANGELOG.md"}
"""Each figure in them is one of its day; what holds today stands elsewhere."""

UNITS = r"%|ms|s|minutes|kB|MB|GB|KiB|MiB|GiB|[MB] parameters|M tokens|tokens/s"
FIGURE = re.compile(rf"(?<![\w.,])(\d[\d,]*(?:\.\d+)?) ?({UNITS})(?![\w/])")
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = "py|lua|ts|mjs|el|md|rst|txt|json|toml|yml|dgignore"
"""Of files that tables name."""
LINK = re.compile(r"\]\(([^)\s]+)\)")

FACTS = {
    "parameters of the bundled model": r"(\d+\.\d) M parameters",
    "tokens of context that it reads": r"reads (?:at most )?([\d,]+) tokens",
    "languages with a syntax check": r"checked in (\w+)(?: languages)",
    "versions of Python": r"Python (3\.\d+(?:, 3\.\d+)* (?:or|and) 3\.\d+)",
    "oldest VS Code": r"VS Code (?:\*\* )?(\d\.\d+) or newer",
    "oldest vLLM": r"(\d\.\d+) or newer[^.|]*vLLM|vLLM\S* (\d\.\d+) or newer",
    "tokens that the bundled model was trained on": r"([\d,.]+) M tokens read",
}
"""What several documents may say, as long as all say the same; `or` and `and` are one."""
MAY_BE_EQUAL = {"100%", "1000 ms", "300 ms", "0.50 s"}
"""Figures of two things that happen to be the same number."""


def figures(text: str) -> set[str]:
    """What is measured in a text: numbers of three digits and more, each with its unit."""
    found = FIGURE.findall(BLOCK.sub("", text))
    return {f"{number} {unit}" for number, unit in found if sum(map(str.isdigit, number)) >= 3} - MAY_BE_EQUAL


def paragraphs(text: str) -> list[str]:
    """Its paragraphs, list items and tables."""
    return re.split(r"\n\n|\n(?=- )", BLOCK.sub("", text))


def doubled(documents: Mapping[str, str]) -> dict[str, list[str]]:
    """Figures that stand in several of `documents`."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in documents.items():
        for figure in figures(text):
            places[figure].append(name)
    return {figure: names for figure, names in places.items() if len(names) > 1}


def contradicting(documents: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Of each fact that `documents` do not agree on, what is said of it and where."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for fact, pattern in FACTS.items():
        for name, text in documents.items():
            for match in re.finditer(pattern, re.sub(r"\s+", " ", text)):
                said = next(filter(None, match.groups())).replace(" or ", " and ")
                found[fact].setdefault(said, name)
    return {fact: said for fact, said in found.items() if len(said) > 1}


def unsupported(quoting: str, documents: Mapping[str, str]) -> list[str]:
    """Figures of the front page that no document has that their paragraph links to."""
    wrong: list[str] = []
    for paragraph in paragraphs(quoting):
        linked = [documents.get(target.partition("#")[0], "") for target in LINK.findall(paragraph)]
        plain = [" ".join(text.split()) for text in linked]
        for number, unit in FIGURE.findall(" ".join(paragraph.split())):
            if plain and not any(re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.]*\d)", text) for text in plain):
                wrong.append(f"{number} {unit}")
    return wrong


def current(leave_out: Iterable[str] = ()) -> dict[str, str]:
    return {name: text for name, text in DOCUMENTS.items() if name not in DATED | set(leave_out)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_lines_are_short(name: str):
    assert [line for line in DOCUMENTS[name].splitlines() if len(line) > MAX_LINE] == []


@pytest.mark.parametrize("name", MAX_NBYTES)
def test_it_is_short(name: str):
    assert len((ROOT / name).read_bytes()) <= MAX_NBYTES[name]


def test_a_release_has_its_version_and_few_lines():
    _, unreleased, newest, *_ = re.split(r"^## (?=\[)", DOCUMENTS["CHANGELOG.md"], flags=re.MULTILINE)
    assert unreleased.startswith("[Unreleased]")
    assert newest.startswith(f"[{__version__}] - ")
    assert len(newest.splitlines()) <= MAX_LINES_OF_A_RELEASE


def test_no_figure_stands_in_two_documents():
    assert doubled(current(["README.md"])) == {}


def test_the_front_page_says_what_the_documents_say_that_it_links_to():
    assert unsupported(DOCUMENTS["README.md"], DOCUMENTS) == []


def test_the_documents_agree():
    assert contradicting(current()) == {}


def test_each_fact_is_said_somewhere():
    texts = [" ".join(text.split()) for text in current().values()]
    assert [fact for fact, pattern in FACTS.items() if not any(re.search(pattern, text) for text in texts)] == []


def test_a_figure_in_two_documents_is_found():
    documents = {"a.md": "It takes 1.25 s (31.4%).", "b.md": "A fill takes 1.25 s; 31.5% pass.", "c.md": "In 5 s."}
    assert doubled(documents) == {"1.25 s": ["a.md", "b.md"]}


def test_documents_that_differ_are_found():
    documents = {"a.md": "It has 12.9 M parameters.", "b.md": "of 13.0 M\nparameters", "c.md": "12.9 M parameters"}
    assert contradicting(documents) == {"parameters of the bundled model": {"12.9": "a.md", "13.0": "b.md"}}


def test_a_front_page_that_says_something_else_is_found():
    documents = {"docs/b.md": "It takes 0.14 s, and 26.3% are exact."}
    front_page = "- It takes 0.14 s ([b](docs/b.md)).\n- 26.4% are exact\n  ([b](docs/b.md#there))."
    assert unsupported(front_page, documents) == ["26.4 %"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_what_is_there(name: str):
    for target in LINK.findall(BLOCK.sub("", DOCUMENTS[name])):
        if target.startswith(("http:", "https:")):
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", line).strip().lower().replace(" ", "-") for line in headings}


def missing(tables: str) -> list[str]:
    """Files in tables of changes that are not there: in the folder that heads the table, in the root, or beside the
    file before them."""
    lost: list[str] = []
    base = ROOT
    for row in re.findall(r"^\| .*", tables, re.MULTILINE):
        _, _, *cells, _ = re.split(r"(?<!\\)\|", row)
        if head := re.match(r" Start in(?: `(.*)`)? $", cells[0]):
            base = ROOT / (head[1] or "")
            continue
        beside = base
        for name in re.findall(rf"`([\w./-]+(?:\.(?:{SUFFIXES})|/)|Makefile)`", "".join(cells)):
            found = next((path for path in (beside / name, base / name, ROOT / name) if path.exists()), None)
            if found or "NAME" in name:
                beside = (found or base / name).parent
            else:
                lost.append(f"{row.split('|')[1].strip()}: {name}")
    return lost


def test_files_to_start_in_exist():
    tables = DOCUMENTS["CONTRIBUTING.md"].partition("## I want to change")[2].partition("\n## ")[0]
    assert tables.count("Start in") > 10
    assert missing(tables) == []


def test_a_file_that_is_gone_is_found():
    table = "| Here | Start in `docs/` | Also |\n|---|---|---|\n| it | `http.md` | more: `http.rst`, `http.md` |\n"
    assert missing(table) == ["it: http.rst"]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/how-it-works.md"])
def test_paths_that_are_named_exist(name: str):
    named = re.findall(r"`((?:engine|dg_lsp|tests|editors|docs)/[\w./-]*)`", DOCUMENTS[name])
    assert named
    assert [path for path in named if not (ROOT / path).exists() and not re.search(r"[A-Z]{4}", path)] == []
