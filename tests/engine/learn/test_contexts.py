import random
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine.learn import assessment, examples
from engine.learn.assessment import assess
from engine.learn.contexts import (
    GAP,
    NOTHING,
    TEXT,
    WIDE,
    ContextRow,
    Contexts,
    attend_within,
    context_losses,
    contexts,
    filled_rows,
)
from engine.learn.corpus import Document
from engine.learn.examples import LONGEST_GAP, SHORTEST, Example, Examples, signatures
from engine.learn.packed import PackedCorpus, pack
from engine.learn.tokenizer import encode, save_tokenizer, train_tokenizer
from engine.learn.training_recipe import Recipe
from engine.models.prompts.layout import (
    AFTER,
    BOS,
    EDIT,
    END,
    EOS,
    PREFIX,
    SNIPPET,
    SUFFIX,
    TO,
    WIDTH,
    WIDTHS,
    width_token,
)
from tests.engine.learn.packages import python_code
from tests.engine.learn.tiny import random_network, tiny, toy_corpus

BATCH_WIDTH = 96


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> PackedCorpus:
    """Two packages of real-looking Python files."""
    folder = tmp_path_factory.mktemp("code")
    documents = [
        Document(split="train", language="python", package=package, path=f"{name}.py", text=documented(name))
        for package, names in (("a", ("red", "green", "blue")), ("b", ("north", "south")))
        for name in names
    ]
    tokenizer = train_tokenizer([document.text for document in documents], 600)
    save_tokenizer(tokenizer, folder / "tokenizer")
    pack(documents, folder / "packed" / "train")
    return PackedCorpus(folder, "train")


def documented(name: str) -> str:
    return python_code(name, 12).replace("default=None):\n", 'default=None):\n    """Parts of a path, but one."""\n')


def drawn(corpus: PackedCorpus, room: int = 200, seeds: int = 60, **shares: Any) -> list[Example]:
    recipe = replace(
        tiny(), **({"snippet_share": 0.0, "echo_share": 0.0, "edit_share": 0.0, "span_share": 0.0} | shares)
    )
    made = [Examples(corpus, recipe, random.Random(seed)).draw(room, 4) for seed in range(seeds)]
    return [example for example in made if example is not None]


def batch(recipe: Recipe | None = None, seed: int = 0) -> Contexts:
    examples = Examples(PackedCorpus(toy_corpus(), "train"), recipe or tiny(), random.Random(seed))
    return contexts([*filled_rows(examples, 3, BATCH_WIDTH)], BATCH_WIDTH)


def test_context_gap_and_suffix_are_one_text(code: PackedCorpus):
    texts = "\n".join(code.text(index) for index in range(len(code)))
    whole = 0
    for example in drawn(code, gap_share=1.0):
        assert example.gap
        context = example.context
        prefix = code.tokenizer.decode(context[context.index(PREFIX) + 1 :])
        suffix = context[context.index(SUFFIX) + 1 : context.index(PREFIX)] if SUFFIX in context else []
        said = prefix + code.tokenizer.decode(example.gap) + code.tokenizer.decode(suffix)
        whole += said in texts
        assert example.after == suffix[: tiny().shape.canvas]
    # Functions whose indentation was taken away, and those behind imports, are no part of a file.
    assert whole > 25


def test_examples_keep_to_their_room(code: PackedCorpus):
    for room in (SHORTEST, 100, 300):
        made = drawn(code, room=room, gap_share=0.7, snippet_share=0.5, edit_share=0.5)
        assert len(made) > 20
        for example in made:
            row = ContextRow(tiny().pinned)
            row.add(example)
            assert len(row.tokens) <= room


def test_texts_without_a_gap_just_go_on(code: PackedCorpus):
    for example in drawn(code, gap_share=0.0):
        assert example.gap is None
        assert SUFFIX not in example.context
        row = ContextRow(tiny().pinned)
        row.add(example)
        assert END not in [target for _, target, *_ in row.tokens]


def test_gaps_inside_are_cut_where_they_begin(code: PackedCorpus):
    found = 0
    for example in drawn(code, gap_share=0.5):
        for inner in example.inner:
            before = code.tokenizer.decode(example.context[example.context.index(PREFIX) + 1 : inner.cut])
            rest = code.tokenizer.decode(example.context[inner.cut :])
            said = code.tokenizer.decode([*inner.gap, *inner.after])
            assert said.startswith(rest[: len(said)]) or rest.startswith(said) or said[: len(rest)] == rest
            assert not before.endswith(said)
            found += 1
    assert found > 50


def test_gaps_inside_leave_a_text_its_own_tokens(code: PackedCorpus):
    for example in drawn(code, gap_share=0.0):
        prefix = example.context[example.context.index(PREFIX) + 1 :]
        # What room cuts off may have been the rest of a word.
        assert encode(code.tokenizer, code.tokenizer.decode(prefix))[: len(prefix) - 8] == prefix[:-8]


def test_signatures_say_how_what_neighbours_define_is_used(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("signatures")
    shapes = """class Square(Shape):
    side: int

    def __init__(self, side: int) -> None:
        self.side = side

    def _check(self):
        pass


def area(
    shape: Shape,
    unit: str = "m",
) -> float:
    if shape:
        return 1.0


def unrelated(a):
    return a
"""
    texts = {"shapes": shapes, "use": "from shapes import Square, area\n\nprint(area(Square(2)))\n"}
    documents = [
        Document(split="train", language="python", package="p", path=f"{name}.py", text=text)
        for name, text in texts.items()
    ]
    save_tokenizer(train_tokenizer([shapes], 400), folder / "tokenizer")
    pack(documents, folder / "packed" / "train")
    corpus = PackedCorpus(folder, "train")
    said = signatures(corpus, 1, texts["use"], 400, random.Random(0))
    assert set(said.splitlines()) == {
        "class Square(Shape):",
        "    def __init__(self, side: int) -> None:",
        'def area(shape: Shape, unit: str = "m") -> float:',
        "def unrelated(a):",
    }
    assert "    def __init__" in said.partition("class Square(Shape):\n")[2].splitlines()[0]
    assert signatures(corpus, 1, "nothing of it", 400, random.Random(0)) == ""
    assert len(signatures(corpus, 1, texts["use"], 40, random.Random(0))) <= 40


def test_snippets_come_from_neighbouring_files(code: PackedCorpus):
    seen = 0
    for example in drawn(code, room=300, snippet_share=1.0):
        parts = code.tokenizer.decode(example.context[: example.context.index(PREFIX)])
        assert example.context.count(SNIPPET) <= 2
        seen += SNIPPET in example.context
        names = {name for name in ("red", "green", "blue", "north", "south") if name in parts}
        assert len(names & {"red", "green", "blue"}) == 0 or len(names & {"north", "south"}) == 0
    assert seen > 30


def test_recent_edits_share_a_name_with_the_gap(code: PackedCorpus):
    made = drawn(code, room=300, gap_share=1.0, edit_share=1.0, seeds=120)
    edited = [example for example in made if EDIT in example.context]
    assert len(edited) > 15
    for example in edited:
        context = example.context
        assert context.count(EDIT) == context.count(TO)
        assert context.index(EDIT) < context.index(TO) < context.index(PREFIX)
        assert SUFFIX not in context or context.index(TO) < context.index(SUFFIX)


def test_recent_edits_say_no_line_of_the_text_however_it_is_indented(code: PackedCorpus):
    seen = 0
    for example in drawn(code, room=300, gap_share=1.0, edit_share=1.0, seeds=200):
        context = example.context
        parts = context[context.index(PREFIX) + 1 :] + (example.gap or [])
        lines = {line.strip() for line in code.tokenizer.decode(parts).split("\n")}
        for at in [at for at, token in enumerate(context) if token == TO]:
            end = next(place for place in range(at + 1, len(context)) if context[place] in (EDIT, SUFFIX, PREFIX))
            assert code.tokenizer.decode(context[at + 1 : end]).strip() not in lines
            seen += 1
    assert seen > 30


def test_a_gap_is_read_behind_what_follows_it(code: PackedCorpus):
    checked = 0
    for example in drawn(code, gap_share=0.7):
        row = ContextRow(tiny().pinned)
        row.add(example)
        row.add_inner_gaps(500)
        size = len(example.context)
        gaps = [(size, example.gap, example.after)] if example.gap else []
        gaps += [(each.cut, each.gap, each.after) for each in example.inner]
        for number, (cut, gap, behind) in enumerate(gaps[: row.gaps]):
            read, after = [token for token in row.tokens if token[6] == number], behind[: tiny().pinned]
            assert [token[0] for token in read] == [
                AFTER,
                *after,
                WIDTH,
                example.context[cut - 1],
                *gap,
            ]
            asked = 1 + len(after)
            assert [token[1] for token in read] == [NOTHING] * asked + [width_token(len(gap)), *gap, END]
            assert [token[2] for token in read[asked:]] == [WIDE] + [GAP] * (len(gap) + 1)
            # The gap stands at its own place, and what follows it behind any gap.
            beyond = cut + WIDTHS[-1]
            assert [token[4] for token in read] == [
                *range(beyond, beyond + asked),
                cut,
                *range(cut - 1, cut + len(gap)),
            ]
            assert [token[5] for token in read] == [cut] * (asked + 1) + [cut - 1] * (len(gap) + 1)
            checked += 1
    assert checked > 50


def test_rows_have_gaps_inside(code: PackedCorpus):
    rows = [*filled_rows(Examples(code, tiny(), random.Random(3)), 8, 3 * BATCH_WIDTH, 4)]
    assert all(len(row.tokens) <= 3 * BATCH_WIDTH for row in rows)
    assert sum(row.gaps for row in rows) > sum(len(row.examples) for row in rows)


def test_widths_are_told_apart_up_to_the_longest():
    assert [width_token(n) - width_token(0) for n in (0, 1, 33, LONGEST_GAP, 65, 72, 73)] == [0, 1, 33, 64, 65, 65, 66]
    assert width_token(10**6) == width_token(WIDTHS[-1])


def test_targets_are_what_follows():
    made = batch()
    text = (made.target != NOTHING) & (made.kind == TEXT)
    after = made.ids.roll(-1, dims=1)
    last = text & (made.example.roll(-1, dims=1) == made.example) & (made.gap.roll(-1, dims=1) == NOTHING)
    assert torch.equal(made.target[last], after[last])
    assert set(made.ids[:, 0].tolist()) == {BOS}
    assert not (made.ids == END).any()
    assert (made.target != NOTHING).float().mean() > 0.75


@torch.no_grad()
def test_a_token_sees_its_own_example_and_a_gap_the_context_before_it():
    network, made = random_network(), batch()

    def hidden(changed: Contexts) -> torch.Tensor:
        return network.encode(changed.ids, changed.position, attend_within(network, changed))

    before = hidden(made)
    row = next(row for row in range(3) if (made.ids[row] == WIDTH).any())
    place = int((made.ids[row] == WIDTH).nonzero()[0])
    own = made.example[row] == made.example[row, place]
    elsewhere = made.ids.clone()
    elsewhere[row, ~own] = 20
    assert torch.equal(hidden(replace(made, ids=elsewhere))[row, own], before[row, own])
    cut = int(made.seen[row, place])
    for of_gap in (place, place + 1, place + 3):
        read = made.gap[row] == made.gap[row, of_gap]
        slots = torch.arange(made.ids.shape[1])
        unseen = made.ids.clone()
        unseen[row, own & (slots >= cut) & ~(read & (slots <= of_gap))] = 20
        assert torch.equal(hidden(replace(made, ids=unseen))[row, of_gap], before[row, of_gap])
        for seen in (cut - 1, of_gap - 1):
            changed = made.ids.clone()
            changed[row, seen] = 20
            assert not torch.equal(hidden(replace(made, ids=changed))[row, of_gap], before[row, of_gap])


def test_rows_side_by_side_lose_what_they_lose_alone():
    network, recipe = random_network(), replace(tiny(), gap_share=1.0)
    examples = Examples(PackedCorpus(toy_corpus(), "train"), recipe, random.Random(3))
    rows = [row.examples for row in filled_rows(examples, 2, 200)]
    assert all(len(kept) > 1 for kept in rows)

    def rowed(kept: list[list[Example]]) -> Contexts:
        made = [ContextRow(8) for _ in kept]
        for row, part in zip(made, kept, strict=True):
            for example in part:
                row.add(example)
        return contexts(made, max(len(row.tokens) for row in made))

    with torch.no_grad():
        together = context_losses(network, rowed(rows))
        alone = context_losses(network, rowed([[example] for kept in rows for example in kept]))
    assert [float(loss) for loss in together] == pytest.approx([float(loss) for loss in alone], rel=1e-9)


def test_a_text_takes_what_its_row_has_left_where_it_is_to(code: PackedCorpus):
    def texts(*, whole: bool) -> float:
        recipe = replace(tiny(), whole_rows=whole, gap_share=0.0, function_share=0.0)
        rows = [*filled_rows(Examples(code, recipe, random.Random(3)), 20, 400)]
        return fmean(len(row.examples) for row in rows)

    assert texts(whole=True) < 1.3 < 1.6 < texts(whole=False)


def test_most_gaps_of_whole_rows_have_much_before_them(code: PackedCorpus):
    def before(*, whole: bool) -> float:
        made = drawn(code, room=300, seeds=200, whole_rows=whole, gap_share=1.0, function_share=0.0)
        return fmean(len(example.context) for example in made)

    assert before(whole=True) > 1.1 * before(whole=False)


def test_gaps_count_beside_all_that_is_lost():
    network, recipe = random_network(), replace(tiny(), gap_share=0.5)
    rows = [*filled_rows(Examples(PackedCorpus(toy_corpus(), "train"), recipe, random.Random(3)), 4, 200)]
    batch = contexts(rows, 200)
    gaps = [example.gap for row in rows for example in row.examples if example.gap is not None]
    assert 1 < len(gaps) < sum(len(row.examples) for row in rows)
    asked = (batch.kind == GAP) & (batch.target != NOTHING)
    assert batch.target[asked].tolist() == [token for gap in gaps for token in (*gap, END)]
    with torch.no_grad():
        logits = network.logits(network.encode(batch.ids, batch.position, attend_within(network, batch)))
        losses = context_losses(network, batch)
    wide = batch.ids == WIDTH
    ends = batch.target == END
    for said, counted in zip(losses, ((batch.target != NOTHING) & ~wide, asked, wide, ends), strict=True):
        assert float(said) == pytest.approx(float(cross_entropy(logits[counted], batch.target[counted])), rel=1e-5)


def test_an_assessment_is_of_fixed_gaps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(assessment, "PLAIN_ROWS", 2)
    corpus = PackedCorpus(toy_corpus(), "held-out")
    first = assess(random_network(), corpus, tiny(), gaps=6)
    assert first == assess(random_network(), corpus, tiny(), gaps=6)
    assert first.gaps == 6
    assert 0 <= first.stopped <= first.exact <= 1
    assert "6 gaps" in first.line()


def test_files_that_end_say_so(code: PackedCorpus):
    ended = [example for example in drawn(code, gap_share=0.0, room=300) if example.context[-1] == EOS]
    assert 5 < len(ended) < 55


def test_a_text_that_is_cut_off_does_not_say_that_it_ends(code: PackedCorpus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(examples, "CHARACTERS", 2)
    texts = [code.text(index) for index in range(len(code))]
    made = drawn(code, gap_share=0.0, function_share=0.0, room=300)
    ended = [example.context for example in made if example.context[-1] == EOS]
    assert all(any(text.endswith(code.tokenizer.decode(ids[-20:-1])) for text in texts) for ids in ended)
