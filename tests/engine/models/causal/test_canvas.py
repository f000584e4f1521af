"""A canvas on a coder: base and pairs denoise, the base alone checks."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from dg_lsp.cli import run
from engine.common.errors import BadInput
from engine.common.request import FillRequest
from engine.fill.pipeline import fill
from engine.lab.eval.rows import chosen_rows, possible
from engine.learn.pairs.canvas import Pairs, prefill, said
from engine.learn.pairs.files import write_pairs
from engine.learn.pairs.recipe import PairsRecipe
from engine.models.base import DraftTree, Rows
from engine.models.causal.model import Causal
from engine.models.causal.pairs import FOLDER, METADATA, fits, read_pairs
from engine.models.checkpoints.coders import CODERS
from tests.engine.coder import open_model, write_coder
from tests.engine.learn.pairs.test_pairs import source

RECIPE = PairsRecipe(rank=4, alpha=8.0)
CLOSE = {"atol": 2e-5, "rtol": 1e-4}
TREE = DraftTree(ids=(5, 6, 7, 8), parents=(-1, 0, 1, -1))
NOTHING = DraftTree(ids=(), parents=())
REQUESTS = [
    FillRequest(prefix=f"def f(x):\n    return {seed}", suffix="\n\nf(1)\n", max_tokens=24, n=1 + seed % 2)
    for seed in range(8)
]


class Paired:
    def __init__(self, folder: Path) -> None:
        """A coder and pairs of random numbers, in files."""
        self.file = write_coder(folder / "coder.gguf")
        self.model = open_model(self.file)
        network = self.model.network
        self.trained = Pairs(network, RECIPE, network.embeddings.weight[3], 0)
        with torch.no_grad():
            for name, each in self.trained.trained().items():
                if not name.endswith("lora_A"):
                    each.normal_(std=0.3)
        self.folder = folder / "pairs"
        write_pairs(self.trained.trained(), RECIPE, self.file, {}, self.folder)
        self.model.pairs = self.folder
        # As they were written: in eight bits.
        held = read_pairs(self.folder)
        with torch.no_grad():
            for name, each in self.trained.trained().items():
                each.copy_(held[name])


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paired]:
    with pytest.MonkeyPatch.context() as patch:
        # What is compared is computed in float32.
        patch.setattr("engine.models.causal.pairs.prefers_bfloat16", lambda device: False)
        found = Paired(tmp_path_factory.mktemp("paired"))
        assert found.model.canvas is not None
        yield found


def test_a_canvas_says_in_serving_what_it_said_in_training(paired: Paired):
    model, step = paired.model, source()[0]
    canvas = model.canvas
    assert canvas is not None
    of = prefill(model.network, step)
    shown = torch.full_like(step.text, -1)
    shown[..., 2] = 7
    wanted = model.network.logits(said(paired.trained, of, shown))
    for row, gap in ((0, 0), (1, 1)):
        cut, width = int(step.cut[row, gap]), shown.shape[2]
        context = canvas.encode(step.ids[row, :cut].tolist())
        ids = torch.where(shown[row, gap] < 0, canvas.info.noise.mask_id or 0, shown[row, gap])
        open_ = shown[row, gap] < 0
        rows = Rows(
            contexts=[context],
            canvas=ids[None],
            lengths=[width],
            open=open_[None],
            self_conditioning=None,
            conditioned=[False],
        )
        found, right = canvas.step(rows).whole(), wanted[row, gap][open_]
        ended = (right.argmax(dim=-1) == canvas.info.pad_id).nonzero()[:1, 0].tolist()
        for end in ended:
            right[end:] = right[end].clone()
        torch.testing.assert_close(found, right, **CLOSE)


@torch.no_grad()
def anew(paired: Paired, ids: Sequence[int], slots: int) -> Tensor:
    """Logits [slots, V] of unknown tokens after a text, from nothing that is kept."""
    trained, network = paired.trained, paired.model.network
    kept: list[tuple[Tensor, Tensor]] = []
    size = len(ids)
    mask = torch.ones(size, size, dtype=torch.bool).tril()[None, None]

    def read(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        kept.append((key, value))
        return network.attention(query, key, value, mask)

    network.run(torch.tensor([list(ids)]), torch.arange(size)[None], read)

    def look(index: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = (torch.cat(each, dim=2) for each in zip(kept[index], (key, value), strict=True))
        return network.attention(query, keys, values)

    embedded = trained.mask.expand(1, slots, -1)
    hidden = trained.network[0].run_embedded(embedded, torch.arange(size, size + slots)[None], look)
    return network.logits(hidden[0])


@pytest.mark.parametrize("after", [-1, 0, 2, 3])
@pytest.mark.parametrize("is_read", [False, True])
def test_one_pass_checks_a_tree_and_denoises_a_canvas(
    paired: Paired, monkeypatch: pytest.MonkeyPatch, after: int, *, is_read: bool
):
    monkeypatch.setattr("engine.models.causal.model.SLOTS", 2)
    model, context = paired.model, [*range(40, 70)]
    model.forget()
    plain = model.check(model.begin(model.encode(context)), TREE)
    text = model.begin(model.encode(context))
    if is_read:
        model.check(text, NOTHING)
    checked = model.check(text, TREE, after)
    torch.testing.assert_close(checked, plain, **CLOSE)
    guessed = model.guessed(text)
    assert guessed is not None
    before = {-1: [], 0: [5], 2: [5, 6, 7], 3: [8]}[after]
    assert guessed[0] == after
    torch.testing.assert_close(guessed[1], anew(paired, [*context, *before], 2), **CLOSE)
    # Nothing of the canvas is left in what was accepted.
    longer = model.accept(text, (0, 1))
    torch.testing.assert_close(
        model.check(longer, NOTHING), model.check(model.begin(model.encode([*context, 5, 6])), NOTHING), **CLOSE
    )


def test_answers_with_canvases_are_those_without(paired: Paired):
    (row,) = chosen_rows(["with canvases"])
    for request in REQUESTS:
        paired.model.forget()
        without = fill(paired.model, request)
        paired.model.forget()
        with_canvases = row.answer(paired.model, request, "")
        assert [each.text for each in with_canvases.candidates] == [each.text for each in without.candidates]


def test_a_canvas_fills_a_gap_by_itself(paired: Paired):
    (row,) = chosen_rows(["canvas"])
    for request in REQUESTS:
        filled = row.answer(paired.model, request, "")
        assert filled.model.endswith(", canvas")
        assert 1 <= filled.forwards <= 8  # four steps on each width


def test_pairs_act_beside_the_file_alone_that_they_were_trained_on(paired: Paired, tmp_path: Path):
    assert fits(paired.file, paired.folder)
    data = bytearray(paired.file.read_bytes())
    data[-1] ^= 1
    other = tmp_path / "coder.gguf"
    other.write_bytes(data)
    assert not fits(other, paired.folder)
    model = open_model(other)
    model.pairs = paired.folder
    assert (model.canvas, model.slots) == (None, 0)
    with pytest.raises(BadInput, match="coder has no canvas beside a causal head"):
        possible(chosen_rows(["canvas"]), model)


def test_the_pairs_of_the_package_name_the_coder_that_is_pulled():
    base = json.loads((FOLDER / METADATA).read_text(encoding="utf-8"))["base"]
    coder = CODERS["coder-0.5b"]
    assert (base["file"], base["nbytes"], base["sha256"]) == (coder.file, coder.nbytes, coder.sha256)


def test_the_command_fills_by_the_canvas_alone_and_shows_it(
    paired: Paired, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return ▮\n\nf(1)\n", encoding="utf-8")
    command = ["fill", str(tmp_path / "a.py"), "--canvas", "--watch", "--json", "--model"]
    monkeypatch.setattr(Causal, "pairs", paired.folder)
    assert run([*command, str(paired.file)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["model"].endswith(", canvas")
    assert "step" in shown.err
    assert run([*command, "bundled"]) == 2
    assert "has no canvas beside a causal head: use the published coder-0.5b." in capsys.readouterr().err
