//! A query of several that give one answer.

/// A query of several that give one answer: a mark, a name, and as many columns as the widest has.
pub struct Arm {
    /// The expression of the name; `None` if there is one row.
    pub name: Option<String>,
    /// The expressions of the columns.
    pub columns: Vec<String>,
    /// The rest of the query.
    pub from: String,
    /// The columns are sums over rows of the same name.
    pub sums: bool,
}

impl Arm {
    /// The text of the query.
    pub fn query(&self, mark: &str, width: usize) -> String {
        let name = self.name.as_deref().unwrap_or("null");
        let columns = self.columns.iter().map(String::as_str).chain(std::iter::repeat("null")).take(width);
        let text = |expression| format!("({expression})::text");
        let all: Vec<String> = std::iter::once(name).chain(columns).map(text).collect();
        let group = if self.sums { " group by 1, 2" } else { "" };
        format!("select '{mark}'::text, {} {}{group}", all.join(", "), self.from)
    }
}
