class Rectangle:
    """An axis-aligned rectangle."""

    def __init__(self, width, height, colour="black"):
        self.width = width
        self.height = ▮height▮
        self.colour = colour

    def area(self):
        return self.width * self.height

    def perimeter(self):
        return 2 * (self.width + self.height)
