//! The lines `--@` of one SQL command, prepared for the rows of its replies.
//!
//! Not here: the rows (`client/operations.rs`, `client/inside.rs`), and the syntax of the lines
//! (the script language).

use isobench_script::{Annotated, Annotation, Slot, Source, Sql, Statement};

use crate::recording::Recording;

/// A command whose reads and writes are recorded.
#[derive(Debug)]
pub(crate) struct AnnotatedCommand {
    /// The statement of the request that the lines describe, from 0. The others are BEGIN, COMMIT
    /// and the like.
    pub(crate) statement: u32,
    /// The variables whose values are noted when the request is sent, because they may have changed
    /// by the time the reply comes.
    pub(crate) noted: Vec<Slot>,
    /// The lines, in order.
    pub(crate) lines: Vec<AnnotationLine>,
    /// Number of lines that collect keys.
    pub(crate) groups: usize,
}

/// One line `--@` of a command.
#[derive(Debug)]
pub(crate) struct AnnotationLine {
    pub(crate) what: AnnotationKind,
    /// File, line and text, for messages.
    pub(crate) place: String,
}

/// The operations that a line describes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AnnotationKind {
    /// A read for each row.
    Read { table: u16, key: NumberSource, counter: Option<NumberSource>, value: Option<NumberSource> },
    /// A write for each row, or one if the tag reports a row ([`AnnotationKind::is_in_tag`]).
    Write { table: u16, key: NumberSource, counter: Option<NumberSource>, value: Option<NumberSource> },
    /// Like a write.
    Insert { table: u16, key: NumberSource, group: NumberSource },
    /// Like a write.
    Append { table: u16, key: NumberSource, element: NumberSource },
    /// A read for each row.
    ReadList { table: u16, key: NumberSource, elements: usize },
    /// One read by predicate for all rows; `place` distinguishes it from others of the same
    /// command.
    ReadGroup { table: u16, group: NumberSource, key: usize, place: usize },
    /// An assertion that each row has to fulfil; `assertion` is its index in the script.
    Holds { assertion: usize, value: usize },
}

/// The columns of a command's rows that report retries and errors inside the server. Read whether
/// the run is recorded or not.
#[derive(Debug)]
pub(crate) struct InsideColumns {
    /// The statement of the request that has these columns, from 0.
    pub(crate) statement: u32,
    /// The SQLSTATE of a caught error.
    pub(crate) swallowed: Option<ReportedColumn>,
    /// The number of retries.
    pub(crate) retries: Option<ReportedColumn>,
    /// The time that failed attempts took, in microseconds.
    pub(crate) wasted: Option<ReportedColumn>,
}

/// A column that a line names.
#[derive(Debug)]
pub(crate) struct ReportedColumn {
    /// From 0.
    pub(crate) column: usize,
    /// File, line and text, for messages.
    pub(crate) place: String,
}

/// The source of a number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NumberSource {
    /// The column, from 0.
    Column(usize),
    /// The noted variable, from 0.
    Noted(usize),
    /// A constant.
    Known(i64),
}

impl NumberSource {
    fn is_column(self) -> bool {
        matches!(self, NumberSource::Column(_))
    }
}

impl AnnotationKind {
    /// True if no number comes from a row, so that the reply's tag tells whether there was one.
    pub(crate) fn is_in_tag(self) -> bool {
        let known =
            |numbers: &[Option<NumberSource>]| !numbers.iter().flatten().any(|number| number.is_column());
        match self {
            AnnotationKind::Write { key, counter, value, .. } => known(&[Some(key), counter, value]),
            AnnotationKind::Insert { key, group, .. } => known(&[Some(key), Some(group)]),
            AnnotationKind::Append { key, element, .. } => known(&[Some(key), Some(element)]),
            AnnotationKind::Read { .. }
            | AnnotationKind::ReadList { .. }
            | AnnotationKind::ReadGroup { .. }
            | AnnotationKind::Holds { .. } => false,
        }
    }

    /// True if an empty result means that the row with this key doesn't exist.
    pub(crate) fn is_in_absence(self) -> bool {
        match self {
            AnnotationKind::Read { key, .. } | AnnotationKind::ReadList { key, .. } => !key.is_column(),
            _ => false,
        }
    }
}

impl AnnotatedCommand {
    /// Prepares the annotations of a command of this script file; `assertions` are the names of
    /// the script's assertions. `None` if it has none.
    pub(crate) fn of(
        sql: &Sql,
        file: &str,
        recording: &Recording,
        assertions: &[String],
    ) -> Option<AnnotatedCommand> {
        let mut annotated = AnnotatedCommand {
            statement: annotated_statement(sql),
            noted: Vec::new(),
            lines: Vec::new(),
            groups: 0,
        };
        for annotation in &sql.annotations {
            let table = annotation.what.table().map_or(0, |table| recording.table(table));
            if let Some(what) = annotated.line(&annotation.what, table, assertions) {
                annotated.lines.push(AnnotationLine { what, place: place(annotation, file) });
            }
        }
        (!annotated.lines.is_empty()).then_some(annotated)
    }

    /// Prepares a line, if it is one that is recorded.
    fn line(&mut self, annotated: &Annotated, table: u16, assertions: &[String]) -> Option<AnnotationKind> {
        Some(match annotated {
            Annotated::Computed | Annotated::Swallowed { .. } | Annotated::Inside { .. } => return None,
            Annotated::Read { key, version, .. } => AnnotationKind::Read {
                table,
                key: self.number(*key),
                counter: version.counter.map(|source| self.number(source)),
                value: version.value.map(|source| self.number(source)),
            },
            Annotated::Write { key, version, .. } => AnnotationKind::Write {
                table,
                key: self.number(*key),
                counter: version.counter.map(|source| self.number(source)),
                value: version.value.map(|source| self.number(source)),
            },
            Annotated::Insert { key, group, .. } => {
                AnnotationKind::Insert { table, key: self.number(*key), group: self.number(*group) }
            }
            Annotated::Append { key, element, .. } => {
                AnnotationKind::Append { table, key: self.number(*key), element: self.number(*element) }
            }
            Annotated::ReadList { key, elements, .. } => {
                AnnotationKind::ReadList { table, key: self.number(*key), elements: column(*elements) }
            }
            Annotated::ReadGroup { group, key, .. } => {
                self.groups += 1;
                let (group, place) = (self.number(*group), self.groups - 1);
                AnnotationKind::ReadGroup { table, group, key: column(*key), place }
            }
            Annotated::Holds { name, value } => {
                let assertion = assertions.iter().position(|known| known == name).unwrap_or(usize::MAX);
                AnnotationKind::Holds { assertion, value: column(*value) }
            }
        })
    }

    fn number(&mut self, source: Source) -> NumberSource {
        match source {
            Source::Column(number) => NumberSource::Column(column(number)),
            Source::Number(number) => NumberSource::Known(number),
            Source::Variable(slot) => {
                let known = self.noted.iter().position(|noted| *noted == slot);
                NumberSource::Noted(known.unwrap_or_else(|| {
                    self.noted.push(slot);
                    self.noted.len() - 1
                }))
            }
        }
    }
}

impl InsideColumns {
    /// Returns the columns that a command's lines `--@ swallowed` and `--@ inside` name, if it has
    /// such lines.
    pub(crate) fn of(sql: &Sql, file: &str) -> Option<InsideColumns> {
        let mut inside_columns = InsideColumns {
            statement: annotated_statement(sql),
            swallowed: None,
            retries: None,
            wasted: None,
        };
        for annotation in &sql.annotations {
            let at = |number| Some(ReportedColumn { column: column(number), place: place(annotation, file) });
            match annotation.what {
                Annotated::Swallowed { sqlstate } => inside_columns.swallowed = at(sqlstate),
                Annotated::Inside { retries, wasted } => {
                    inside_columns.retries = at(retries);
                    inside_columns.wasted = wasted.and_then(at);
                }
                _ => {}
            }
        }
        (inside_columns.swallowed.is_some() || inside_columns.retries.is_some()).then_some(inside_columns)
    }
}

/// Returns the index of the statement whose rows the lines describe; the others are BEGIN, COMMIT
/// and the like.
fn annotated_statement(sql: &Sql) -> u32 {
    let place = sql.statements.iter().position(|statement| *statement == Statement::Other);
    place.and_then(|place| u32::try_from(place).ok()).unwrap_or(0)
}

/// The place of a line, for messages.
fn place(annotation: &Annotation, file: &str) -> String {
    let Annotation { line, text, .. } = annotation;
    format!("{file}:{line}: {text}")
}

/// Converts a column's number to its index.
fn column(number: u16) -> usize {
    usize::from(number).saturating_sub(1)
}
