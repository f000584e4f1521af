import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.common.request import FillRequest, Snippet
from engine.models.base import PIECE, DraftTree
from engine.models.causal.model import Causal
from engine.models.causal.text import tree_of
from tests.engine.coder import REPOSITORY, open_model, write_coder

NOTHING = DraftTree(ids=(), parents=())
CLOSE = {"atol": 2e-5, "rtol": 1e-4}
"""The same sums in another order, in float32."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Causal:
    return open_model(write_coder(tmp_path_factory.mktemp("coder") / "coder.gguf"))


@torch.no_grad()
def anew(model: Causal, ids: Sequence[int]) -> Tensor:
    """Logits [T, V] of a whole text in one pass, with nothing kept."""
    mask = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()[None, None]
    network = model.network
    hidden = network.run(
        torch.tensor([list(ids)]),
        torch.arange(len(ids))[None],
        lambda _, query, key, value: network.attention(query, key, value, mask),
    )
    return network.logits(hidden[0])


def some(count: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(200) for _ in range(count)]


TREE = DraftTree(ids=(5, 6, 7, 8, 6, 9, 3), parents=(-1, 0, 1, -1, 3, 0, 5))
BEFORE = ((5,), (5, 6), (5, 6, 7), (8,), (8, 6), (5, 9), (5, 9, 3))
"""What leads to each of its tokens."""


@pytest.mark.parametrize("length", [1, 10, 40, 600])
def test_a_tree_says_what_single_passes_say(model: Causal, length: int):
    model.forget()
    context = some(length)
    said = model.check(model.begin(model.encode(context)), TREE)
    torch.testing.assert_close(said[0], anew(model, context)[-1], **CLOSE)
    for row, before in zip(said[1:], BEFORE, strict=True):
        torch.testing.assert_close(row, anew(model, [*context, *before])[-1], **CLOSE)


@pytest.mark.parametrize("path", [(0,), (0, 1, 2), (3, 4), (0, 5, 6), ()])
def test_what_is_accepted_is_as_if_it_had_been_read(model: Causal, path: tuple[int, ...]):
    model.forget()
    context = some(30)
    text = model.begin(model.encode(context))
    model.check(text, TREE)
    longer = model.accept(text, path)
    assert longer.written == tuple(TREE.ids[at] for at in path)
    said = model.check(longer, DraftTree(ids=(11, 12), parents=(-1, 0)))
    torch.testing.assert_close(said, anew(model, [*context, *longer.written, 11, 12])[-3:], **CLOSE)
    # Once more without a tree, and from what stands there now.
    further = model.accept(longer, (0, 1))
    torch.testing.assert_close(model.check(further, NOTHING), anew(model, [*context, *further.written])[-1:], **CLOSE)


def test_nothing_of_what_is_accepted_is_computed_again(model: Causal, monkeypatch: pytest.MonkeyPatch):
    model.forget()
    rows: list[int] = []
    run: Callable[..., Tensor] = model.network.run

    def counted(ids: Tensor, *rest: Tensor) -> Tensor:
        rows.append(ids.shape[1])
        return run(ids, *rest)

    monkeypatch.setattr(model.network, "run", counted)
    text = model.begin(model.encode(some(100)))
    assert rows == []
    model.check(text, TREE)
    assert rows == [100 + 7]
    model.check(model.accept(text, (3, 4)), TREE)
    assert rows == [100 + 7, 7]


def test_long_contexts_are_read_at_once(model: Causal, monkeypatch: pytest.MonkeyPatch):
    model.forget()
    rows: list[int] = []
    run: Callable[..., Tensor] = model.network.run
    monkeypatch.setattr(model.network, "run", lambda ids, *rest: (rows.append(ids.shape[1]), run(ids, *rest))[1])
    text = model.begin(model.encode(some(PIECE)))
    assert rows == [PIECE]
    model.check(text, TREE)
    # The context's last token, as what it says was not asked of the pass that read it.
    assert rows == [PIECE, 1 + 7]


def test_contexts_that_are_never_read_leave_nothing(model: Causal):
    model.forget()
    model.read_ahead(some(100))
    for seed in range(1, 50):
        model.encode(some(100, seed))
    assert len(model.cache._stores) < 12
    assert model.unread(some(100)) == 0


def test_what_is_read_ahead_is_read_whole(model: Causal):
    model.forget()
    model.later = some(100)
    model.read_piece()
    assert not model.later
    assert model.begin(model.encode(some(100))).unread == 0


def test_last_tokens_of_a_context_are_read_with_the_first_drafts(model: Causal, monkeypatch: pytest.MonkeyPatch):
    model.forget()
    context = some(100)
    model.read_ahead(context)
    passes: list[int] = []
    run: Callable[..., Tensor] = model.network.run
    monkeypatch.setattr(model.network, "run", lambda ids, *rest: (passes.append(ids.shape[1]), run(ids, *rest))[1])
    longer = [*context, 3, 4]
    said = model.check(model.begin(model.encode(longer)), TREE)
    assert passes == [2 + 7]
    torch.testing.assert_close(said[0], anew(model, longer)[-1], **CLOSE)


def test_texts_after_one_context_do_not_disturb_each_other(model: Causal):
    model.forget()
    context = model.encode(some(50))
    one, other = model.begin(context), model.begin(context)
    model.check(one, DraftTree(ids=(1, 2), parents=(-1, 0)))
    model.check(other, DraftTree(ids=(3, 4), parents=(-1, 0)))
    one, other = model.accept(one, (0, 1)), model.accept(other, (0, 1))
    # A context that begins like it, and goes on in another way.
    model.check(model.begin(model.encode([*some(45), 7, 7])), TREE)
    for text, ids in ((one, (1, 2)), (other, (3, 4))):
        assert text.written == ids
        torch.testing.assert_close(model.check(text, NOTHING), anew(model, [*some(50), *ids])[-1:], **CLOSE)


def test_gaps_are_scored_as_they_would_be_read(model: Causal):
    model.forget()
    context, gaps, suffix = some(40), [[1, 2, 3], [1, 2], [], [9]], [4, 5]
    scores = model.score(model.encode(context), gaps, suffix)
    for gap, score in zip(gaps, scores, strict=True):
        row = [*gap, *suffix]
        said = anew(model, [*context, *row])[len(context) - 1 : -1].log_softmax(dim=-1)
        expected = said.gather(1, torch.tensor(row)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(score), expected, **CLOSE)
    assert model.score(model.encode(context), [[], [1]], []) == [[], pytest.approx(scores[1][:1])]


def test_drafts_become_one_tree():
    tree, paths = tree_of([[1, 2, 3], [1, 2, 4], [5], []])
    assert tree == DraftTree(ids=(1, 2, 3, 4, 5), parents=(-1, 0, 1, 1, -1))
    assert paths == [[0, 1, 2], [0, 1, 3], [4], []]


def test_what_is_no_path_is_refused(model: Causal):
    text = model.begin(model.encode(some(20)))
    with pytest.raises(ValueError, match="not checked"):
        model.accept(text, (0,))
    model.check(text, TREE)
    for path in ((1,), (0, 3), (9,)):
        with pytest.raises(ValueError, match="does not follow"):
            model.accept(text, path)
    with pytest.raises(ValueError, match="Token 0 of a draft follows 0"):
        model.check(text, DraftTree(ids=(1,), parents=(0,)))


def test_typing_appends_to_the_prompt(model: Causal):
    def prompt(prefix: str, suffix: str = "\n    return y\n", snippet: str = "def g(): ...\n"):
        snippets = (Snippet(path="other.py", text=snippet),)
        return model.prompt(FillRequest(prefix=prefix, suffix=suffix, snippets=snippets))

    before, after = prompt("def f(x):\n    y "), prompt("def f(x):\n    y = x * 2 ")
    shorter = len(before.context)
    assert after.context[:shorter] == before.context
    assert before.head == " "
    assert model.detokenize(before.suffix) == "\n    return y\n"
    assert "other.py\ndef g(): ...\n" in model.detokenize(before.context)
    assert model.detokenize(before.context).endswith("return y\ndef f(x):\n    y")


def test_other_files_stand_in_a_repository_as_published(tmp_path: Path):
    model = open_model(write_coder(tmp_path / "coder.gguf", markers=REPOSITORY))
    repository, separator = len(model.vocabulary.bytes) - 1, len(model.vocabulary.bytes) - 2
    snippets = tuple(Snippet(path=f"{name}.py", text=f"{name} = 1\n") for name in "ab")

    def context(prefix: str, snippets: tuple[Snippet, ...] = snippets, limit: int | None = None) -> tuple[int, ...]:
        return model.prompt(FillRequest(prefix=prefix, suffix="\n", snippets=snippets), limit).context

    files = [model.tokenize(f"{name}.py\n{name} = 1\n\n") for name in "ab"]
    heading = [repository, *model.tokenize("workspace\n"), separator, *files[0], separator, *files[1], separator]
    typed = context("def f(x):\n    y ")
    assert typed[: len(heading)] == tuple(heading)
    assert context("def f(x):\n    y = x * 2 ")[: len(typed)] == typed
    assert repository not in context("x = ", ())
    for limit in (100, 200, 400):
        assert limit // 2 < len(context("x = y\n" * 200, limit=limit)) <= limit


def test_it_is_a_causal_head_whose_ends_are_its_markers(model: Causal, tmp_path: Path):
    assert model.causal is model
    assert not model.ends & set(model.tokenize("def f(x):\n    return x\n"))
    assert {model.info.pad_id} < model.ends


@pytest.mark.parametrize(("prefix", "head"), [("x = 1\n", ""), ("x = 1\r\n", ""), ("x = 1\n    ", "    "), ("f(", "(")])
def test_what_is_taken_back_at_the_cursor_is_no_line_break(model: Causal, prefix: str, head: str):
    prompt = model.prompt(FillRequest(prefix=prefix, suffix="\n"))
    assert prompt.head.replace(" ", "") == head.replace(" ", "")
    assert bool(prompt.head) == bool(head)


@pytest.mark.parametrize(
    ("prefix", "head"),
    [("x = stream.rea", "rea"), ("x = a_1", "a_1"), ("x = value + 1", "1"), ("f(x)", ")"), ("x." + "n" * 60, "n" * 24)],
)
def test_a_word_that_the_cursor_stands_in_is_taken_back_whole(model: Causal, prefix: str, head: str):
    prompt = model.prompt(FillRequest(prefix=prefix, suffix="\n"))
    assert prompt.head == head
    assert model.detokenize(prompt.context).endswith(prefix.removesuffix(head))
