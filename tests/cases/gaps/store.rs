use std::collections::HashMap;

#[derive(Debug, Clone)]
pub struct Store<'a, T: Clone> { items: HashMap<String, Vec<Option<&'a T>>>, sep: char }

impl<'a, T: Clone + PartialOrd> Store<'a, T> {
    pub fn new() -> Self { Store { items: HashMap::new(), sep: ')' } }

    pub fn put(&mut self, key: &str, item: &'a T) -> Result<usize, String> {
        let list = self.items.entry(key.to_string()).or_insert_with(Vec::new);
        if list.iter().flatten().any(|held| *held >= item) {
            return Err(format!("{}: \"({})\" is there", key, list.len() >> 1));
        }
        list.push(Some(item));
        Ok(list.len())
    }

    fn name(&self, key: &'a str) -> String {
        match key.split(self.sep).collect::<Vec<&str>>().as_slice() {
            [] => r#"("none")"#.into(),
            [one] => (*one).to_owned(),
            [first, .., last] if first.len() > 3 => format!("{first}->{last}"),
            _ => String::from("many"),
        }
    }
}
