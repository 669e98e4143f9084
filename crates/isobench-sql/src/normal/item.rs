//! The parts of a statement in its normal form, and their text.

use isobench_capture::Datum;

/// A part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Text. `true`: without a blank before it.
    Text(String, bool),
    /// A value.
    Value(Value),
    /// The elements of a list between brackets, of which neighbours of one form are folded: the first and the
    /// last one of each.
    List(Vec<Element>),
}

/// Elements of a list that differ in their values alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The first one.
    pub first: Vec<Item>,
    /// The last one, if there are several.
    pub last: Option<Vec<Item>>,
}

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// As it was recorded; `None` is NULL. A parameter whose value wasn't recorded has none that is known.
    pub known: Option<Option<Datum>>,
    /// Where it stood.
    pub source: Source,
    /// A type that it has to be cast to where it stands alone.
    pub cast: Option<String>,
    /// The column that it is compared with or assigned to, as far as the text shows it.
    pub column: Option<String>,
    /// True in a condition: a row is found by it.
    pub compared: bool,
}

/// Where a value stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A parameter, by its number from 1.
    Parameter(usize),
    /// A literal, as written.
    Literal(String),
}

pub(super) fn lists(items: &[Item], found: &mut Vec<bool>) {
    for item in items {
        let Item::List(elements) = item else { continue };
        for element in elements {
            found.push(element.last.is_some());
            lists(&element.first, found);
        }
    }
}

pub(super) fn values<'a>(items: &'a [Item], found: &mut Vec<Option<&'a Value>>) {
    for item in items {
        match item {
            Item::Text(..) => {}
            Item::Value(value) => found.push(Some(value)),
            Item::List(elements) => {
                for element in elements {
                    let from = found.len();
                    values(&element.first, found);
                    let count = found.len() - from;
                    match &element.last {
                        Some(last) => values(last, found),
                        None => found.extend(std::iter::repeat_n(None, count)),
                    }
                    found.truncate(from + 2 * count);
                    found.resize(from + 2 * count, None);
                }
            }
        }
    }
}

/// The key of parts.
pub(super) fn key(items: &[Item]) -> String {
    written(items, &|_| false, &mut |_, _| "?".to_owned())
}

/// Parts as text: see [`super::Normal::text`].
pub(super) fn written(
    items: &[Item],
    twice: &dyn Fn(usize) -> bool,
    write: &mut dyn FnMut(usize, &Value) -> String,
) -> String {
    let mut writing = Writing { text: String::new(), number: 0, list: 0, twice, write };
    writing.items(items);
    writing.text
}

struct Writing<'a> {
    text: String,
    number: usize,
    list: usize,
    twice: &'a dyn Fn(usize) -> bool,
    write: &'a mut dyn FnMut(usize, &Value) -> String,
}

impl Writing<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Text(text, tight) => {
                    self.space(*tight);
                    self.text.push_str(text);
                }
                Item::Value(value) => {
                    let text = (self.write)(self.number, value);
                    self.number += 1;
                    self.space(false);
                    self.text.push_str(&text);
                }
                Item::List(elements) => {
                    for (place, element) in elements.iter().enumerate() {
                        if place > 0 {
                            self.text.push(',');
                        }
                        self.element(element);
                    }
                }
            }
        }
    }

    fn element(&mut self, element: &Element) {
        let list = self.list;
        self.list += 1;
        let (from, lists) = (self.number, self.list);
        self.items(&element.first);
        let (count, after) = (self.number - from, self.list);
        if (self.twice)(list) {
            self.text.push(',');
            self.list = lists;
            self.items(element.last.as_ref().unwrap_or(&element.first));
        }
        (self.number, self.list) = (from + 2 * count, after);
    }

    fn space(&mut self, tight: bool) {
        if !tight
            && !self.text.is_empty()
            && !self.text.ends_with(['(', '[', '.', ' '])
            && !self.text.ends_with("::")
        {
            self.text.push(' ');
        }
    }
}

/// Neighbours of one form as one.
pub(super) fn folded(elements: Vec<Vec<Item>>) -> Vec<Element> {
    let mut found: Vec<(String, Element)> = Vec::new();
    for element in elements {
        let form = key(&element);
        match found.last_mut() {
            Some((known, last)) if *known == form => last.last = Some(element),
            _ => found.push((form, Element { first: element, last: None })),
        }
    }
    found.into_iter().map(|(_, element)| element).collect()
}
