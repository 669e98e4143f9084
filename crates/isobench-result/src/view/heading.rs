//! The headings of columns.

/// The heading of a column.
pub struct Heading {
    /// The first line.
    pub title: String,
    /// The second line; may be empty.
    pub unit: String,
    /// True for numbers, which are right-aligned.
    pub right: bool,
}

impl Heading {
    /// A heading of two lines.
    pub fn new(title: impl Into<String>, unit: impl Into<String>, right: bool) -> Heading {
        Heading { title: title.into(), unit: unit.into(), right }
    }

    /// Headings without units: the title of each, and whether its column has numbers.
    pub fn all(titles: &[(&str, bool)]) -> Vec<Heading> {
        titles.iter().map(|(title, right)| Heading::new(*title, "", *right)).collect()
    }

    /// Title and unit in one line.
    pub fn name(&self) -> String {
        format!("{} {}", self.title, self.unit).trim().to_owned()
    }
}
