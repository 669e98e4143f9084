//! Prints the text format.

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use super::super::{History, Initial, Key, Operation, Provenance, Transaction, TransactionOutcome, Version};
use super::{DEFERRABLE, OBSERVED, READ_ONLY, is_bare};

/// Writes a history as text.
///
/// # Errors
/// If the output can't be written.
pub fn write(history: &History, mut output: impl Write) -> io::Result<()> {
    let names = Names::of(history);
    if let Some(provenance) = history.provenance() {
        observed(history, provenance, &mut output)?;
    }
    if history.dropped() > 0 {
        writeln!(output, "dropped {}", history.dropped())?;
    }
    for (key, initial) in history.initial() {
        writeln!(output, "initial {}", DisplayedInitial { names: &names, key: *key, initial })?;
    }
    for (index, transaction) in history.transactions().iter().enumerate() {
        names.head(*transaction, &mut output)?;
        for (place, record) in history.range(index).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let operation = history.operation(record);
            write!(output, "{comma} {}", DisplayedOperation { names: &names, operation })?;
            if let Some(statement) = history.records[record].statement() {
                write!(output, " @{statement}")?;
            }
        }
        writeln!(output)?;
    }
    output.flush()
}

/// Writes what an observed history knows besides its transactions.
fn observed(history: &History, provenance: &Provenance, output: &mut impl Write) -> io::Result<()> {
    let Provenance { statements, keys, .. } = provenance;
    write!(output, "observed")?;
    for (name, number) in OBSERVED.into_iter().zip(provenance.numbers()) {
        write!(output, " {name}={number}")?;
    }
    writeln!(output)?;
    for statement in statements {
        writeln!(output, "statement {}", in_quotes(statement))?;
    }
    for (table, texts) in keys {
        let name = history.tables().get(usize::from(*table)).map_or("", String::as_str);
        for text in texts {
            writeln!(output, "key {} {}", quoted(name), in_quotes(text))?;
        }
    }
    Ok(())
}

/// A history as text.
pub fn print(history: &History) -> String {
    let mut text = Vec::new();
    // Writing to memory can't fail, and only text was written.
    let _ = write(history, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The names of the tables in a text.
struct Names {
    /// The name, in quotes if necessary, and whether only row 0 of the table is used, so that the
    /// key can be omitted.
    tables: Vec<(String, bool)>,
    /// True if any transaction has instants.
    instants: bool,
}

impl Names {
    fn of(history: &History) -> Names {
        let mut tables: Vec<(String, bool)> =
            history.tables().iter().map(|name| (quoted(name), true)).collect();
        for record in &history.records {
            if record.id != 0
                && let Some(table) = tables.get_mut(usize::from(record.table))
            {
                table.1 = false;
            }
        }
        for key in history.initial().keys().filter(|key| key.id != 0) {
            if let Some(table) = tables.get_mut(usize::from(key.table)) {
                table.1 = false;
            }
        }
        let instants = history.transactions().iter().any(|transaction| transaction.end != 0);
        Names { tables, instants }
    }

    fn head(&self, transaction: Transaction, output: &mut impl Write) -> io::Result<()> {
        let Transaction { id, client, begin, end, outcome, mode } = transaction;
        write!(output, "T{id} client={client}")?;
        match end {
            u64::MAX => write!(output, " {begin}..")?,
            _ if self.instants || begin != 0 => write!(output, " {begin}..{end}")?,
            _ => {}
        }
        if outcome != TransactionOutcome::Committed {
            write!(output, " {}", outcome.name())?;
        }
        if let Some(mode) = mode {
            write!(output, " {}", mode.level.short())?;
            for (_, word) in
                [(mode.read_only, READ_ONLY), (mode.deferrable, DEFERRABLE)].iter().filter(|(is, _)| *is)
            {
                write!(output, " {word}")?;
            }
        }
        write!(output, ":")
    }

    /// A row, in two words or one.
    fn row(&self, Key { table, id }: Key, f: &mut Formatter<'_>) -> fmt::Result {
        match self.tables.get(usize::from(table)) {
            Some((name, true)) => f.write_str(name),
            Some((name, false)) => write!(f, "{name} {id}"),
            // There is no table of this number, which is an error of the caller.
            None => write!(f, "\"table {table}\" {id}"),
        }
    }
}

fn quoted(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { in_quotes(name) }
}

fn in_quotes(name: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in name.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() => quoted.extend(letter.escape_unicode()),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// An operation as written in the text.
struct DisplayedOperation<'a> {
    names: &'a Names,
    operation: Operation<'a>,
}

impl Display for DisplayedOperation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut kind = |letter: &str, key| {
            write!(f, "{letter} ")?;
            self.names.row(key, f)
        };
        match self.operation {
            Operation::Read { key, version } => {
                kind("r", key)?;
                write!(f, " = {}", DisplayedVersion(version))
            }
            Operation::Write { key, version } => {
                kind("w", key)?;
                write!(f, " = {}", DisplayedVersion(version))
            }
            Operation::Insert { key, group } => {
                kind("i", key)?;
                write!(f, " in {group}")
            }
            Operation::Append { key, element } => {
                kind("a", key)?;
                write!(f, " += {element}")
            }
            Operation::ReadList { key, elements } => {
                kind("l", key)?;
                list(elements, f)
            }
            Operation::ReadGroup { table, group, rows } => {
                kind("g", Key { table, id: group })?;
                list(rows, f)
            }
            Operation::Missed { key, after, before } => {
                kind("m", key)?;
                for (word, counter) in [("after", after), ("before", before)] {
                    if let Some(counter) = counter {
                        write!(f, " {word} v{counter}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// The initial contents of a row as written in the text.
struct DisplayedInitial<'a> {
    names: &'a Names,
    key: Key,
    initial: &'a Initial,
}

impl Display for DisplayedInitial<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.names.row(self.key, f)?;
        match self.initial {
            Initial::Version(version) => write!(f, " = {}", DisplayedVersion(*version)),
            Initial::List(elements) => list(elements, f),
        }
    }
}

fn list(numbers: &[i64], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(" = [")?;
    for (place, number) in numbers.iter().enumerate() {
        let blank = if place == 0 { "" } else { " " };
        write!(f, "{blank}{number}")?;
    }
    f.write_str("]")
}

struct DisplayedVersion(Version);

impl Display for DisplayedVersion {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.0.counter, self.0.value) {
            (Some(counter), Some(value)) => write!(f, "v{counter}/{value}"),
            (Some(counter), None) => write!(f, "v{counter}"),
            (None, Some(value)) => write!(f, "{value}"),
            (None, None) => f.write_str("init"),
        }
    }
}
