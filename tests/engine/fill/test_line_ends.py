"""What fills a gap sees line feeds alone, wherever the text of a request has other line ends."""

import pytest
from msgspec.structs import replace

from engine.common.request import Candidate, Filled, FillRequest, RecentEdit, Snippet, WorkspaceMatch
from engine.fill.executor import drive
from engine.fill.line_ends import in_line_feeds, with_line_feeds_alone
from engine.models.oracle.model import Oracle

TEXT = "a = 1\nb = 2\nc = 3\n"
REQUEST = FillRequest(
    prefix="x\ny\n",
    old=TEXT,
    suffix="\nz\n",
    guess="g\n",
    keep=((0, 1), (6, 12), (5, 6)),
    snippets=(Snippet(path="a.py", text="p\nq\n"),),
    edits=(RecentEdit(path="a.py", old="", new="y", start=2), RecentEdit(path="b.py", old="o\np", new="n")),
    workspace_matches=(WorkspaceMatch(text="t\nu", origin="a.py:1"),),
)


def of_windows(request: FillRequest) -> FillRequest:
    def ended(text: str) -> str:
        return text.replace("\n", "\r\n")

    def moved(text: str, at: int) -> int:
        return at + text[:at].count("\n")

    return replace(
        request,
        prefix=ended(request.prefix),
        old=ended(request.old),
        suffix=ended(request.suffix),
        guess=ended(request.guess),
        keep=tuple((moved(request.old, start), moved(request.old, end)) for start, end in request.keep),
        snippets=tuple(replace(each, text=ended(each.text)) for each in request.snippets),
        edits=tuple(
            replace(
                each,
                old=ended(each.old),
                new=ended(each.new),
                start=None if each.start is None else moved(request.prefix + request.suffix, each.start),
            )
            for each in request.edits
        ),
        workspace_matches=tuple(replace(each, text=ended(each.text)) for each in request.workspace_matches),
    )


def test_a_request_of_line_feeds_is_taken_as_it_is():
    assert with_line_feeds_alone(REQUEST) is REQUEST


def test_all_texts_have_line_feeds_and_offsets_count_in_them():
    assert with_line_feeds_alone(of_windows(REQUEST)) == REQUEST


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_answer_has_the_line_ends_of_the_file_and_its_offsets_too(end: str):
    file = "one\ntwo\nthree\nfour\n"
    plain = Candidate(
        text="2\n3\n4", tokens=3, confidence=1.0, score=0.0, token_ends=(1, 2, 5), replaces=(4, 7), syntax="ok"
    )

    @in_line_feeds
    def work(model, request):
        assert request.prefix + request.suffix == file
        yield None
        return Filled(model="", device="", candidates=(plain,), width=3, steps=0, forwards=0)

    shown = file.replace("\n", end)
    request = FillRequest(prefix=shown[:5], suffix=shown[5:])
    (found,) = drive(Oracle("oracle", []), work(None, request)).candidates
    assert found.text == f"2{end}3{end}4"
    assert [found.text[:at] for at in found.token_ends] == ["2", f"2{end}", f"2{end}3{end}4"]
    start, stop = found.replaces
    assert shown[start:stop] == "two"
