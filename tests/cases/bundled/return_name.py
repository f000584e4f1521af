def count_words(text):
    counts = {}
    for word in text.lower().split():
        word = word.strip(".,;:!?")
        if word:
            counts[word] = counts.get(word, 0) + 1
    return ▮counts▮


def most_common(text):
    counts = count_words(text)
    return max(counts, key=counts.get)
