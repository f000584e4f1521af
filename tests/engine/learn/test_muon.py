import torch

from engine.learn.optimise import BatchedMuon, orthogonal

SHAPES = [(32, 32), (32, 48), (48, 32), (32, 48)]


def matrices() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]


def give_gradients(parameters: list[torch.Tensor], step: int) -> None:
    generator = torch.Generator().manual_seed(100 + step)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_it_does_what_the_published_optimiser_does():
    ours, theirs = matrices(), matrices()
    batched = BatchedMuon(ours, lr=0.02, weight_decay=0.01)
    published = torch.optim.Muon(theirs, lr=0.02, weight_decay=0.01)
    for step in range(3):
        for parameters, optimiser in ((ours, batched), (theirs, published)):
            give_gradients(parameters, step)
            optimiser.step()
    for a, b in zip(ours, theirs, strict=True):
        # Theirs iterates in bfloat16.
        assert torch.allclose(a, b, atol=2e-3)


def test_a_checkpoint_of_the_published_optimiser_goes_on():
    start = matrices()
    published = torch.optim.Muon(start, lr=0.02, weight_decay=0.01)
    give_gradients(start, 0)
    published.step()
    batched = BatchedMuon(start, lr=0.02, weight_decay=0.01)
    batched.load_state_dict(published.state_dict())
    assert all(torch.equal(batched.state[m]["momentum_buffer"], published.state[m]["momentum_buffer"]) for m in start)


def test_singular_values_come_close_to_one():
    made = orthogonal(torch.randn(3, 24, 60, generator=torch.Generator().manual_seed(1)))
    values = torch.linalg.svdvals(made.float())
    assert 0.5 < float(values.min()) < float(values.max()) < 1.3


def test_a_parameter_without_a_gradient_stays():
    parameters = matrices()
    before = [parameter.detach().clone() for parameter in parameters]
    give_gradients(parameters, 0)
    parameters[1].grad = None
    BatchedMuon(parameters, lr=0.02, weight_decay=0.01).step()
    same = [torch.equal(a, b) for a, b in zip(parameters, before, strict=True)]
    assert same == [False, True, False, False]
