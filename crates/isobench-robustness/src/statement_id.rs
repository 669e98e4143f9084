//! Which statement of which script is meant.

use std::fmt;

/// A statement of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementId {
    /// The script's name.
    pub script: String,
    /// The line on which its command begins, from 1; 0 if the whole script is meant.
    pub line: u32,
    /// The number of the statement in its command, from 0.
    pub place: usize,
}

impl StatementId {
    /// The first statement of the command on a line.
    pub fn new(script: impl Into<String>, line: u32) -> StatementId {
        StatementId { script: script.into(), line, place: 0 }
    }

    /// The whole script.
    pub fn whole(script: impl Into<String>) -> StatementId {
        StatementId::new(script, 0)
    }

    /// True if no statement is meant.
    pub fn is_unnamed(&self) -> bool {
        *self == StatementId::default()
    }

    /// The first statement of its command.
    #[must_use]
    pub fn command(&self) -> StatementId {
        StatementId { place: 0, ..self.clone() }
    }
}

/// `pay.sql:7`, or `pay.sql:7#2` for the second statement of the command.
impl fmt::Display for StatementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.place > 0 { write!(f, "#{}", self.place + 1) } else { Ok(()) }
    }
}

/// Reads what is printed so; a text without a line is a script's name.
impl From<&str> for StatementId {
    fn from(text: &str) -> StatementId {
        let (command, place) = match text.rsplit_once('#').map(|(command, place)| (command, place.parse())) {
            Some((command, Ok(place @ 2usize..))) => (command, place - 1),
            _ => (text, 0),
        };
        match command.rsplit_once(':').map(|(script, line)| (script, line.parse())) {
            Some((script, Ok(line @ 1u32..))) => StatementId { script: script.to_owned(), line, place },
            _ => StatementId::whole(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_in_the_order_of_their_lines() {
        let [seventh, tenth] = [7, 10].map(|line| StatementId::new("pay.sql", line));
        let second = StatementId { place: 1, ..seventh.clone() };
        assert!(seventh < second && second < tenth);
        assert_eq!(
            [seventh, second, tenth].map(|one| one.to_string()),
            ["pay.sql:7", "pay.sql:7#2", "pay.sql:10"]
        );
        assert_eq!(StatementId::whole("pay.sql").to_string(), "pay.sql");
    }

    #[test]
    fn what_is_printed_is_read() {
        for text in
            ["pay.sql:7", "pay.sql:7#2", "pay.sql", "a:b#c", "c:/pay.sql:10#12", "pay.sql:0", "#1:7#1", ""]
        {
            assert_eq!(StatementId::from(text).to_string(), text);
        }
        assert_eq!(
            StatementId::from("pay.sql:7#2"),
            StatementId { place: 1, ..StatementId::new("pay.sql", 7) }
        );
    }
}
