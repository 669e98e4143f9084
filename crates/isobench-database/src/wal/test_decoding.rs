//! Decodes the lines of `test_decoding`, without I/O.
//!
//! Source: `contrib/test_decoding/test_decoding.c` of PostgreSQL 14 to 18 (PostgreSQL manual,
//! appendix "Additional Supplied Modules"). It prints a line for each change:
//!
//! ```text
//! BEGIN 693
//! table public.t: UPDATE: old-key: id[integer]:1 new-tuple: id[integer]:2 "a b"[text]:'it''s'
//! table public.t: DELETE: id[integer]:2
//! table public.t, public.u: TRUNCATE: cascade
//! COMMIT 693
//! ```
//!
//! Names are quoted as identifiers are. Texts are quoted, with quotes in them doubled; numbers, `true`,
//! `null` and `unchanged-toast-datum` stand there as they are. An old row has no columns that are NULL,
//! and without a replica identity none at all: `(no-tuple-data)`. A line that isn't exactly of that form
//! is an error: this is a source that checks another one, so it mustn't guess.

use std::collections::HashMap;
use std::sync::Arc;

use super::collector::Collector;
use super::error::{TestDecodingError, WalError};
use super::transaction::{WalRelation, WalTransaction, WalWriteKind};

/// A table, or one of its partitions, whose changes are read.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// The table; of a partition, its partitioned table.
    pub(crate) relation: Arc<WalRelation>,
    /// The names of its primary key's columns, in the key's order.
    pub(crate) key: Arc<[String]>,
}

/// Joins lines to transactions.
#[derive(Debug)]
pub(crate) struct Lines {
    /// The tables and partitions by schema and name. Changes of others are passed over.
    parts: HashMap<(String, String), Part>,
    collector: Collector,
}

/// The values of a key's columns.
type Key = Vec<Option<String>>;

impl Lines {
    /// Expects changes of these tables and partitions, by schema and name. A transaction may use so much
    /// memory, in bytes.
    pub(crate) fn new(parts: HashMap<(String, String), Part>, limit: usize) -> Lines {
        Lines { parts, collector: Collector::new(limit) }
    }

    /// The collector of its writes.
    pub(crate) fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Takes a line. Returns a transaction when its commit has come, unless it wrote nothing.
    ///
    /// # Errors
    /// The lines aren't those of a sequence of transactions, or a transaction is too large.
    pub(crate) fn take(&mut self, line: &[u8]) -> Result<Option<WalTransaction>, WalError> {
        let text = std::str::from_utf8(line)
            .map_err(|error| TestDecodingError { at: error.valid_up_to(), problem: "it isn't UTF-8" })?;
        let mut line = Line { text, at: 0 };
        if line.take("BEGIN ") {
            let xid = line.number()?;
            self.collector.begin(xid, xid.into())?;
        } else if line.take("COMMIT ") {
            return self.collector.commit(line.number()?.into());
        } else if line.take("table ") {
            self.change(&mut line)?;
        } else if !line.take("message: ") {
            return Err(line.error("there is no such line").into());
        }
        Ok(None)
    }

    fn change(&mut self, line: &mut Line<'_>) -> Result<(), WalError> {
        let mut tables = vec![line.table()?];
        while line.take(", ") {
            tables.push(line.table()?);
        }
        line.expect(": ", "a colon is missing")?;
        if line.take("TRUNCATE:") {
            for table in tables {
                if let Some(part) = self.parts.get(&table) {
                    self.collector.add(&part.relation, WalWriteKind::Truncate, Vec::new(), None)?;
                }
            }
            return Ok(());
        }
        let ([table], Some(kind)) = (&tables[..], line.kind()) else {
            return Err(line.error("there is no such change").into());
        };
        let Some(part) = self.parts.get(table) else { return Ok(()) };
        let old = if line.take(" old-key:") { Some(part.key(line, None)?) } else { None };
        if old.is_some() {
            line.expect(" new-tuple:", "the new row is missing")?;
        }
        let key = part.key(line, old.as_ref())?;
        if line.rest().is_empty() {
            self.collector.add(&part.relation, kind, key, old)
        } else {
            Err(line.error("surplus text").into())
        }
    }
}

impl Part {
    /// The key of the row that follows. A value that isn't repeated is taken from the old key, which the
    /// server then sends.
    fn key(&self, line: &mut Line<'_>, old: Option<&Key>) -> Result<Key, WalError> {
        let mut key: Vec<Option<Value>> = vec![None; self.key.len()];
        while !line.rest().is_empty() && !line.rest().starts_with(" new-tuple:") {
            if line.take(" (no-tuple-data)") {
                break;
            }
            let (name, value) = line.column()?;
            if let Some(place) = self.key.iter().position(|column| *column == name) {
                key[place] = Some(value);
            }
        }
        let column = |(place, value): (usize, Option<Value>)| match value {
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Null) => Ok(None),
            Some(Value::Unchanged) => old
                .and_then(|old| old.get(place).cloned())
                .ok_or(WalError::Disorder("a row's key is missing")),
            None => Err(WalError::KeyChanged { table: self.relation.name() }),
        };
        key.into_iter().enumerate().map(column).collect()
    }
}

/// A value in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Null,
    /// Stored outside of the row (TOAST), and not changed by the update.
    Unchanged,
    /// As the type's output function writes it.
    Text(String),
}

/// A line as far as it has been read.
#[derive(Debug)]
struct Line<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Line<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, problem: &'static str) -> TestDecodingError {
        TestDecodingError { at: self.at, problem }
    }

    /// Passes a text, if it comes next.
    fn take(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    fn expect(&mut self, expected: &str, problem: &'static str) -> Result<(), TestDecodingError> {
        if self.take(expected) { Ok(()) } else { Err(self.error(problem)) }
    }

    /// Passes what comes before the first of these characters, or the end.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// The rest of the line, a number.
    fn number(&mut self) -> Result<u32, TestDecodingError> {
        self.rest().parse().map_err(|_| self.error("a number is missing"))
    }

    fn kind(&mut self) -> Option<WalWriteKind> {
        let kinds = [
            ("INSERT:", WalWriteKind::Insert),
            ("UPDATE:", WalWriteKind::Update),
            ("DELETE:", WalWriteKind::Delete),
        ];
        kinds.into_iter().find(|(word, _)| self.take(word)).map(|(_, kind)| kind)
    }

    /// A schema and a name.
    fn table(&mut self) -> Result<(String, String), TestDecodingError> {
        let schema = self.identifier()?;
        self.expect(".", "a table's name is missing")?;
        Ok((schema, self.identifier()?))
    }

    fn identifier(&mut self) -> Result<String, TestDecodingError> {
        if self.take("\"") {
            return self.quoted('"');
        }
        match self.until(&['.', ',', ':', '[', ' ']) {
            "" => Err(self.error("a name is missing")),
            name => Ok(name.to_owned()),
        }
    }

    /// What comes before a quote that isn't doubled.
    fn quoted(&mut self, quote: char) -> Result<String, TestDecodingError> {
        let mut found = String::new();
        loop {
            found += self.until(&[quote]);
            if self.rest().is_empty() {
                return Err(self.error("a quote is missing"));
            }
            self.at += quote.len_utf8();
            if !self.rest().starts_with(quote) {
                return Ok(found);
            }
            self.at += quote.len_utf8();
            found.push(quote);
        }
    }

    /// A column's name and value.
    fn column(&mut self) -> Result<(String, Value), TestDecodingError> {
        self.expect(" ", "a blank is missing")?;
        let name = self.identifier()?;
        self.expect("[", "a type is missing")?;
        let start = self.at;
        self.pass_type()?;
        let of_type = &self.text[start..self.at];
        self.expect("]:", "a value is missing")?;
        Ok((name, self.value(of_type)?))
    }

    /// Passes a type, which may have brackets, `integer[]`, and quotes.
    fn pass_type(&mut self) -> Result<(), TestDecodingError> {
        let mut depth = 0;
        loop {
            self.until(&['[', ']', '"']);
            match self.rest().chars().next() {
                Some('"') => {
                    self.at += 1;
                    self.quoted('"')?;
                    continue;
                }
                Some('[') => depth += 1,
                Some(_) if depth == 0 => return Ok(()),
                Some(_) => depth -= 1,
                None => return Err(self.error("a type has no end")),
            }
            self.at += 1;
        }
    }

    fn value(&mut self, of_type: &str) -> Result<Value, TestDecodingError> {
        if self.take("'") || self.take("B'") {
            return self.quoted('\'').map(Value::Text);
        }
        let word = self.until(&[' ']);
        Ok(match word {
            "" => return Err(self.error("a value is missing")),
            "null" => Value::Null,
            "unchanged-toast-datum" => Value::Unchanged,
            "true" if of_type == "boolean" => Value::Text("t".to_owned()),
            "false" if of_type == "boolean" => Value::Text("f".to_owned()),
            number => Value::Text(number.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A transaction of a real server (15), on a table with the key (`b`, `"A a"`).
    const LINES: [&str; 9] = [
        "BEGIN 693",
        r#"table s.t: INSERT: "A a"[text]:'it''s' b[integer]:-1 v[integer[]]:'{1,2}'"#,
        r#"table s.t: UPDATE: "A a"[text]:'it''s' b[integer]:-1 v[integer[]]:unchanged-toast-datum"#,
        r#"table s.t: UPDATE: old-key: "A a"[text]:'it''s' b[integer]:-1 new-tuple: "A a"[text]:unchanged-toast-datum b[integer]:2 v[integer[]]:null"#,
        r"table public.other: DELETE: (no-tuple-data)",
        r#"table s.t: DELETE: "A a"[text]:'it''s' b[integer]:2"#,
        r"message: transactional: 1 prefix: COMMIT 693, sz: 1 content:x",
        r"table public.other, s.t_1: TRUNCATE: restart_seqs cascade",
        "COMMIT 693",
    ];

    fn lines(limit: usize) -> Lines {
        let relation = WalRelation { schema: "s".to_owned(), table: "t".to_owned() };
        let key = ["b".to_owned(), "A a".to_owned()];
        let part = Part { relation: Arc::new(relation), key: key.into() };
        let names = ["t", "t_1"].map(|name| (("s".to_owned(), name.to_owned()), part.clone()));
        Lines::new(names.into(), limit)
    }

    fn take(texts: &[&str]) -> Result<Vec<WalTransaction>, WalError> {
        let mut lines = lines(10_000);
        let mut done = Vec::new();
        for text in texts {
            done.extend(lines.take(text.as_bytes())?);
        }
        lines.collector().at_rest()?;
        Ok(done)
    }

    #[test]
    fn lines_become_transactions() {
        let [transaction] = &take(&LINES).unwrap()[..] else { panic!() };
        let expected = [
            (WalWriteKind::Insert, "-1,it's"),
            (WalWriteKind::Update, "-1,it's"),
            (WalWriteKind::Update, "-1,it's to 2,it's"),
            (WalWriteKind::Delete, "2,it's"),
            (WalWriteKind::Truncate, ""),
        ];
        assert_eq!(transaction.shown(), expected.map(|(kind, keys)| (kind, keys.to_owned())));
        assert_eq!(transaction.xid, 693);
    }

    #[test]
    fn types_and_values_of_every_form_are_read() {
        let row = r#"table s.t: INSERT: x["odd ""]:type"[]]:'a]:b' "A a"[boolean]:true y[bit]:B'01' b[boolean]:false z["boolean"]:true"#;
        let [transaction] = &take(&["BEGIN 1", row, "COMMIT 1"]).unwrap()[..] else { panic!() };
        assert_eq!(transaction.writes[0].key, [Some("f".to_owned()), Some("t".to_owned())]);
    }

    #[test]
    fn other_lines_are_errors() {
        for (text, expected) in [
            ("", "there is no such line"),
            ("BEGIN", "there is no such line"),
            ("BEGIN x", "a number is missing"),
            ("table s: INSERT: b[integer]:1", "a table's name is missing"),
            ("table s.t INSERT: b[integer]:1", "a colon is missing"),
            ("table s.t: UPSERT: b[integer]:1", "there is no such change"),
            ("table s.t, s.t_1: INSERT: b[integer]:1", "there is no such change"),
            ("table \"s.t: INSERT: b[integer]:1", "a quote is missing"),
            ("table s.t: INSERT: b[integer]:", "a value is missing"),
            ("table s.t: INSERT: b[integer:1", "a type has no end"),
            ("table s.t: INSERT: b[integer]=1", "a value is missing"),
            ("table s.t: INSERT: b:1", "a type is missing"),
            ("table s.t: INSERT:b[integer]:1", "a blank is missing"),
            ("table s.t: INSERT: b[integer]:1", "the primary key of table \"s.t\" was changed"),
            ("table s.t: UPDATE: (no-tuple-data)", "the primary key of table \"s.t\" was changed"),
            ("table s.t: UPDATE: old-key: \"A a\"[text]:'x' b[integer]:1", "the new row is missing"),
            ("table s.t: INSERT: \"A a\"[text]:'x' b[integer]:1 new-tuple: c[text]:'x'", "surplus text"),
            ("table s.t: INSERT: \"A a\"[text]:unchanged-toast-datum b[integer]:1", "key is missing"),
            ("COMMIT 2", "that of another transaction"),
        ] {
            let error = take(&["BEGIN 1", text]).unwrap_err().to_string();
            let error =
                if text.starts_with("BEGIN") { take(&[text]).unwrap_err().to_string() } else { error };
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (texts, expected) in [
            (&["COMMIT 1"][..], "a commit has no beginning"),
            (&["BEGIN 1"], "a transaction has no end"),
            (&["BEGIN 1", "BEGIN 2"], "a transaction has no end"),
            (&["table s.t: TRUNCATE: (no-flags)"], "a change outside of a transaction"),
        ] {
            let error = take(texts).unwrap_err().to_string();
            assert!(error.contains(expected), "{texts:?}: {error}");
        }
        assert!(lines(0).take(b"table s.t: INSERT: \xff").unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn a_transaction_has_a_limit_of_memory() {
        let mut lines = lines(1_000);
        lines.take(b"BEGIN 3").unwrap();
        let insert = br#"table s.t: INSERT: "A a"[text]:'x' b[integer]:1"#;
        let error = (0..100).find_map(|_| lines.take(insert).err()).unwrap();
        assert!(matches!(error, WalError::TooLarge { xid: Some(3), limit: 1_000 }), "{error}");
    }

    proptest! {
        /// Whatever is in a line, no key is read but the one that was written.
        #[test]
        fn any_text_in_a_key_comes_back(text in "[a-z\\[\\]:'\" ,.\\\\é-]{0,12}") {
            let quoted = text.replace('\'', "''");
            let row = format!("table s.t: INSERT: v[text]:'{quoted}' \"A a\"[text]:'{quoted}' b[integer]:1");
            let found = take(&["BEGIN 1", &row, "COMMIT 1"]).unwrap();
            prop_assert_eq!(&found[0].writes[0].key[1], &Some(text));
        }

        #[test]
        fn cut_off_lines_never_panic(number in 1_usize..8, length in 0_usize..120) {
            let cut: String = LINES[number].chars().take(length).collect();
            let _ = take(&["BEGIN 693", &cut, "COMMIT 693"]);
        }
    }
}
