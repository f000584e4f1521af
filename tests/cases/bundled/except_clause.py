def to_number(text, default=0):
    """Read an integer, or give the default where the text is none."""
    try:
        return int(text)
    except ▮ValueError▮:
        return default


def to_numbers(texts):
    return [to_number(text) for text in texts]
