"""Lessons in a model's own prompt: they are texts of the repository, and what is learnt of them lowers the loss."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine.common.errors import BadInput
from engine.fill.loading import load
from engine.learn.canvases import NO_CANVAS, Canvases
from engine.learn.contexts import NOTHING as NO_TARGET
from engine.learn.corpus import Document, Split
from engine.learn.learn import learn, parameters_of
from engine.learn.lessons import recipe_of, tokenizer_of, write_corpus
from engine.learn.lora import adapted, trainable
from engine.learn.masked_rows import NOTHING, MaskedRows
from engine.learn.prompted import PromptedGaps, PromptedLessons, control_tokens, lessons_of
from engine.learn.repository import Repository
from engine.learn.training import step_losses, total_loss
from engine.models.base import Rows
from engine.models.checkpoints.checkpoint import read_checkpoint
from engine.models.checkpoints.quantizing import quantize
from engine.models.gemma.model import DiffusionGemma
from engine.models.masked.model import Masked
from tests.engine.formats import choose
from tests.engine.learn.packages import python_code
from tests.engine.learn.tiny import CPU
from tests.engine.models.masked.published import write_published

MASKED = Path(__file__).parents[2] / "models" / "toy-masked"
PATHS = ("a/green.py", "a/red.py", "b/north.py", "b/south.py")


def repository() -> Repository:
    documents = tuple(
        Document(
            split="held-out" if path == PATHS[-1] else "train",
            language="python",
            package="repository",
            path=path,
            text=python_code(Path(path).stem, 30),
        )
        for path in PATHS
    )
    return Repository(documents=documents, left_out={}, digests={})


def lessons_for(path: Path, folder: Path, tokens: int = 4096) -> PromptedLessons:
    model = load(str(path), "cpu").model
    assert isinstance(model, DiffusionGemma | Masked)
    checkpoint = read_checkpoint(path, path.name)
    files = repository()
    write_corpus(files, tokenizer_of(checkpoint), folder)
    made = lessons_of(model, files, folder, recipe_of(model.info, checkpoint.metadata, tokens), 0)
    assert isinstance(made, PromptedLessons)
    return made


@pytest.fixture
def chat(released: Path, tmp_path: Path) -> PromptedLessons:
    return lessons_for(released, tmp_path)


@pytest.fixture
def masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromptedLessons:
    """In float32, as it learns."""
    choose(monkeypatch)
    return lessons_for(MASKED, tmp_path)


def texts(split: Split) -> list[str]:
    return [each.text for each in repository().of(split)]


def test_a_chat_s_row_is_a_prompt_as_it_is_served_and_its_gap_belongs_there(chat: PromptedLessons):
    model = chat.model
    snippets = 0
    for split in get_args(Split):
        for step in range(6):
            made = chat.batch(step, split)
            assert isinstance(made, Canvases)
            for row in range(len(made.canvas)):
                ids, seen = made.contexts.ids[row], made.contexts.example[row] == 0
                asked = model.detokenize(ids[seen].tolist())
                assert "Continue this file" in asked
                for path in PATHS:
                    _, found, snippet = asked.partition(f"{path}:\n```\n")
                    snippets += bool(found)
                    # It is that file's.
                    assert not found or snippet.partition("\n```")[0] in python_code(Path(path).stem, 30)
                owners = {int(each) for each in made.owner[row] if each != NO_CANVAS}
                assert owners
                for owner in owners:
                    own = made.owner[row] == owner
                    cut = int(made.cut[row][own][0])
                    before = model.detokenize(ids[:cut].tolist()).rpartition("model\n")[2].removeprefix("```python\n")
                    whole = before + model.detokenize(made.truth[row][own].tolist())
                    assert any(whole.rstrip("\0") in text for text in texts(split)), whole
                # Nothing is asked that only the bundled model's layout has.
                assert not (made.contexts.target[row][ids == 10] != NO_TARGET).any()
    assert snippets > 2


def test_a_masked_row_is_text_of_a_file_with_a_gap(masked: PromptedLessons):
    assert isinstance(masked.model, Masked)
    known = control_tokens(masked.model)
    fitting = 0
    for split in get_args(Split):
        for step in range(12):
            made = masked.batch(step, split)
            assert isinstance(made, MaskedRows)
            assert made.ids.shape[1] <= masked.model.info.context_limit
            for ids, truth, length in zip(made.ids, made.truth, made.lengths, strict=True):
                asked = truth != NOTHING
                assert asked.any()
                assert set(ids[asked].tolist()) == {known.mask}
                if {known.end, known.expand} & {*truth[asked].tolist()}:
                    continue
                fitting += 1
                shown = torch.where(asked, truth, ids)[:length].tolist()
                whole = masked.model.detokenize([token for token in shown if token >= 16])
                # A snippet of another file stands before.
                assert any(whole[-60:] in text for text in texts(split))
                if not whole.startswith("# "):
                    assert any(whole in text for text in texts(split)), whole
    assert fitting > 10


def test_the_same_step_is_the_same_batch(chat: PromptedLessons, masked: PromptedLessons):
    assert torch.equal(chat.batch(3).canvas, chat.batch(3).canvas)  # type: ignore[union-attr]
    assert torch.equal(masked.batch(3).truth, masked.batch(3).truth)  # type: ignore[union-attr]
    assert not torch.equal(masked.batch(3).ids, masked.batch(4).ids)  # type: ignore[union-attr]


@pytest.mark.parametrize("which", ["chat", "masked"])
def test_what_is_learnt_lowers_the_loss(which: str, request: pytest.FixtureRequest, tmp_path: Path):
    lessons: PromptedLessons = request.getfixturevalue(which)
    recipe = replace(lessons.recipe, tokens=6 * lessons.recipe.step_tokens)
    module = lessons.model.network.module
    with adapted(module, rank=4) as pairs:
        network = trainable(lessons.model.network, recompute=False)
        state = learn(network, pairs, replace(lessons, recipe=recipe), recipe, tmp_path / "run", CPU, lambda line: None)
    assert state is not None
    assert state.gained
    assert state.best_loss < state.first_loss - 0.05


def test_gradients_of_a_masked_model_in_4_bit_are_those_of_layers_that_are_kept(tmp_path: Path):
    quantize(read_checkpoint(MASKED, "toy"), tmp_path / "toy", lambda percent: None)
    lessons = lessons_for(tmp_path / "toy", tmp_path / "corpus")
    found: list[dict[str, torch.Tensor]] = []
    for recompute in (True, False):
        with adapted(lessons.model.network.module, seed=3) as pairs:
            generator = torch.Generator().manual_seed(1)
            for pair in pairs.values():
                pair.lora_B.data.normal_(std=0.05, generator=generator)
            network = trainable(lessons.model.network, recompute=recompute)
            total_loss(step_losses(network, lessons.batch(0), CPU), lessons.recipe).backward()
            parameters = parameters_of(pairs)
            found.append({name: each.grad.clone() for name, each in parameters.items() if each.grad is not None})
    assert found[0].keys() == found[1].keys()
    assert found[0]
    for name, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][name], rtol=1e-4, atol=1e-6)


def test_where_no_gap_fits_it_is_a_sentence(chat: PromptedLessons):
    corpus, paths = chat.corpora["train"]
    gaps = PromptedGaps(corpus, paths, chat.model, chat.recipe)
    with pytest.raises(BadInput, match="no gap fits in the 20 tokens"):
        gaps.draw(20, random.Random(0))


def test_the_tokenizer_of_a_model_without_a_tokenizer_file_is_kept_whole(tmp_path: Path):
    lessons = lessons_for(write_published(tmp_path / "model", "dream-coder"), tmp_path / "corpus")
    assert not (tmp_path / "model" / "tokenizer.json").exists()
    corpus, _ = lessons.corpora["train"]
    for text in texts("train"):
        assert corpus.tokenizer.encode(text, add_special_tokens=False).ids == lessons.model.tokenize(text)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_masked_model_learns_what_it_is_asked_when_it_serves(masked: PromptedLessons, shift: int):
    model = masked.model
    assert isinstance(model, Masked)
    model.shift = shift
    made = masked.batch(1)
    assert isinstance(made, MaskedRows)
    mask = control_tokens(model).mask
    logits: list[torch.Tensor] = []
    for ids, length in zip(made.ids, made.lengths.tolist(), strict=True):
        rows = Rows(
            contexts=[model.encode(ids[:1].tolist())],
            canvas=ids[None, 1:length],
            lengths=[length - 1],
            open=ids[None, 1:length] == mask,
            self_conditioning=None,
            conditioned=[False],
        )
        logits.append(model.step(rows).whole())
    expected = cross_entropy(torch.cat(logits), made.truth[made.truth != NOTHING])
    with torch.no_grad():
        said = step_losses(trainable(model.network, recompute=False), made, CPU)["masked"]
    torch.testing.assert_close(said, expected, rtol=1e-5, atol=1e-4)
