class Point {
  constructor(x, y) {
    this.x = x;
    this.y = ▮y▮;
  }

  add(other) {
    return new Point(this.x + other.x, this.y + other.y);
  }

  toString() {
    return `(${this.x}, ${this.y})`;
  }
}

module.exports = Point;
