//! Parses the lines `--@ …` before an SQL command. To add a kind: a variant of `Annotated`, and a
//! row here.

use super::place::Place;
use crate::annotation::{Annotated, Annotation, Source, VersionSource};
use crate::error::{ParseError, ParseProblem};
use crate::sql::Statement;
use crate::symbols::{Symbols, is_valid_variable_name};

/// The expectation common to all lines, for errors.
const EXPECTED: &str = "expected read, write, insert, append, read-list, read-group, holds, computed, swallowed or inside after --@";

/// The start of such a line.
pub(super) const MARK: &str = "--@";

/// A kind of line.
struct Kind {
    name: &'static str,
    /// True if a table or another name follows.
    named: bool,
    /// The expected fields, for errors.
    expected: &'static str,
    fields: &'static [&'static str],
    build: fn(&Reader<'_>, String, Fields<'_>) -> Result<Annotated, ParseError>,
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "read",
        named: true,
        expected: "expected read TABLE key=SOURCE with version=SOURCE, value=SOURCE or both",
        fields: &["key", "version", "value"],
        build: |reader, table, [key, counter, value]| {
            let key = reader.source("key", key)?;
            Ok(Annotated::Read { table, key, version: reader.version(counter, value)? })
        },
    },
    Kind {
        name: "write",
        named: true,
        expected: "expected write TABLE key=SOURCE with version=SOURCE, value=SOURCE or both",
        fields: &["key", "version", "value"],
        build: |reader, table, [key, counter, value]| {
            let key = reader.source("key", key)?;
            Ok(Annotated::Write { table, key, version: reader.version(counter, value)? })
        },
    },
    Kind {
        name: "insert",
        named: true,
        expected: "expected insert TABLE key=SOURCE group=SOURCE",
        fields: &["key", "group"],
        build: |reader, table, [key, group, _]| {
            let (key, group) = (reader.source("key", key)?, reader.source("group", group)?);
            Ok(Annotated::Insert { table, key, group })
        },
    },
    Kind {
        name: "append",
        named: true,
        expected: "expected append TABLE key=SOURCE element=SOURCE",
        fields: &["key", "element"],
        build: |reader, table, [key, element, _]| {
            let (key, element) = (reader.source("key", key)?, reader.source("element", element)?);
            Ok(Annotated::Append { table, key, element })
        },
    },
    Kind {
        name: "read-list",
        named: true,
        expected: "expected read-list TABLE key=SOURCE elements=$N",
        fields: &["key", "elements"],
        build: |reader, table, [key, elements, _]| {
            let (key, elements) = (reader.source("key", key)?, reader.column("elements", elements)?);
            Ok(Annotated::ReadList { table, key, elements })
        },
    },
    Kind {
        name: "read-group",
        named: true,
        expected: "expected read-group TABLE group=SOURCE key=$N, where the group is a variable or an integer",
        fields: &["group", "key"],
        build: |reader, table, [group, key, _]| {
            let (group, key) = (reader.source("group", group)?, reader.column("key", key)?);
            if let Source::Column(column) = group {
                // An empty result would not tell which group was read.
                return Err(reader.error(format!("group=${column}"), None));
            }
            Ok(Annotated::ReadGroup { table, group, key })
        },
    },
    Kind {
        name: "holds",
        named: true,
        expected: "expected holds NAME value=$N",
        fields: &["value"],
        build: |reader, name, [value, _, _]| {
            Ok(Annotated::Holds { name, value: reader.column("value", value)? })
        },
    },
    Kind {
        name: "computed",
        named: false,
        expected: "expected computed with nothing after it",
        fields: &[],
        build: |_, _, _| Ok(Annotated::Computed),
    },
    Kind {
        name: "swallowed",
        named: false,
        expected: "expected swallowed sqlstate=$N",
        fields: &["sqlstate"],
        build: |reader, _, [sqlstate, _, _]| {
            Ok(Annotated::Swallowed { sqlstate: reader.column("sqlstate", sqlstate)? })
        },
    },
    Kind {
        name: "inside",
        named: false,
        expected: "expected inside retries=$N, or inside retries=$N wasted=$M",
        fields: &["retries", "wasted"],
        build: |reader, _, [retries, wasted, _]| {
            let retries = reader.column("retries", retries)?;
            let wasted = wasted.map(|found| reader.column("wasted", Some(found))).transpose()?;
            Ok(Annotated::Inside { retries, wasted })
        },
    },
];

/// The sources of a kind's fields, in the order of [`Kind::fields`].
type Fields<'a> = [Option<Found>; 3];

/// A field's source.
#[derive(Copy, Clone)]
struct Found {
    source: Source,
    /// The position in the line, for errors.
    at: usize,
}

/// A line and its position.
struct Reader<'a> {
    place: Place<'a>,
    text: &'a str,
    expected: &'static str,
}

/// Parses one line; `text` starts with the mark.
pub(super) fn parse_annotation(
    text: &str,
    place: Place<'_>,
    symbols: &mut Symbols,
) -> Result<Annotation, ParseError> {
    let mut reader = Reader { place, text, expected: EXPECTED };
    let mut words = words(text);
    let kind = words.next().ok_or_else(|| reader.error("the line is empty".to_owned(), None))?;
    let kind = KINDS
        .iter()
        .find(|known| known.name == kind.0)
        .ok_or_else(|| reader.error(kind.0.to_owned(), Some(kind.1)))?;
    reader.expected = kind.expected;
    let name = if kind.named {
        let name = words.next().filter(|(word, _)| !word.contains('='));
        name.ok_or_else(|| reader.error("the name is missing".to_owned(), None))?.0
    } else {
        ""
    };
    let mut fields: Fields<'_> = [None; 3];
    for (word, at) in words {
        let Some((field, source)) = word.split_once('=') else {
            return Err(reader.error(word.to_owned(), Some(at)));
        };
        let Some(index) = kind.fields.iter().position(|known| *known == field) else {
            return Err(reader.error(format!("unknown field \"{field}\""), Some(at)));
        };
        if fields[index].is_some() {
            return Err(reader.error(format!("\"{field}\" appears twice"), Some(at)));
        }
        let at = at + field.len() + 1;
        fields[index] = Some(Found { source: reader.read_source(source, at, symbols)?, at });
    }
    let what = (kind.build)(&reader, name.to_owned(), fields)?;
    Ok(Annotation { line: place.line, text: text.to_owned(), what })
}

/// The words after the mark with their offsets.
fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let offset = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    text[MARK.len()..].split_ascii_whitespace().map(move |word| (word, offset(word)))
}

impl Reader<'_> {
    /// An error; `at` is the offset of the caret within the line.
    fn error(&self, detail: String, at: Option<usize>) -> ParseError {
        ParseError {
            column: at.map(|offset| u32::try_from(offset + 1).unwrap_or(u32::MAX)),
            source: self.text.to_owned(),
            ..misplaced(self.place, self.expected, Some(detail))
        }
    }

    fn read_source(&self, text: &str, at: usize, symbols: &mut Symbols) -> Result<Source, ParseError> {
        let source = if let Some(column) = text.strip_prefix('$') {
            column.parse().ok().filter(|column| *column > 0).map(Source::Column)
        } else if let Some(name) = text.strip_prefix(':') {
            is_valid_variable_name(name).then(|| Source::Variable(symbols.intern(name)))
        } else {
            text.parse().ok().map(Source::Number)
        };
        source.ok_or_else(|| ParseError {
            column: Some(u32::try_from(at + 1).unwrap_or(u32::MAX)),
            source: self.text.to_owned(),
            ..misplaced(
                self.place,
                "a source is $N (a column, from 1), :variable or an integer",
                Some(text.to_owned()),
            )
        })
    }

    fn source(&self, field: &str, found: Option<Found>) -> Result<Source, ParseError> {
        let found = found.ok_or_else(|| self.error(format!("\"{field}\" is missing"), None))?;
        Ok(found.source)
    }

    fn column(&self, field: &str, found: Option<Found>) -> Result<u16, ParseError> {
        match (self.source(field, found)?, found) {
            (Source::Column(column), _) => Ok(column),
            (_, found) => {
                let detail = format!("\"{field}\" isn't a column");
                Err(self.error(detail, found.map(|found| found.at)))
            }
        }
    }

    fn version(&self, counter: Option<Found>, value: Option<Found>) -> Result<VersionSource, ParseError> {
        if counter.is_none() && value.is_none() {
            return Err(self.error("both are missing".to_owned(), None));
        }
        let source = |found: Option<Found>| found.map(|found| found.source);
        Ok(VersionSource { counter: source(counter), value: source(value) })
    }
}

/// The error for a line in the wrong place.
pub(super) fn misplaced(place: Place<'_>, message: &'static str, detail: Option<String>) -> ParseError {
    place.error(ParseProblem::Syntax { message, detail: detail.map(String::into_boxed_str), command: None })
}

/// True if exactly one statement of the command can return rows, so that it is clear which rows the
/// lines describe.
pub(super) fn is_annotatable(statements: &[Statement]) -> bool {
    statements.iter().filter(|statement| **statement == Statement::Other).count() == 1
        && !statements.contains(&Statement::Copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_every_kind() {
        let place = Place { file: "x", line: 1 };
        let error = parse_annotation("--@ x", place, &mut Symbols::new()).unwrap_err().to_string();
        for kind in KINDS {
            assert!(error.contains(kind.name), "{error}");
            assert!(kind.expected.starts_with(&format!("expected {} ", kind.name)));
            assert!(kind.fields.iter().all(|field| kind.expected.contains(&format!("{field}="))));
        }
    }
}
