//! The rows that one client's statements show, collected as the replies arrive, one transaction of
//! the server after the other.
//!
//! Not here: the end of an attempt (`ending.rs`), and what the rows prove
//! (`isobench_isolation::observed`).

mod packed;

use std::collections::VecDeque;

use isobench_isolation::history::Key;
use isobench_isolation::observed::{
    KeyForm, NULL, ObservedDraft, ObservedOperation, Replaced, TakenSnapshot, ValueForm, array_elements,
};
use isobench_pgwire::backend::DataRow;
use isobench_script::{
    ObservedRows, ObservedSearch, Referred, RowLimit, RowRole, SearchOperand, SearchValue, SearchWhen,
    TextPart, Variables,
};
use smallvec::SmallVec;

use super::integer::integer;
use crate::recording::TextNumbers;
use crate::seen::{Forms, NotedValue, SeenStatement};
use packed::Packed;

/// The values of one row that are examined.
type Fields<'a> = SmallVec<[Option<&'a [u8]>; 16]>;

/// The rows shown to a transaction so far.
#[derive(Debug, Default)]
pub(super) struct ShownRows {
    draft: ObservedDraft,
    /// The writes of the statement that is being answered. All parts of a statement read what was
    /// there before it, so they come after its reads (PostgreSQL manual, "Data-Modifying Statements in
    /// WITH").
    writes: ObservedDraft,
    /// Values of searches whose statements are unanswered, in the order of the requests. `None`: a
    /// value that can't be compared.
    noted: VecDeque<Option<i64>>,
    /// The same of arrays.
    lists: VecDeque<Option<Vec<i64>>>,
    /// Statements that were sent and aren't answered yet.
    pending: u32,
    /// A command was sent since the transaction started.
    sent: bool,
    /// The transaction's snapshot, if it was asked for.
    snapshot: Option<Snapshot>,
    /// For each entry of the statement that is being answered, the keys found.
    found: Vec<Vec<i64>>,
    /// For each entry, the values of the columns of its rows, one row after the other.
    kept: Vec<Vec<i64>>,
    /// The number of rows in the result of the statement that is being answered.
    rows: u64,
    /// For each search of that statement, true if a column of its result says that it found nothing.
    denied: Vec<bool>,
    /// Rows were written since the last mark of an instant.
    wrote: bool,
    /// The rows shown by the statement that is being answered, for annotations to agree with.
    shown: Vec<ShownRow>,
    /// Whether `shown` is kept, because the statement is annotated.
    compared: bool,
    /// Something couldn't be understood, or was undone in part.
    incomplete: Option<String>,
    packed: Packed,
    columns: Vec<i64>,
    text: Vec<u8>,
    part: Vec<u8>,
}

/// A transaction's snapshot, as its answer has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    own: Option<u32>,
    next: u32,
    active: Vec<i64>,
}

impl Snapshot {
    /// Reads an answer ([`crate::Job::asking_snapshot`]); `None` if not all statements of the
    /// transaction read from the snapshot, or it can't be read.
    pub(super) fn of(row: DataRow<'_>) -> Option<Snapshot> {
        let mut columns = row.columns();
        let (own, snapshot, all) = (columns.next()?, columns.next()??, columns.next()??);
        truth(all).filter(|all| *all)?;
        let own = match own {
            Some(own) => Some(low(own)?),
            None => None,
        };
        let mut parts = snapshot.split(|byte| *byte == b':');
        let (_, next, active) = (parts.next()?, low(parts.next()?)?, parts.next()?);
        let active = active.split(|byte| *byte == b',').filter(|number| !number.is_empty());
        let active = active.map(|number| low(number).map(i64::from)).collect::<Option<Vec<i64>>>()?;
        Some(Snapshot { own, next, active })
    }
}

/// The lower 32 bits of a transaction's number, which are what rows have.
fn low(text: &[u8]) -> Option<u32> {
    let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    u32::try_from(number & u64::from(u32::MAX)).ok()
}

/// A row that a statement showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownRow {
    pub(super) key: Key,
    pub(super) written: bool,
}

impl ShownRows {
    /// Starts a new transaction.
    pub(super) fn reset(&mut self) {
        self.draft.clear();
        self.writes.clear();
        self.wrote = false;
        self.incomplete = None;
        self.shown.clear();
        self.sent = false;
        self.snapshot = None;
    }

    /// Starts a new attempt, with no request unanswered.
    pub(super) fn start(&mut self) {
        self.reset();
        self.noted.clear();
        self.lists.clear();
        self.pending = 0;
        self.found.iter_mut().chain(&mut self.kept).for_each(Vec::clear);
        self.rows = 0;
        self.denied.clear();
    }

    /// Called before a command is sent; `simple` if variables are SQL text in it.
    pub(super) fn send(
        &mut self,
        seen: &[SeenStatement],
        simple: bool,
        variables: &Variables,
        numbers: &mut TextNumbers<'_>,
    ) {
        for statement in seen {
            for noted in &statement.noted {
                let value = match noted {
                    NotedValue::Operand(value, form) => {
                        self.operand(value, *form, simple, variables, numbers)
                    }
                    NotedValue::Key(values, form) => self.key_of(values, *form, simple, variables, numbers),
                    NotedValue::Elements(array, form) => {
                        let list = self.elements(array, *form, simple, variables, numbers);
                        self.lists.push_back(list);
                        continue;
                    }
                };
                self.noted.push_back(value);
            }
        }
        self.pending += u32::try_from(seen.len()).unwrap_or(u32::MAX);
        self.sent = true;
    }

    /// Notes the snapshot that the transaction read from.
    pub(super) fn take_snapshot(&mut self, snapshot: Option<Snapshot>) {
        self.snapshot = snapshot;
    }

    /// Ends a transaction of a script whose transactions are asked for their snapshots, unless nothing
    /// was sent since the last one.
    pub(super) fn end_with_snapshot(&mut self, script: usize) {
        if !self.sent {
            return;
        }
        self.draft.append(&mut self.writes);
        let taken = self.snapshot.take();
        let snapshot = taken.as_ref().map(|taken| TakenSnapshot {
            own: taken.own,
            next: taken.next,
            active: &taken.active,
        });
        let script = u16::try_from(script).unwrap_or(u16::MAX);
        self.draft.push(ObservedOperation::Script { script, snapshot }, 0);
    }

    fn operand(
        &mut self,
        value: &SearchValue,
        form: ValueForm,
        simple: bool,
        variables: &Variables,
        numbers: &mut TextNumbers<'_>,
    ) -> Option<i64> {
        self.text.clear();
        if let SearchValue::Joined { parts, literal } = value {
            join(parts, *literal, simple, variables, &mut self.text)?;
            return value_of(&self.text, form, numbers);
        }
        if let SearchValue::Moved(value, by) = value {
            let value = self.operand(value, form, simple, variables, numbers)?;
            // Infinities stay where they are.
            return if matches!(value, i64::MAX | NULL) || value == NULL + 1 {
                Some(value)
            } else {
                value.checked_add(*by)
            };
        }
        if let SearchValue::Scaled(value, scale) = value {
            let number = self.operand(value, form, simple, variables, numbers)?;
            let digits = self.text.iter().rev().position(|byte| *byte == b'.').unwrap_or(0);
            return (number == NULL || digits <= usize::from(*scale)).then_some(number);
        }
        if matches!(value, SearchValue::Parameter(_)) {
            return None;
        }
        if !write_value(value, variables, &mut self.text) {
            return Some(NULL);
        }
        // Numbers may stand without quotes.
        let bare = match form {
            ValueForm::Integer | ValueForm::Boolean => true,
            ValueForm::Decimal => !self.text.starts_with(b"'"),
            _ => false,
        };
        if simple && !bare && matches!(value, SearchValue::Variable(_)) {
            unquote(&mut self.text)?;
        }
        value_of(&self.text, form, numbers)
    }

    /// The elements of an array. `None` if they aren't plain.
    fn elements(
        &mut self,
        array: &SearchValue,
        form: ValueForm,
        simple: bool,
        variables: &Variables,
        numbers: &mut TextNumbers<'_>,
    ) -> Option<Vec<i64>> {
        self.text.clear();
        let written =
            !matches!(array, SearchValue::Parameter(_)) && write_value(array, variables, &mut self.text);
        written.then_some(())?;
        if simple && matches!(array, SearchValue::Variable(_)) {
            unquote(&mut self.text)?;
        }
        let element = |text: Option<&str>| match text {
            None => Some(NULL),
            Some(text) => value_of(text.as_bytes(), form, numbers),
        };
        array_elements(std::str::from_utf8(&self.text).ok()?)?.into_iter().map(element).collect()
    }

    fn key_of(
        &mut self,
        values: &[SearchValue],
        form: KeyForm,
        simple: bool,
        variables: &Variables,
        numbers: &mut TextNumbers<'_>,
    ) -> Option<i64> {
        self.text.clear();
        for (place, value) in values.iter().enumerate() {
            self.part.clear();
            if let SearchValue::Joined { parts, literal } = value {
                join(parts, *literal, simple, variables, &mut self.part)?;
            } else if !write_value(value, variables, &mut self.part) {
                return None;
            }
            if matches!(value, SearchValue::Uuid(_)) {
                if simple {
                    unquote(&mut self.part)?;
                }
                let uuid =
                    std::str::from_utf8(&self.part).ok().and_then(|text| ValueForm::Uuid.canonical(text))?;
                let uuid = uuid.into_owned();
                self.part.clear();
                self.part.extend_from_slice(uuid.as_bytes());
            }
            if form == KeyForm::Numbered && matches!(value, SearchValue::Variable(_)) {
                if simple && integer(&self.part).is_none() {
                    unquote(&mut self.part)?;
                } else if is_other_integer(&self.part) {
                    return None;
                }
            }
            write_part(&self.part, (place, values.len()), &mut self.text);
        }
        match form {
            KeyForm::Integer => integer(&self.text),
            KeyForm::Numbered => Some(numbers.number(&self.text)),
        }
    }

    /// Adds a row of a statement; `compared` if annotations are to agree with it.
    pub(super) fn row(
        &mut self,
        statement: &SeenStatement,
        row: DataRow<'_>,
        compared: bool,
        numbers: &mut TextNumbers<'_>,
    ) {
        self.compared = compared;
        self.rows += 1;
        let appended = usize::from(statement.what.appended);
        let Some(own) = row.len().checked_sub(appended) else {
            return self.fail("a row has fewer columns than were appended");
        };
        self.look_at_answers(statement, row);
        let fields: Fields<'_> = row.columns().skip(own).collect();
        for (entry, (rows, forms)) in statement.what.rows.iter().zip(&statement.forms).enumerate() {
            let Some(packed) = rows.packed else {
                self.take(statement, entry, (rows, forms), &fields, numbers);
                continue;
            };
            let Some(array) = fields.get(usize::from(packed)).copied().flatten() else { continue };
            let mut records = std::mem::take(&mut self.packed);
            let understood = records.each(array, |fields| {
                self.take(statement, entry, (rows, forms), fields, numbers);
            });
            self.packed = records;
            if !understood {
                self.fail("an array of rows can't be read");
            }
        }
    }

    /// Notes which searches found nothing, as columns of the author's result say.
    fn look_at_answers(&mut self, statement: &SeenStatement, row: DataRow<'_>) {
        for (place, search) in statement.what.searches.iter().enumerate() {
            let SearchWhen::Column(column, wanted) = search.when else { continue };
            let truth = row.columns().nth(usize::from(column)).flatten().and_then(truth);
            if truth == Some(wanted) {
                self.denied.resize(self.denied.len().max(place + 1), false);
                self.denied[place] = true;
            }
        }
    }

    /// True if the result shows that a search of the statement found all rows that match.
    /// `reached`: its LIMIT was.
    fn is_known(&self, place: usize, when: SearchWhen, reached: bool) -> bool {
        match when {
            SearchWhen::Always => true,
            SearchWhen::Empty => self.rows == 0,
            SearchWhen::Nonempty => self.rows > 0,
            SearchWhen::Unlimited => !reached,
            SearchWhen::Limited => reached,
            SearchWhen::Found(entry) => self.found.get(entry).is_some_and(|keys| !keys.is_empty()),
            SearchWhen::Column(..) => self.denied.get(place).copied().unwrap_or(false),
        }
    }

    /// True if a result has as many rows as its LIMIT lets through; `None` if it skips rows, is to have
    /// none, or isn't known.
    fn reached(&mut self, limit: &RowLimit) -> Option<bool> {
        let rows = limit.rows.as_ref().map(|_| self.noted.pop_front().flatten());
        let offset = limit.offset.as_ref().map(|_| self.noted.pop_front().flatten());
        let whole = matches!(offset, None | Some(Some(0 | NULL)));
        let count = match limit.of {
            None => self.rows,
            Some(entry) => self.found.get(entry).map_or(0, |found| found.len() as u64),
        };
        let reached = match rows {
            None | Some(Some(NULL)) => Some(false),
            Some(Some(most)) if most > 0 => Some(count >= most.unsigned_abs()),
            Some(_) => None,
        };
        reached.filter(|_| whole)
    }

    /// Adds one row that is shown.
    fn take(
        &mut self,
        statement: &SeenStatement,
        entry: usize,
        (rows, forms): (&ObservedRows, &Forms),
        fields: &[Option<&[u8]>],
        numbers: &mut TextNumbers<'_>,
    ) {
        let field = |place: u16| fields.get(usize::from(place)).copied().flatten();
        let Some(id) = self.key(rows, forms, &field, numbers) else { return };
        let key = Key { table: rows.table, id };
        let Some(writer) = field(rows.version).and_then(transaction) else {
            return self.fail("the number of a row's writer can't be read");
        };
        self.columns.clear();
        for (place, form) in rows.columns.iter().zip(&forms.columns) {
            let value = match field(*place) {
                None => Some(NULL),
                Some(text) => value_of(text, *form, numbers),
            };
            let Some(value) = value else { return self.fail("a column's value can't be read") };
            self.columns.push(value);
        }
        let before = match rows.replaced {
            None => Replaced::Unknown,
            Some(place) => field(place).and_then(transaction).map_or(Replaced::Nothing, Replaced::By),
        };
        let columns = self.columns.as_slice();
        let inserted = ObservedOperation::Write { key, writer, replaced: Replaced::Nothing, columns };
        let updated = ObservedOperation::Write { key, writer, replaced: before, columns };
        let deleted = ObservedOperation::Delete { key, deleted: writer };
        let operation = match rows.role {
            RowRole::Read => ObservedOperation::Read { key, writer, columns },
            RowRole::Inserted => inserted,
            RowRole::Deleted => deleted,
            RowRole::Upserted(place) if field(place) == Some(b"0") => inserted,
            RowRole::Updated | RowRole::Upserted(_) => updated,
            RowRole::Merged(place) => match field(place) {
                Some(b"INSERT") => inserted,
                Some(b"UPDATE") => updated,
                Some(b"DELETE") => deleted,
                _ => return self.fail("the action of MERGE can't be read"),
            },
        };
        let written = !matches!(rows.role, RowRole::Read);
        let draft = if written { &mut self.writes } else { &mut self.draft };
        draft.push(operation, statement.number);
        self.wrote |= written;
        if self.compared {
            self.shown.push(ShownRow { key, written });
        }
        if statement.searched[entry] {
            if self.found.len() <= entry {
                self.found.resize(entry + 1, Vec::new());
            }
            self.found[entry].push(id);
        }
        if statement.kept[entry] {
            if self.kept.len() <= entry {
                self.kept.resize(entry + 1, Vec::new());
            }
            self.kept[entry].extend_from_slice(&self.columns);
        }
    }

    /// The key; `None` if a part of it is NULL.
    fn key<'f>(
        &mut self,
        rows: &ObservedRows,
        forms: &Forms,
        field: &impl Fn(u16) -> Option<&'f [u8]>,
        numbers: &mut TextNumbers<'_>,
    ) -> Option<i64> {
        if let (KeyForm::Integer, [place]) = (forms.key, rows.key.as_slice()) {
            let id = integer(field(*place)?);
            if id.is_none() {
                self.fail("a key can't be read");
            }
            return id;
        }
        self.text.clear();
        for (place, part) in rows.key.iter().enumerate() {
            write_part(field(*part)?, (place, rows.key.len()), &mut self.text);
        }
        Some(numbers.number(&self.text))
    }

    /// Ends a statement that was answered.
    pub(super) fn answered(&mut self, statement: &SeenStatement) {
        self.pending = self.pending.saturating_sub(1);
        self.draft.append(&mut self.writes);
        let reached = match &statement.what.limit {
            None => Some(false),
            Some(limit) => self.reached(limit),
        };
        for (place, search) in statement.what.searches.iter().enumerate() {
            let key = search.key.as_ref().map(|_| self.noted.pop_front().flatten());
            self.columns.clear();
            let mut comparable = key != Some(None);
            for operand in &search.operands {
                comparable &= self.add_operand(statement, search.rows, operand);
            }
            let found = search.rows.and_then(|rows| self.found.get(rows)).map_or(&[][..], Vec::as_slice);
            let known = reached.is_some_and(|reached| self.is_known(place, search.when, reached));
            if !comparable || reached.is_none() {
                self.draft.push(ObservedOperation::Unsearched { table: search.table }, statement.number);
            }
            if let Some(referred) = search.referred {
                if comparable && known {
                    self.search_referred(statement, search, referred);
                }
                continue;
            }
            if comparable && known {
                let operation = ObservedOperation::Search {
                    table: search.table,
                    predicate: search.predicate,
                    key: key.flatten(),
                    operands: &self.columns,
                    found,
                };
                self.draft.push(operation, statement.number);
            }
        }
        self.found.iter_mut().chain(&mut self.kept).for_each(Vec::clear);
        self.denied.clear();
        self.rows = 0;
        for table in &statement.what.unseen {
            self.draft.push(ObservedOperation::Unseen { table: *table }, statement.number);
        }
    }

    /// Adds the searches for rows whose keys other rows show; `columns` has the operands.
    fn search_referred(&mut self, statement: &SeenStatement, search: &ObservedSearch, referred: Referred) {
        let Referred { entry, column, each } = referred;
        let count = statement.forms.get(entry).map_or(0, |forms| forms.columns.len()).max(1);
        let values = self.kept.get(entry).map_or(&[][..], Vec::as_slice);
        let values = values.iter().skip(usize::from(column)).step_by(count);
        let mut keys: Vec<i64> = values.copied().filter(|value| *value != NULL).collect();
        keys.sort_unstable();
        keys.dedup();
        let operation = |key, found| ObservedOperation::Search {
            table: search.table,
            predicate: search.predicate,
            key,
            operands: &self.columns,
            found,
        };
        if each {
            for key in keys {
                self.draft.push(operation(Some(key), &[]), statement.number);
            }
        } else {
            self.draft.push(operation(None, &keys), statement.number);
        }
    }

    /// Adds an operand of a search for the rows of an entry to `columns`. Returns false if it can't be
    /// compared.
    fn add_operand(
        &mut self,
        statement: &SeenStatement,
        rows: Option<usize>,
        operand: &SearchOperand,
    ) -> bool {
        let kept = |entry: usize| {
            let count = statement.forms.get(entry).map_or(0, |forms| forms.columns.len());
            (self.kept.get(entry).map_or(&[][..], Vec::as_slice), count.max(1))
        };
        match &operand.value {
            SearchValue::Last => {
                let (values, count) = kept(rows.unwrap_or(usize::MAX));
                let last = values.chunks_exact(count).last();
                let value = last.and_then(|last| last.get(usize::from(operand.column))).copied();
                self.columns.extend(value);
                value.is_some()
            }
            SearchValue::Shown { entry, column } => {
                let (values, count) = kept(*entry);
                let of_column = values.iter().skip(usize::from(*column)).step_by(count);
                let before = self.columns.len();
                self.columns.extend(of_column.filter(|value| **value != NULL));
                self.columns[before..].sort_unstable();
                let mut last = None;
                let mut place = 0;
                self.columns.retain(|value| {
                    place += 1;
                    place <= before || last.replace(*value) != Some(*value)
                });
                true
            }
            SearchValue::Elements(_) => match self.lists.pop_front().flatten() {
                Some(values) => {
                    self.columns.extend(values);
                    true
                }
                None => false,
            },
            _ => match self.noted.pop_front().flatten() {
                Some(value) => {
                    self.columns.push(value);
                    true
                }
                None => false,
            },
        }
    }

    /// Marks the instant: everything so far has been answered, and COMMIT not been sent.
    pub(super) fn mark(&mut self, at: impl FnOnce() -> u64) {
        if std::mem::take(&mut self.wrote) {
            let at = at();
            self.draft.push(ObservedOperation::Answered { at, unsent: at }, 0);
        }
    }

    /// The rows shown since the last call.
    pub(super) fn take_shown(&mut self) -> std::vec::Drain<'_, ShownRow> {
        self.shown.drain(..)
    }

    /// Notes that the transaction's rows are incomplete, for this reason; the first is kept.
    #[cold]
    pub(super) fn fail(&mut self, why: &str) {
        self.incomplete.get_or_insert_with(|| why.to_owned());
    }

    /// True if what was shown isn't what the transaction did.
    pub(super) fn is_misread(&self) -> bool {
        self.incomplete.is_some()
    }

    /// The reason why rows are missing, if they are; `unknown` if the outcome is.
    pub(super) fn incomplete(&self, unknown: bool) -> Option<&str> {
        let unanswered = unknown && self.pending > 0;
        self.incomplete.as_deref().or(unanswered.then_some("a statement was not answered"))
    }

    /// What was shown so far, also by a statement that wasn't answered to its end.
    pub(super) fn draft(&mut self) -> &ObservedDraft {
        self.draft.append(&mut self.writes);
        &self.draft
    }
}

/// Writes one of the columns of a key: with a comma between several, and a backslash before a comma
/// or backslash in them, so that different keys have different texts.
fn write_part(part: &[u8], (place, count): (usize, usize), into: &mut Vec<u8>) {
    if count == 1 {
        return into.extend_from_slice(part);
    }
    if place > 0 {
        into.push(b',');
    }
    for byte in part {
        if matches!(byte, b',' | b'\\') {
            into.push(b'\\');
        }
        into.push(*byte);
    }
}

/// Writes the text that parts make together. `None` if it isn't known: with a variable that isn't
/// set, or that the server would read in another way.
fn join(
    parts: &[TextPart],
    literal: bool,
    simple: bool,
    variables: &Variables,
    into: &mut Vec<u8>,
) -> Option<()> {
    // In the other protocols `'item:id'` has `$1` in it, as text.
    if literal && !simple {
        return None;
    }
    let mut part = Vec::new();
    for one in parts {
        match one {
            TextPart::Text(text) => into.extend_from_slice(text.as_bytes()),
            TextPart::Parameter(_) => return None,
            TextPart::Variable(slot) => {
                part.clear();
                variables.write_text(*slot, &mut part).then_some(())?;
                if literal && part.iter().any(|byte| matches!(byte, b'\'' | b'\\')) {
                    return None;
                }
                if !literal && simple && integer(&part).is_none_or(|_| is_other_integer(&part)) {
                    unquote(&mut part)?;
                }
                into.extend_from_slice(&part);
            }
        }
    }
    Some(())
}

/// The truth of a boolean or a number as the server prints it.
fn truth(text: &[u8]) -> Option<bool> {
    match text {
        b"t" | b"true" | b"1" => Some(true),
        b"f" | b"false" | b"0" => Some(false),
        _ => None,
    }
}

/// Writes a value's text. Returns false if it is NULL.
fn write_value(value: &SearchValue, variables: &Variables, into: &mut Vec<u8>) -> bool {
    match value {
        // Joined texts are written by `join`, and what the result shows isn't known yet.
        SearchValue::Null
        | SearchValue::Joined { .. }
        | SearchValue::Moved(..)
        | SearchValue::Scaled(..)
        | SearchValue::Parameter(_)
        | SearchValue::Last
        | SearchValue::Shown { .. }
        | SearchValue::Elements(_) => false,
        SearchValue::Constant(text) => {
            into.extend_from_slice(text.as_bytes());
            true
        }
        SearchValue::Variable(slot) | SearchValue::Uuid(slot) => variables.write_text(*slot, into),
    }
}

/// Takes the quotes off a literal. `None` if the text isn't a plain literal: in the simple protocol a
/// variable may hold any SQL.
fn unquote(text: &mut Vec<u8>) -> Option<()> {
    let inner = text.strip_prefix(b"'")?.strip_suffix(b"'")?;
    if inner.iter().any(|byte| matches!(byte, b'\'' | b'\\')) {
        return None;
    }
    text.pop();
    text.remove(0);
    Some(())
}

/// True if a text is an integer that the server prints in another way, such as 007. In a column of
/// texts it may be meant as it is, so it isn't known which key it denotes.
fn is_other_integer(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    text.trim().parse::<i64>().is_ok_and(|number| number.to_string() != text)
}

/// The number of a value in the log; `None` if it isn't of the form.
fn value_of(text: &[u8], form: ValueForm, numbers: &mut TextNumbers<'_>) -> Option<i64> {
    match form {
        ValueForm::Integer => integer(text).filter(|number| *number != NULL),
        ValueForm::Boolean => match text {
            b"t" | b"true" | b"1" => Some(1),
            b"f" | b"false" | b"0" => Some(0),
            _ => None,
        },
        ValueForm::Text => Some(numbers.number(text)),
        ValueForm::Uuid | ValueForm::Decimal => {
            let text = std::str::from_utf8(text).ok()?;
            form.canonical(text).map(|text| numbers.number(text.as_bytes()))
        }
        ValueForm::Date | ValueForm::Timestamp | ValueForm::Instant => {
            form.moment(std::str::from_utf8(text).ok()?)
        }
    }
}

/// The number of a (sub)transaction.
fn transaction(text: &[u8]) -> Option<u32> {
    integer(text).and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::{is_other_integer, unquote};

    #[test]
    fn only_plain_literals_lose_their_quotes() {
        for (text, expected) in [
            ("'x'", Some("x")),
            ("''", Some("")),
            ("'x''y'", None),
            ("'x\\'", None),
            ("x", None),
            ("'", None),
            ("'x' OR true", None),
        ] {
            let mut found = text.as_bytes().to_vec();
            let told = unquote(&mut found).map(|()| String::from_utf8(found).unwrap());
            assert_eq!(told.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn integers_in_another_form_are_told() {
        for (text, expected) in [
            ("7", false),
            ("-7", false),
            ("007", true),
            ("+7", true),
            (" 7", true),
            ("-0", true),
            ("x7", false),
        ] {
            assert_eq!(is_other_integer(text.as_bytes()), expected, "{text}");
        }
    }
}
