//! SQL understood: which rows a statement reads and writes, and the output columns that show them.
//!
//! On PostgreSQL every row carries the number of the transaction that wrote it (`xmin`). A statement
//! whose result includes the keys of its rows and their `xmin` tells what it read and wrote, so no
//! schema has to be changed and no comment written. [`observe`] finds the tables and keys of every
//! statement of the scripts in a [`Catalog`], and inserts such columns after the author's own.
//!
//! The author's text stays as it is, byte for byte: columns are inserted at places that are found by
//! the parser's tokens, and nothing is printed anew. A statement that isn't understood completely is
//! left as it is, and said to be dark. What is seen and what isn't is told per statement
//! ([`SeenStatement`]).
//!
//! Columns may change a statement's plan, and so what it locks. [`Plans`] compares the plans of both
//! forms ([`Observed::forms`]), and [`observe_except`] leaves those as they are whose plans differ.
//!
//! The crate is pure: it has no sockets; [`Catalog::load`] and [`Plans`] are given a function that
//! queries. Not here: sending and reading results (`isobench-runner`), and judging
//! (`isobench-isolation`).
//!
//! Assumptions, which the caller has to ensure or which the log's reader has to know:
//!
//! - The catalog was read in a session like those of the scripts: the same database, user and
//!   `search_path`. The schema doesn't change during the run.
//! - In the simple protocol a variable's value is SQL text. A value that is anything but a number, a
//!   literal, `true`, `false` or NULL may change what a statement means; who reads the values must not
//!   take it for an operand of a search.

mod constants;
mod dark;
mod forms;
mod plan;
mod render;
mod statement;

use std::collections::BTreeSet;
use std::ops::Range;

use isobench_isolation::observed::{KeyForm, ObservedColumn, ObservedTable, Predicate, ValueForm};
use isobench_script::{CommandKind, ObservedStatement, Script, SearchWhen, Sql};
use isobench_sql::{
    Catalog, ColumnType, RelationId, Text, changed_names, prepares_transaction, sets_savepoint,
};

use constants::{Assigned, Constants};
pub use dark::{Access, Clause, Dark, HiddenRows, SeenStatement, SeenTable, Unshown, VersionOrder};
pub use forms::Forms;
use forms::between;
pub use plan::{Plans, Query};
use render::{Renderer, Tables, elsewhere, key_text, mentioned};
use statement::{Change, Examiner, Finding, Numbers, Role, Surroundings, changes};
/// What can be observed of scripts, which were changed to show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// The tables, as the scripts' statements number them.
    pub tables: Vec<ObservedTable>,
    /// The conditions of searches, as the scripts' statements number them.
    pub predicates: Vec<Predicate>,
    /// Every statement of every script, in order.
    pub statements: Vec<SeenStatement>,
    /// The statements that are sent differently, in both forms.
    pub forms: Vec<Forms>,
}

/// A command's findings: for each of its statements, or `None` if it isn't understood at all.
struct Examined {
    script: usize,
    command: usize,
    /// The statements.
    findings: Vec<Statement>,
}

/// A statement of a command.
struct Statement {
    /// Its text with the names of variables.
    text: String,
    /// Its place in the command's parameterized text, in bytes.
    range: Range<usize>,
    /// The number of its parameters that the script's author wrote as `$1`, `$2`, …
    parameters: u16,
    finding: Finding,
}

/// Extends the statements of scripts with columns that show the rows which they read and write, and
/// tells what is seen. Scripts of other products than PostgreSQL mustn't be observed.
pub fn observe<'s>(scripts: impl IntoIterator<Item = &'s mut Script>, catalog: &Catalog) -> Observed {
    observe_except(scripts, catalog, &|_| None)
}

/// Does the same, but sends as written the statements for whose texts, as they stand in
/// [`SeenStatement`], there is a reason.
pub fn observe_except<'s>(
    scripts: impl IntoIterator<Item = &'s mut Script>,
    catalog: &Catalog,
    reason: &dyn Fn(&str) -> Option<Dark>,
) -> Observed {
    let mut scripts: Vec<&mut Script> = scripts.into_iter().collect();
    let (surroundings, obstacle) = surroundings(&scripts, catalog);
    let constants = Constants::of(&scripts, catalog);
    let mut examined = Vec::new();
    for (script, parsed) in scripts.iter().enumerate() {
        let mut assigned = Assigned::default();
        for (command, parsed) in parsed.commands.iter().enumerate() {
            assigned.pass(&parsed.kind);
            if let CommandKind::Sql(sql) = &parsed.kind {
                let numbers = constants.numbers(sql, &assigned.slots);
                let mut findings = examine_all(sql, catalog, &surroundings, &numbers, obstacle.as_ref());
                for Statement { text, finding, .. } in &mut findings {
                    if let Some(dark) = reason(text) {
                        finding.withdraw(dark);
                    }
                }
                examined.push(Examined { script, command, findings });
            }
        }
    }
    let mut tables = number_tables(&examined);
    let unseen = spread(&mut examined, &tables);
    let mut predicates = Vec::new();
    let (mut statements, mut forms) = (Vec::new(), Vec::new());
    for command in &examined {
        let script = &mut *scripts[command.script];
        let file = script.name.clone();
        let Some(own) = script.commands.get_mut(command.command) else { continue };
        let line = own.line;
        let CommandKind::Sql(sql) = &mut own.kind else { continue };
        let mut renderer = Renderer { catalog, tables: &mut tables, predicates: &mut predicates };
        let rewritten = extend(sql, command, &mut renderer);
        for (place, Statement { text, finding, .. }) in command.findings.iter().enumerate() {
            let records = |seen: &ObservedStatement| {
                seen.statement == number(place) && seen.limit.is_some() && !seen.searches.is_empty()
            };
            let recorded = sql.observed.iter().any(records);
            statements.push(SeenStatement {
                file: file.clone(),
                line,
                place: number(place),
                text: text.clone(),
                rewritten: rewritten.iter().any(|(sent, _)| *sent == place),
                tables: seen_tables(finding, catalog),
                dark: finding.dark.iter().map(|dark| dark.for_any_value(recorded)).collect(),
            });
        }
        forms.extend(rewritten.into_iter().map(|(_, forms)| forms));
    }
    Observed { tables: described(&tables, catalog, &unseen), predicates, statements, forms }
}

/// What all scripts do to names, and a reason not to observe any of them.
fn surroundings(scripts: &[&mut Script], catalog: &Catalog) -> (Surroundings, Option<Dark>) {
    let mut found = Surroundings::default();
    let mut obstacle = None;
    for sql in scripts.iter().flat_map(|script| script.sql()) {
        let Some(text) = Text::scan(sql) else {
            if let Some(by) = may_change_names(sql) {
                obstacle = Some(Dark::NamesChange { by });
            }
            continue;
        };
        for range in text.statements() {
            found.changed.extend(changed_names(&text, &range));
            found.savepoints |= sets_savepoint(&text, &range);
            found.removed.note(&text, &range, catalog);
            match changes(&text, &range, catalog) {
                Some(Change::Names(by)) => obstacle = Some(Dark::NamesChange { by }),
                Some(Change::Printed) => found.printed = true,
                None => {}
            }
            if prepares_transaction(&text, &range) {
                obstacle = Some(Dark::Prepared);
            }
        }
    }
    if !catalog.standard_strings {
        obstacle = Some(Dark::Session { setting: "standard_conforming_strings" });
    } else if !catalog.system_first() {
        obstacle = Some(Dark::Session { setting: "search_path" });
    }
    (found, obstacle)
}

/// The word by which a command that can't be split into tokens may change what names mean.
fn may_change_names(sql: &Sql) -> Option<String> {
    const LEADING: [&str; 6] = ["alter", "create", "discard", "drop", "reset", "set"];
    const ANYWHERE: [&str; 4] = ["authorization", "role", "search_path", "set_config"];
    let first = sql.parameterized.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
    let leading = first.filter(|first| LEADING.iter().any(|word| word.eq_ignore_ascii_case(first)));
    leading.or_else(|| sql.keyword(&ANYWHERE)).map(str::to_owned)
}

/// The places of a command's statements in its parameterized text, in bytes; none if it isn't SQL, or a
/// variable is part of a name.
pub fn statement_places(sql: &Sql) -> Vec<Range<usize>> {
    let Some(text) = Text::scan(sql) else { return Vec::new() };
    text.statements().iter().map(|range| text.bytes(range)).collect()
}

/// The tables of a statement, by what is seen of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenOf {
    /// The tables of which its result can show rows; true of those that it writes.
    pub shown: Vec<(RelationId, bool)>,
    /// What isn't seen of it.
    pub dark: Vec<Dark>,
    /// The tables that it writes without showing it.
    pub unseen: BTreeSet<RelationId>,
    /// It may write any table.
    pub writes_anything: bool,
}

impl SeenOf {
    /// What is seen of a statement in its text, as the author wrote it, whatever scripts do to names.
    pub fn statement(catalog: &Catalog, text: &Text<'_>, range: Range<usize>) -> SeenOf {
        let found = Examiner::new(catalog, &Surroundings::default(), text, range).examine();
        let shown = found.shown.iter().map(|shown| (shown.table, shown.role != Role::Read)).collect();
        let Finding { dark, unseen, writes_anything, .. } = found;
        SeenOf { shown, dark, unseen, writes_anything }
    }

    /// What is assumed of a statement that can't be split into words.
    pub fn nothing() -> SeenOf {
        SeenOf { dark: vec![Dark::NotUnderstood], writes_anything: true, ..SeenOf::default() }
    }

    /// True if it may write rows.
    pub fn writes(&self) -> bool {
        self.writes_anything || !self.unseen.is_empty() || self.shown.iter().any(|(_, writes)| *writes)
    }
}

/// The findings of each statement of a command.
fn examine_all(
    sql: &Sql,
    catalog: &Catalog,
    surroundings: &Surroundings,
    numbers: &Numbers,
    obstacle: Option<&Dark>,
) -> Vec<Statement> {
    let unknown = |dark: Dark| Finding { dark: vec![dark], writes_anything: true, ..Finding::default() };
    let scanned = Text::scan(sql);
    let ranges = scanned.as_ref().map(Text::statements).unwrap_or_default();
    let (Some(text), true) = (scanned, ranges.len() == sql.statements.len()) else {
        // The runner counts statements as the script does.
        let statement = || Statement {
            text: sql.parameterized.trim().to_owned(),
            range: 0..0,
            parameters: 0,
            finding: unknown(Dark::NotUnderstood),
        };
        return sql.statements.iter().map(|_| statement()).collect();
    };
    ranges
        .into_iter()
        .map(|range| Statement {
            text: text.named(&range),
            range: text.bytes(&range),
            parameters: text.parameters(&range),
            finding: match obstacle {
                Some(obstacle) => unknown(obstacle.clone()),
                None => Examiner::new(catalog, surroundings, &text, range).with_numbers(numbers).examine(),
            },
        })
        .collect()
}

/// Numbers the tables of which rows are shown, and collects the columns that searches mention.
fn number_tables(examined: &[Examined]) -> Tables {
    let mut tables = Tables::default();
    for Statement { finding, .. } in examined.iter().flat_map(|command| &command.findings) {
        for shown in &finding.shown {
            tables.number(shown.table);
        }
        for (_, table, search) in finding.searches() {
            let mut columns = Vec::new();
            mentioned(table, &search.condition, &mut columns);
            if let Some((entry, other)) = elsewhere(&search.condition)
                && let Some(shown) = finding.shown.get(entry)
            {
                tables.keep(shown.table, other);
            }
            if let Some((entry, name, _)) = &search.referred
                && let Some(shown) = finding.shown.get(*entry)
            {
                tables.keep(shown.table, name);
            }
            tables.number(table);
            for (table, column) in columns {
                tables.keep(table, &column);
            }
        }
    }
    tables
}

/// Gives statements that may write anything all tables as unseen. Returns the tables that any
/// statement writes without showing it.
fn spread(examined: &mut [Examined], tables: &Tables) -> BTreeSet<usize> {
    let mut unseen = BTreeSet::new();
    for Statement { finding, .. } in examined.iter_mut().flat_map(|command| &mut command.findings) {
        if finding.writes_anything {
            finding.unseen.extend(tables.numbers.keys());
        }
        unseen.extend(finding.unseen.iter().copied());
    }
    unseen
}

/// Extends a command; returns the places and forms of the statements that are sent differently.
fn extend(sql: &mut Sql, command: &Examined, renderer: &mut Renderer<'_>) -> Vec<(usize, Forms)> {
    let mut insertions = Vec::new();
    let mut rewritten = Vec::new();
    sql.observed.clear();
    for (place, Statement { text, range, parameters, finding }) in command.findings.iter().enumerate() {
        let (own, observed) = renderer.render(finding, number(place));
        if !own.is_empty() {
            let mut sent = sql.clone();
            sent.insert(&own);
            let longer: usize = own.iter().map(|(_, text)| text.len()).sum();
            let forms = Forms {
                script: command.script,
                command: command.command,
                text: text.clone(),
                written: between(sql, range.start, range.end),
                sent: between(&sent, range.start, range.end + longer),
                parameters: *parameters,
            };
            rewritten.push((place, forms));
        }
        insertions.extend(own);
        let shows = observed.appended > 0 || !observed.searches.is_empty();
        if shows || !observed.unseen.is_empty() {
            sql.observed.push(observed);
        }
    }
    sql.insert(&insertions);
    rewritten
}

fn seen_tables(finding: &Finding, catalog: &Catalog) -> Vec<SeenTable> {
    let mut seen: Vec<SeenTable> = Vec::new();
    for shown in &finding.shown {
        let relation = &catalog.relations[shown.table];
        let (access, order) = match (shown.role, catalog.shows_old()) {
            (Role::Read, _) => (Access::Reads, VersionOrder::None),
            (_, true) => (Access::Writes, VersionOrder::OldAndNew),
            (_, false) => (Access::Writes, VersionOrder::RowLock),
        };
        let entry = SeenTable {
            table: relation.qualified(),
            key: key_text(relation),
            access,
            order,
            searched: shown
                .searches
                .iter()
                .any(|search| matches!(search.when, SearchWhen::Always | SearchWhen::Unlimited)),
        };
        if !seen.contains(&entry) {
            seen.push(entry);
        }
    }
    seen
}

fn described(tables: &Tables, catalog: &Catalog, unseen: &BTreeSet<usize>) -> Vec<ObservedTable> {
    let describe = |(table, columns): &(usize, Vec<String>)| {
        let relation = &catalog.relations[*table];
        let kind = |name: &String| relation.column(name).map(|place| relation.columns[place].kind);
        let column = |name: &String| ObservedColumn {
            name: name.clone(),
            form: kind(name).and_then(ColumnType::form).unwrap_or(ValueForm::Text),
        };
        let single = match relation.key.as_slice() {
            [place] => relation.columns[*place].kind == ColumnType::Integer && !relation.has_children(),
            _ => false,
        };
        ObservedTable {
            name: relation.qualified(),
            key: if single { KeyForm::Integer } else { KeyForm::Numbered },
            columns: columns.iter().map(column).collect(),
            closed: !unseen.contains(table),
        }
    };
    tables.list.iter().map(describe).collect()
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
