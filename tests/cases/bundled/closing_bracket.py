def flatten(rows):
    result = []
    for row in rows:
        for cell in row:
            result.append(str(cell)▮)▮
    return result


def total(rows):
    return sum(len(row) for row in rows)
