def transpose(matrix):
    rows = len(matrix)
    columns = len(matrix[0])
    result = []
    for j in range(columns):
        column = []
        for i in ▮range(rows)▮:
            column.append(matrix[i][j])
        result.append(column)
    return result
