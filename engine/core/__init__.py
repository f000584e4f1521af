"""What every room may name: requests and answers, errors, sizes, names, and where files lie."""
