from engine.common.errors import EngineError, shortened, unquoted


def test_a_message_of_any_length_is_shown_by_its_ends():
    said = str(EngineError(f"The setting is {'x' * 10**6}, which is none."))
    assert len(said) <= 2_000
    assert said.startswith("The setting is xxx")
    assert said.endswith("xxx, which is none.")
    assert shortened("short") == "short"


def test_what_failed_is_told_without_what_it_says():
    try:
        try:
            raise KeyError("a secret")
        except KeyError as error:
            raise ValueError("another secret") from error
    except ValueError as error:
        told = unquoted(error)
    first, second = told.split("\nbehind: ")
    assert first.startswith("ValueError\n")
    assert second.startswith("KeyError\n")
    assert "test_errors.py" in first
    assert 'KeyError("a secret")' in second  # our own line, not what it came to
    assert "'a secret'" not in told
