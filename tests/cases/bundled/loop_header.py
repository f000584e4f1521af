class Library:
    def __init__(self, books):
        self.books = books

    def titles(self):
        titles = []
        for ▮book in self.books▮:
            titles.append(book.title)
        return titles

    def by_author(self, author):
        return [book for book in self.books if book.author == author]
