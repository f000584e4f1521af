//! A grid of cells, each alive or dead.
use std::collections::HashMap;
use std::fmt::{self, Display};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Point {
    pub x: i32,
    pub y: i32,
}

#[derive(Default)]
pub struct Grid<'a, T> {
    cells: HashMap<(i32, i32), T>,
    name: &'a str,
}

pub enum Change {
    Born(Point),
    Dead { at: Point, age: u32 },
}

impl<'a, T: Clone + Display> Grid<'a, T> {
    pub fn new(name: &'a str) -> Self {
        Grid { cells: HashMap::new(), name }
    }

    pub fn neighbours(&self, point: Point) -> impl Iterator<Item = Point> + '_ {
        (-1..=1).flat_map(move |dx| {
            (-1..=1)
                .filter(move |dy| (dx, *dy) != (0, 0))
                .map(move |dy| Point { x: point.x + dx, y: point.y + dy })
        })
    }

    pub fn apply(&mut self, change: &Change, value: T) -> Option<T> {
        match change {
            Change::Born(Point { x, y }) => self.cells.insert((*x, *y), value),
            Change::Dead { at, age } if *age > 3 => {
                let key = (at.x, at.y);
                self.cells.remove(&key)
            }
            _ => None,
        }
    }
}

impl<T> fmt::Display for Grid<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} cells, sep '{}'", self.name, self.cells.len(), ',')
    }
}
