//! The reads and writes of one client's attempt, collected from the replies to annotated commands as
//! they arrive.
//!
//! Nothing is allocated for an operation. Not here: the end of an attempt (`ending.rs`), and where
//! its operations go (`recording.rs`).

use std::collections::VecDeque;

use isobench_isolation::history::{Draft, Key, Operation, TransactionOutcome, Version};
use isobench_pgwire::backend::DataRow;
use isobench_script::{EvalError, Slot, Symbols, Value, Variables};

use super::integer::integer;
use super::rows::ShownRow;
use crate::annotated::{AnnotatedCommand, AnnotationKind, AnnotationLine, NumberSource};
use crate::recorder::AssertionRecord;
use crate::seen::SeenStatement;

/// The reads and writes of an attempt so far.
#[derive(Debug, Default)]
pub(super) struct AttemptOperations {
    draft: Draft,
    /// Values of variables at the time when the unanswered requests were sent, in the order of the
    /// requests. `None` is NULL.
    noted: VecDeque<Option<i64>>,
    /// Annotated commands that were sent and aren't answered yet.
    pending: u32,
    /// Rows received from the annotated statement that is being answered.
    rows: u64,
    /// One of these rows reported that the statement's work was undone, so that its lines don't
    /// apply.
    skipped: bool,
    /// Buffer for the list that is being read.
    list: Vec<i64>,
    /// For each line that collects keys, those of the annotated statement that is being answered.
    groups: Vec<Vec<i64>>,
    /// For each assertion of the script: `None` if it wasn't evaluated, otherwise true as long as
    /// it held.
    held: Vec<Option<bool>>,
    /// The outcome of the transaction if it ended before the script. A second transaction isn't
    /// part of the attempt.
    settled: Option<TransactionOutcome>,
    /// The first line that couldn't be understood. The attempt's operations are incomplete then.
    problem: Option<String>,
}

/// A column's text; `None` is NULL.
type ColumnText<'a> = Option<&'a [u8]>;

/// The sources of numbers while one row is read.
struct RowNumbers<'a> {
    row: Option<DataRow<'a>>,
    noted: &'a VecDeque<Option<i64>>,
}

impl AttemptOperations {
    /// Starts a new attempt of a script with this many assertions.
    pub(super) fn reset(&mut self, assertions: usize) {
        self.draft.clear();
        self.noted.clear();
        self.pending = 0;
        self.rows = 0;
        self.skipped = false;
        self.groups.iter_mut().for_each(Vec::clear);
        self.held.clear();
        self.held.resize(assertions, None);
        self.settled = None;
        self.problem = None;
    }

    /// Called before an annotated command is sent: notes the values of its variables.
    ///
    /// # Errors
    /// A variable isn't an integer; the text names line and variable.
    pub(super) fn send(
        &mut self,
        annotated: &AnnotatedCommand,
        variables: &Variables,
        symbols: &Symbols,
    ) -> Result<(), String> {
        for slot in &annotated.noted {
            let value = match variables.value(*slot, symbols) {
                Ok(Value::Int(number)) => Some(number),
                Ok(Value::Null) => None,
                other => return Err(not_integer(annotated, *slot, symbols, other)),
            };
            self.noted.push_back(value);
        }
        self.pending += 1;
        Ok(())
    }

    /// Adds a row of an annotated statement.
    pub(super) fn row(&mut self, annotated: &AnnotatedCommand, row: DataRow<'_>) {
        self.rows += 1;
        for line in &annotated.lines {
            if line.what.is_in_tag() {
                continue;
            }
            if let Err(problem) = self.take(line, Some(row)) {
                self.fail(line, &problem);
            }
        }
    }

    /// Takes a row that reports a swallowed error: the statement's work was undone.
    pub(super) fn skip(&mut self) {
        self.rows += 1;
        self.skipped = true;
    }

    /// Ends an annotated statement that was answered with this tag.
    pub(super) fn answered(&mut self, annotated: &AnnotatedCommand, tag: &[u8]) {
        let skipped = std::mem::take(&mut self.skipped);
        if skipped {
            self.groups.iter_mut().for_each(Vec::clear);
        }
        for line in annotated.lines.iter().filter(|_| !skipped) {
            let absent = self.rows == 0 && line.what.is_in_absence();
            let taken = match line.what {
                AnnotationKind::ReadGroup { table, group, place, .. } => self.take_group(table, group, place),
                _ if absent || line.what.is_in_tag() && reports_rows(tag) => self.take(line, None),
                _ => Ok(()),
            };
            if let Err(problem) = taken {
                self.fail(line, &problem);
            }
        }
        self.rows = 0;
        self.noted.drain(..annotated.noted.len().min(self.noted.len()));
        self.pending = self.pending.saturating_sub(1);
    }

    /// Compares the operations of an annotated command with the rows that its statements showed, and
    /// forgets them.
    pub(super) fn compare(
        &mut self,
        annotated: &AnnotatedCommand,
        seen: &[SeenStatement],
        shown: impl Iterator<Item = ShownRow>,
    ) {
        let shown: Vec<ShownRow> = shown.collect();
        let is_shown = |table: u16| {
            seen.iter().flat_map(|statement| &statement.what.rows).any(|rows| rows.table == table)
        };
        let find = |key: Key, written: bool| shown.iter().any(|row| row.key == key && row.written >= written);
        let mut wrong = None;
        for operation in self.draft.iter() {
            let (verb, key, agrees) = match operation {
                Operation::Write { key, .. }
                | Operation::Append { key, .. }
                | Operation::Insert { key, .. } => ("write", key, find(key, true)),
                Operation::Read { key, version } => {
                    ("read", key, version == Version::INITIAL || find(key, false))
                }
                Operation::ReadList { key, elements } => {
                    ("read", key, elements.is_empty() || find(key, false))
                }
                Operation::ReadGroup { table, rows, .. } => {
                    let missing = rows.iter().find(|id| !find(Key { table, id: **id }, false));
                    ("read", Key { table, id: missing.copied().unwrap_or(0) }, missing.is_none())
                }
                Operation::Missed { .. } => continue,
            };
            if !agrees && is_shown(key.table) {
                wrong.get_or_insert((verb, key));
            }
        }
        self.draft.clear();
        if let (Some((verb, key)), Some(line)) = (wrong, annotated.lines.first()) {
            let problem = format!(
                "the statement did not {verb} the row with the key {}, as its own result shows; \
                 correct the line or remove it",
                key.id
            );
            self.fail(line, &problem);
        }
    }

    /// Adds the operation that a line describes, of a row or of the absence of one.
    fn take(&mut self, line: &AnnotationLine, row: Option<DataRow<'_>>) -> Result<(), String> {
        let numbers = RowNumbers { row, noted: &self.noted };
        let operation = match line.what {
            AnnotationKind::Read { table, key, counter, value } => {
                let key = Key { table, id: numbers.needed("key", key)? };
                let version = if row.is_some() { numbers.version(counter, value)? } else { Version::INITIAL };
                Operation::Read { key, version }
            }
            AnnotationKind::Write { table, key, counter, value } => {
                let key = Key { table, id: numbers.needed("key", key)? };
                Operation::Write { key, version: numbers.version(counter, value)? }
            }
            AnnotationKind::Insert { table, key, group } => {
                let key = Key { table, id: numbers.needed("key", key)? };
                Operation::Insert { key, group: numbers.needed("group", group)? }
            }
            AnnotationKind::Append { table, key, element } => {
                let key = Key { table, id: numbers.needed("key", key)? };
                Operation::Append { key, element: numbers.needed("element", element)? }
            }
            AnnotationKind::ReadList { table, key, elements } => {
                let key = Key { table, id: numbers.needed("key", key)? };
                self.list.clear();
                if row.is_some() {
                    list(numbers.text("elements", elements)?, &mut self.list)?;
                }
                Operation::ReadList { key, elements: &self.list }
            }
            AnnotationKind::ReadGroup { key, place, .. } => {
                let key = numbers.needed("key", NumberSource::Column(key))?;
                if self.groups.len() <= place {
                    self.groups.resize(place + 1, Vec::new());
                }
                self.groups[place].push(key);
                return Ok(());
            }
            AnnotationKind::Holds { assertion, value } => {
                let holds = truth(numbers.text("value", value)?)?;
                if let Some(held) = self.held.get_mut(assertion) {
                    *held = Some(held.unwrap_or(true) && holds);
                }
                return Ok(());
            }
        };
        self.draft.push(operation);
        Ok(())
    }

    /// Adds a read by predicate.
    fn take_group(&mut self, table: u16, group: NumberSource, place: usize) -> Result<(), String> {
        let group = RowNumbers { row: None, noted: &self.noted }.needed("group", group)?;
        let rows: &[i64] = self.groups.get(place).map_or(&[], Vec::as_slice);
        self.draft.push(Operation::ReadGroup { table, group, rows });
        self.groups.iter_mut().skip(place).take(1).for_each(Vec::clear);
        Ok(())
    }

    /// Keeps the first problem of the attempt.
    fn fail(&mut self, line: &AnnotationLine, problem: &str) {
        self.problem.get_or_insert_with(|| format!("{}: {problem}", line.place));
    }

    /// Rejects an annotated command that was executed after the attempt's transaction had ended.
    pub(super) fn reject(&mut self, annotated: &AnnotatedCommand) {
        if let Some(line) = annotated.lines.first() {
            let problem =
                "its transaction isn't the script's first; a script with lines --@ must be one transaction";
            self.fail(line, problem);
        }
    }

    /// Rejects operations of which ROLLBACK TO has undone an unknown part.
    pub(super) fn reject_partial_rollback(&mut self) {
        if self.is_used() {
            let problem =
                "ROLLBACK TO undoes a part of what lines --@ declare; a script with such lines can't have it";
            self.problem.get_or_insert_with(|| problem.to_owned());
        }
    }

    /// Notes the outcome of a transaction that has ended before the script.
    pub(super) fn settle(&mut self, outcome: TransactionOutcome) {
        if self.settled.is_none() && (self.is_used() || self.problem.is_some()) {
            self.settled = Some(outcome);
        }
    }

    /// True if the transaction has ended, so that nothing more can belong to it.
    pub(super) fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    fn is_used(&self) -> bool {
        !self.draft.is_empty() || self.held.iter().any(Option::is_some)
    }

    /// The first problem, if there was one.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The outcome of the transaction, given that of the attempt.
    pub(super) fn outcome(&self, attempt: TransactionOutcome) -> TransactionOutcome {
        self.settled.unwrap_or(attempt)
    }

    /// The operations so far.
    pub(super) fn draft(&self) -> &Draft {
        &self.draft
    }

    /// True if the transaction may have done more than is known.
    pub(super) fn is_incomplete(&self, outcome: TransactionOutcome) -> bool {
        outcome != TransactionOutcome::Aborted
            && (self.problem.is_some() || self.pending > 0 && outcome == TransactionOutcome::Unknown)
    }

    /// Counts the assertions that were evaluated in a committed transaction.
    pub(super) fn count(&self, records: &mut [AssertionRecord]) {
        for (record, held) in records.iter_mut().zip(&self.held) {
            record.checked += u64::from(held.is_some());
            record.broken += u64::from(*held == Some(false));
        }
    }
}

impl<'a> RowNumbers<'a> {
    /// A column's text, `None` for NULL.
    fn text(&self, field: &str, column: usize) -> Result<ColumnText<'a>, String> {
        text(self.row, field, column)
    }

    fn number(&self, field: &str, number: NumberSource) -> Result<Option<i64>, String> {
        match number {
            NumberSource::Known(number) => Ok(Some(number)),
            NumberSource::Noted(place) => Ok(self.noted.get(place).copied().flatten()),
            NumberSource::Column(column) => match self.text(field, column)? {
                None => Ok(None),
                Some(text) => integer(text).map(Some).ok_or_else(|| {
                    format!("the {field} is \"{}\", which is no 64-bit integer", text.escape_ascii())
                }),
            },
        }
    }

    fn needed(&self, field: &str, number: NumberSource) -> Result<i64, String> {
        self.number(field, number)?.ok_or_else(|| format!("the {field} is NULL"))
    }

    fn version(&self, counter: Option<NumberSource>, value: Option<NumberSource>) -> Result<Version, String> {
        let number = |field, from: Option<NumberSource>| match from {
            Some(from) => self.number(field, from),
            None => Ok(None),
        };
        let counter = match number("version", counter)? {
            None => None,
            Some(counter) => Some(
                u64::try_from(counter)
                    .map_err(|_| format!("the version is {counter}, and versions are counted from 0"))?,
            ),
        };
        Ok(Version { counter, value: number("value", value)? })
    }
}

/// The text of a row's column, `None` for NULL.
pub(super) fn text<'a>(
    row: Option<DataRow<'a>>,
    field: &str,
    column: usize,
) -> Result<ColumnText<'a>, String> {
    let value = row.and_then(|row| row.columns().nth(column));
    value.ok_or_else(|| {
        let columns = row.map_or(0, DataRow::len);
        format!("the {field} is to be column {}, and the result has {columns}", column + 1)
    })
}

/// Parses `{1,2,3}` or `1,2,3`. NULL and the empty text are empty lists.
fn list(text: ColumnText<'_>, elements: &mut Vec<i64>) -> Result<(), String> {
    let text = text.unwrap_or_default();
    let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")).unwrap_or(text);
    if inner.is_empty() {
        return Ok(());
    }
    for element in inner.split(|byte| *byte == b',') {
        let element = integer(element.trim_ascii()).ok_or_else(|| {
            format!(
                "an element of \"{}\" is \"{}\", which is no 64-bit integer",
                text.escape_ascii(),
                element.escape_ascii()
            )
        })?;
        elements.push(element);
    }
    Ok(())
}

/// Parses a boolean in the notation of any product; NULL isn't true.
fn truth(text: ColumnText<'_>) -> Result<bool, String> {
    const WORDS: [(&str, bool); 6] =
        [("t", true), ("f", false), ("true", true), ("false", false), ("1", true), ("0", false)];
    let Some(text) = text else { return Ok(false) };
    let known = WORDS.iter().find(|(word, _)| word.as_bytes().eq_ignore_ascii_case(text));
    known
        .map(|(_, truth)| *truth)
        .ok_or_else(|| format!("the value is \"{}\", which is no boolean", text.escape_ascii()))
}

/// True if a command tag reports at least one row, as `UPDATE 1` does.
fn reports_rows(tag: &[u8]) -> bool {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    tag.rsplit(|byte| *byte == b' ').next().and_then(integer).is_some_and(|rows| rows > 0)
}

#[cold]
fn not_integer(
    annotated: &AnnotatedCommand,
    slot: Slot,
    symbols: &Symbols,
    value: Result<Value, EvalError>,
) -> String {
    let name = symbols.name(slot);
    let place = annotated.lines.first().map_or("", |line| line.place.as_str());
    match value {
        Ok(value) => format!("{place}: the variable \"{name}\" is {value}, which is no 64-bit integer"),
        Err(error) => format!("{place}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_say_how_many_rows_there_were() {
        for (tag, rows) in [
            ("UPDATE 1\0", true),
            ("INSERT 0 2\0", true),
            ("UPDATE 0\0", false),
            ("INSERT 0 0\0", false),
            ("COMMIT\0", false),
            ("\0", false),
            ("", false),
        ] {
            assert_eq!(reports_rows(tag.as_bytes()), rows, "{tag:?}");
        }
    }

    #[test]
    fn lists_are_arrays_or_words() {
        let read = |text: Option<&str>| {
            let mut elements = Vec::new();
            list(text.map(str::as_bytes), &mut elements).map(|()| elements)
        };
        for text in [None, Some(""), Some("{}")] {
            assert_eq!(read(text), Ok(Vec::new()));
        }
        for text in ["{1,-2,3}", "1,-2,3", "{1, -2, 3}", " 1, -2,3 "] {
            assert_eq!(read(Some(text)), Ok(vec![1, -2, 3]), "{text:?}");
        }
        for text in ["{1,,2}", "{1", "1,", "{{1},{2}}", "é", "{1.5}"] {
            assert!(read(Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn booleans_are_those_of_several_products() {
        for (text, truth_of) in
            [("t", true), ("TRUE", true), ("1", true), ("f", false), ("false", false), ("0", false)]
        {
            assert_eq!(truth(Some(text.as_bytes())), Ok(truth_of));
        }
        assert_eq!(truth(None), Ok(false));
        assert!(truth(Some(b"yes, maybe")).is_err());
    }
}
