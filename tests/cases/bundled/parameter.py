def clamp(value, ▮low, high▮):
    """`value`, moved into the range from low to high."""
    if value < low:
        return low
    if value > high:
        return high
    return value


def clamp_all(values, low, high):
    return [clamp(value, low, high) for value in values]
