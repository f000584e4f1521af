import pytest
import torch
import torch.nn.functional as F

from engine.learn.loss import CHUNK, capped_cross_entropy

CAP = 30.0


def problem(rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    hidden = (3 * torch.randn(rows, 16, generator=generator)).requires_grad_()
    table = torch.randn(50, 16, generator=generator).requires_grad_()
    return hidden, table, torch.randint(0, 50, (rows,), generator=generator)


@pytest.mark.parametrize("rows", [1, CHUNK, 2 * CHUNK + 3])
def test_loss_and_gradients_are_those_of_whole_logits(rows: int):
    hidden, table, targets = problem(rows)
    expected = F.cross_entropy(torch.tanh(hidden @ table.T / CAP) * CAP, targets)
    loss = capped_cross_entropy(hidden, table, targets, CAP)
    assert torch.allclose(loss, expected, rtol=1e-5)
    for ours, theirs in zip(
        torch.autograd.grad(2 * loss, (hidden, table)),
        torch.autograd.grad(2 * expected, (hidden, table)),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, atol=1e-6, rtol=1e-4)


def test_autocast_multiplies_in_its_format_and_gives_back_the_parameters():
    hidden, table, targets = problem(300)
    expected = capped_cross_entropy(hidden, table, targets, CAP)
    with torch.autocast("cpu", torch.bfloat16):
        loss = capped_cross_entropy(hidden, table, targets, CAP)
    assert loss.dtype == torch.float32
    assert 0 < abs((loss - expected).item()) < 0.05
    gradients = torch.autograd.grad(loss, (hidden, table))
    assert [each.dtype for each in gradients] == [torch.float32, torch.float32]


def test_no_rows_are_no_loss():
    hidden, table, targets = problem(3)
    loss = capped_cross_entropy(hidden[:0], table, targets[:0], CAP)
    assert loss.item() == 0.0
    assert not torch.autograd.grad(loss, table)[0].any()
