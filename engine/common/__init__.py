"""What every package may name: requests and answers, errors, texts without loss, and what goes over the wire."""
