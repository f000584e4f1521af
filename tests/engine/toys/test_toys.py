from pathlib import Path

import pytest

from tests.engine.toys.__main__ import make
from tests.engine.toys.recipes import RECIPES


@pytest.mark.parametrize("name", RECIPES)
def test_a_toy_is_made_by_the_recipe_of_the_bundled_model(name: str, tmp_path: Path):
    make(name, tmp_path, tokens=1280)
    assert (tmp_path / "model.safetensors").stat().st_size < 2_000_000
