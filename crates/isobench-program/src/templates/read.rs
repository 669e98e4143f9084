//! The statements of scripts, each as it was read by itself.

use std::collections::{BTreeMap, BTreeSet};

use isobench_robustness::StatementId;
use isobench_script::Statement as StatementKind;
use isobench_script::{CommandKind, Script, Slot, Store, Symbols};
use isobench_sql::{
    Catalog, Hides, Mark, Placed, RelationId, Text, chains, changed_names, changes_meaning, savepoint,
};

use super::TemplateStatement;
use super::held::locked_tables;
use super::unguarded::Unguarded;
use crate::flow::Flows;
use crate::statement::{Access, AdvisoryLock, ColumnName, Conditioned, Deed, Given, Operand, Statement};

/// The types of integers, by OID (`pg_type.dat`).
const INTEGERS: [u32; 3] = [20, 21, 23];

/// The same of numbers of any kind, which are one word in a text.
const NUMBERS: [u32; 7] = [20, 21, 23, 26, 700, 701, 1700];

/// The statements of scripts.
#[derive(Default)]
pub(super) struct Statements {
    /// Those of each command of each script.
    pub(super) read: Vec<Vec<Vec<Read>>>,
    /// Those on rows, in order.
    pub(super) on_rows: Vec<TemplateStatement>,
    /// The numbers of these among all.
    pub(super) numbers: Vec<usize>,
}

impl Statements {
    pub(super) fn of(scripts: &[Script], catalog: &Catalog, flows: &Flows) -> Statements {
        let (mut all, mut number) = (Statements::default(), 0);
        for (script, parsed) in scripts.iter().enumerate() {
            let mut commands = Vec::new();
            for command in 0..parsed.commands.len() {
                let mut statements = Vec::new();
                let CommandKind::Sql(sql) = &parsed.commands[command].kind else {
                    commands.push(statements);
                    continue;
                };
                let text = Text::scan(sql);
                let ranges = text.as_ref().map(Text::statements).unwrap_or_default();
                let split = ranges.len() == sql.statements.len();
                let mut ranges = ranges.into_iter().filter(|_| split);
                for place in 0..sql.statements.len() {
                    let range = text.as_ref().zip(ranges.next());
                    let statement = range.map(|(text, range)| Statement::new(catalog, text, range));
                    let at = (command, place);
                    statements.push(all.read((parsed, script), at, statement.as_ref(), (flows, number)));
                    number += 1;
                }
                commands.push(statements);
            }
            all.read.push(commands);
        }
        all
    }

    /// Reads a statement, and notes it if it is on rows.
    fn read(
        &mut self,
        (parsed, script): (&Script, usize),
        (command, place): (usize, usize),
        statement: Option<&Statement<'_>>,
        (flows, number): (&Flows, usize),
    ) -> Read {
        let line = parsed.commands[command].line;
        let CommandKind::Sql(sql) = &parsed.commands[command].kind else { unreachable!("a command of SQL") };
        let at = StatementId { script: parsed.name.clone(), line, place };
        let text = match statement {
            Some(statement) => statement.text.named(&statement.range),
            None => sql.as_written().trim().to_owned(),
        };
        let mut read = Read::new(sql.statements[place], at, text);
        read.finds = matches!(sql.store, Store::Gset { .. }) && place + 1 == sql.statements.len();
        read.raises = flows.raises(number);
        let on_rows = touches_rows(read.kind, &read.text);
        match statement {
            Some(statement) => read.examine(statement, flows, number),
            None if on_rows => read.accesses = Err("it isn't understood".to_owned()),
            None => {}
        }
        if on_rows {
            self.numbers.push(number);
            let mut found = TemplateStatement {
                script,
                place: (command, place),
                line,
                at: read.at.clone(),
                text: read.text.clone(),
                written: read.text.clone(),
                rewritten: flows.rewritten(number).cloned(),
                ..TemplateStatement::default()
            };
            if let Some(statement) = statement {
                found.note_changes(statement);
                let adds = flows.follows(number) && !flows.is_decided(number);
                found.computed = if adds { statement.numbers_set() } else { BTreeSet::new() };
            }
            self.on_rows.push(found);
        }
        read
    }
}

impl TemplateStatement {
    /// Notes how the statement could be written otherwise.
    fn note_changes(&mut self, statement: &Statement<'_>) {
        let relations = &statement.catalog.relations;
        let fixes = statement.fixes().into_iter();
        self.fixes = fixes.map(|(table, fix)| (relations[table].qualified(), fix)).collect();
        self.written = statement.text.in_lines(statement.text.bytes(&statement.range));
        self.locks_within = statement.locks_within();
        self.constants = statement.constants();
        self.partial_keys = statement.partial_keys();
        self.overlaps = statement.overlaps();
        self.set_locks = statement.set_locks();
    }
}

/// A statement as it was read.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Read {
    /// Where a further condition can stand in it.
    pub(super) conditioned: Option<Conditioned>,
    pub(super) kind: StatementKind,
    pub(super) at: StatementId,
    pub(super) text: String,
    pub(super) accesses: Result<Vec<Access>, String>,
    /// Its accesses without what triggers may do, where a trigger makes them unknown.
    pub(super) but_for_triggers: Vec<Access>,
    /// What it may do with all code that it reaches, in any order and any number of times, if that makes its accesses
    /// unknown and all of it is known.
    pub(super) code: Option<Vec<Access>>,
    /// The advisory locks that it takes.
    pub(super) locks: Vec<AdvisoryLock>,
    /// The tables that LOCK locks.
    pub(super) table_locks: Vec<RelationId>,
    /// The tables that it names.
    pub(super) tables: BTreeSet<RelationId>,
    /// All names in it.
    pub(super) named: BTreeSet<String>,
    /// A variable may be a name in it, or a part of one.
    pub(super) names_by_variable: bool,
    /// The names that it creates, alters or drops.
    pub(super) renames: Vec<String>,
    /// It may change what names mean in later statements.
    pub(super) changes_meaning: bool,
    /// The savepoint that it sets, or to which it rolls back.
    pub(super) savepoint: Option<(Mark, String)>,
    /// It has to return a row, or the script ends: each of its tables in FROM has a row then.
    pub(super) finds: bool,
    /// It ends a transaction and begins another one: `COMMIT AND CHAIN`.
    pub(super) chains: bool,
    /// The columns of its result, if they are known.
    pub(super) gives: Option<Vec<Stored>>,
    /// The columns of its result with the names that become variables; true of integers. `None` if they aren't
    /// known.
    pub(super) integers: Option<BTreeMap<String, bool>>,
    /// The same for numbers of any kind.
    pub(super) numbers: Option<BTreeMap<String, bool>>,
    /// The variables in it that stand outside of quotes.
    pub(super) unquoted: BTreeSet<Slot>,
    /// Its work on data that no level guards.
    pub(super) unguarded: Unguarded,
    /// What it may do by code that isn't analysed, if it isn't.
    pub(super) hides: Option<Hides>,
    /// The tables that this code names.
    pub(super) behind: BTreeSet<RelationId>,
    /// The columns that it certainly raises, if it is an UPDATE.
    pub(super) raises: BTreeSet<String>,
}

/// A column of a result, that may become a variable.
pub(super) struct Stored {
    pub(super) name: String,
    /// The column whose value it is.
    pub(super) column: Option<ColumnName>,
    /// What that is equal to.
    pub(super) known: Option<Operand>,
}

impl Read {
    /// A statement with its text, of which nothing else is known.
    fn new(kind: StatementKind, at: StatementId, text: String) -> Read {
        Read {
            conditioned: None,
            kind,
            at,
            names_by_variable: names_by_variable(&text),
            text,
            accesses: Ok(Vec::new()),
            but_for_triggers: Vec::new(),
            code: None,
            locks: Vec::new(),
            table_locks: Vec::new(),
            tables: BTreeSet::new(),
            named: BTreeSet::new(),
            renames: Vec::new(),
            changes_meaning: false,
            savepoint: None,
            finds: false,
            chains: false,
            gives: None,
            integers: None,
            numbers: None,
            unquoted: BTreeSet::new(),
            unguarded: Unguarded::default(),
            hides: None,
            behind: BTreeSet::new(),
            raises: BTreeSet::new(),
        }
    }

    /// Examines the statement; it has this number among all.
    fn examine(&mut self, statement: &Statement<'_>, flows: &Flows, number: usize) {
        let Statement { catalog, text, range, .. } = statement;
        self.savepoint = savepoint(text, range);
        self.renames = changed_names(text, range);
        self.unquoted = text.unquoted(range);
        self.changes_meaning = changes_meaning(text, range);
        self.named = text.tokens[range.clone()].iter().filter_map(Placed::name).collect();
        self.chains = chains(text, range);
        self.conditioned = statement.conditioned();
        self.table_locks = locked_tables(statement);
        if touches_rows(self.kind, &self.text) {
            self.tables = statement.named_tables();
            let accesses = statement.accesses();
            if accesses.is_err() {
                self.but_for_triggers = statement.accesses_but_for_triggers().unwrap_or_default();
                self.code = statement.accesses_with_code();
                self.tables.extend(self.code.iter().flatten().map(|access| access.table));
            }
            self.accesses = accesses.map(|accesses| flows.narrowed(number, accesses));
            self.locks = statement.advisory_locks();
        }
        if let Ok(bound) = &statement.bound {
            let those = |types: &[u32]| {
                let is = |of: &Option<u32>| of.is_some_and(|oid| types.contains(&oid));
                Some(bound.outputs.iter().map(|output| (output.name.clone(), is(&output.of_type))).collect())
            };
            (self.integers, self.numbers) = (those(&INTEGERS), those(&NUMBERS));
            let names = bound.functions.iter().filter_map(|oid| catalog.called.functions.get(oid));
            self.unguarded = Unguarded::of_functions(names.map(String::as_str), &catalog.hidden);
        }
        self.give(flows.gives(number), catalog);
    }

    /// Takes it for not understood.
    pub(super) fn forget(&mut self, why: String) {
        self.accesses = Err(why);
        self.but_for_triggers.clear();
        self.code = None;
        self.gives = None;
    }

    /// True if it may read and write anything.
    pub(super) fn is_unknown(&self) -> bool {
        self.accesses.is_err() && self.code.is_none()
    }

    /// Notes the columns of its result. Of a statement that isn't understood, variables may get any values.
    fn give(&mut self, gives: Option<Vec<Given>>, catalog: &Catalog) {
        let accesses = self.accesses.as_deref().unwrap_or_default();
        let is_same = |column: &&ColumnName| catalog.equal_is_same(column.table, &column.name);
        let known = |given: Given| Stored {
            known: equal_to(given.column.as_ref().filter(is_same), accesses),
            name: given.name,
            column: given.column,
        };
        let gives = gives.filter(|_| self.accesses.is_ok());
        // A count has a row where there are none; it has no column as it is, and locks nothing.
        let locks = accesses.iter().any(|access| matches!(access.deed, Deed::Lock(_)));
        self.finds &= locks || gives.iter().flatten().any(|given| given.column.is_some());
        self.gives = gives.map(|given| given.into_iter().map(known).collect());
    }

    /// Its first word, in lower case.
    pub(super) fn first_word(&self) -> String {
        self.text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase()
    }

    /// True if it returns rows of tables.
    pub(super) fn returns_rows(&self) -> bool {
        let first = verb(&self.text);
        let queries = ["select", "with", "values", "table", ""];
        let query = queries.iter().any(|word| word.eq_ignore_ascii_case(first));
        let touches = self.accesses.as_ref().map_or(true, |accesses| !accesses.is_empty());
        touches && (query || self.named.contains("returning"))
    }

    /// True if it may do something that stays when its transaction is rolled back, or that others learn: of plain
    /// queries only these functions do.
    pub(super) fn tells(&self) -> bool {
        const QUERIES: [&str; 12] = [
            "",
            "select",
            "with",
            "values",
            "table",
            "insert",
            "update",
            "delete",
            "merge",
            "savepoint",
            "release",
            "lock",
        ];
        const SETTINGS: [&str; 2] = ["set", "show"];
        const TELL: [&str; 4] = ["pg_notify", "set_config", "setseed", "pg_logical_emit_message"];
        let first = verb(&self.text);
        let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(first));
        let sets_constant = is(&SETTINGS) && !self.text.contains(':');
        let plain = is(&QUERIES) || sets_constant || self.savepoint.is_some();
        !plain || TELL.iter().any(|name| self.named.contains(*name))
    }

    /// True if it touches rows, or takes advisory locks.
    pub(super) fn touches(&self) -> bool {
        let rows = self.accesses.as_ref().map_or(true, |accesses| !accesses.is_empty());
        rows || !self.locks.is_empty()
            || !self.table_locks.is_empty()
            || self.named.iter().any(|name| name.contains("advisory"))
    }

    /// The tables that it may touch.
    pub(super) fn touched(&self) -> BTreeSet<RelationId> {
        let accessed = self.accesses.iter().flatten().map(|access| access.table);
        accessed.chain(self.tables.iter().copied()).collect()
    }
}

/// The variables that the results of statements may become, by the prefix of their names.
pub(super) fn slots_given(prefix: &str, reads: &[Read], symbols: &Symbols) -> Vec<Slot> {
    let gives = |column: &str| {
        let of =
            |read: &Read| read.gives.as_ref().is_none_or(|gives| gives.iter().any(|one| one.name == column));
        reads.iter().any(of)
    };
    let given = |name: &&str| name.strip_prefix(prefix).is_some_and(gives);
    symbols.names().filter(given).filter_map(|name| symbols.lookup(name)).collect()
}

/// What a column of a statement's result is equal to, by the condition on the rows that it shows.
fn equal_to(column: Option<&ColumnName>, accesses: &[Access]) -> Option<Operand> {
    let column = column?;
    let mut of_table = accesses.iter().filter(|access| access.table == column.table);
    // What an outer join may leave out is NULL then.
    let shown = |access: &&Access| match access.deed {
        Deed::Read | Deed::Lock(_) | Deed::Pick(_) => access.in_result,
        deed => deed != Deed::Refer,
    };
    let access = of_table.next().filter(shown)?;
    of_table.next().is_none().then(|| access.equal.get(&column.name).cloned()).flatten()
}

/// True for statements that may read or write rows; not for those that only concern the session or its
/// transaction.
pub(super) fn touches_rows(kind: StatementKind, text: &str) -> bool {
    // LOCK reads and writes nothing.
    const OF_THE_SESSION: [&str; 13] = [
        "rollback",
        "abort",
        "set",
        "reset",
        "show",
        "savepoint",
        "listen",
        "unlisten",
        "notify",
        "deallocate",
        "discard",
        "checkpoint",
        "lock",
    ];
    let first = verb(text);
    let of_session = OF_THE_SESSION.iter().any(|word| word.eq_ignore_ascii_case(first));
    matches!(kind, StatementKind::Other | StatementKind::Copy) && !of_session
}

/// True if a variable may be a name in a statement, or a part of one: `pgbench_:x`, `FROM :table`.
fn names_by_variable(text: &str) -> bool {
    const BEFORE_NAME: [&str; 9] =
        ["from", "into", "update", "join", "table", "only", "call", "copy", "truncate"];
    let of_name = |letter: char| letter.is_alphanumeric() || "_$\".".contains(letter);
    let (mut quoted, mut depth, mut lists) = (false, 0, false);
    let mut word = String::new();
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            ':' if matches!(letters.peek(), Some(':' | '=')) => drop(letters.next()),
            ':' if letters.peek().is_some_and(|next| next.is_alphabetic() || *next == '_') => {
                while letters.next_if(|next| next.is_alphanumeric() || *next == '_').is_some() {}
                let in_list = lists && depth == 0 && before == ',';
                let after = letters.peek().is_some_and(|next| of_name(*next) || *next == '(');
                if of_name(before) || after || in_list || BEFORE_NAME.contains(&word.as_str()) {
                    return true;
                }
                word.clear();
                before = ' ';
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if letter.is_alphabetic() {
            if !before.is_alphabetic() {
                word.clear();
            }
            word.extend(letter.to_lowercase());
            lists |= word == "from";
        } else if !letter.is_whitespace() {
            word.clear();
        }
        // Between a comma and a name there may be blanks.
        if !(letter.is_whitespace() && before == ',') {
            before = letter;
        }
    }
    false
}

/// The letters with which a statement begins; none before a parenthesis.
fn verb(text: &str) -> &str {
    text.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_names_are_found() {
        for text in [
            "INSERT INTO u:s(name) VALUES (1)",
            "SELECT * FROM :t",
            "SELECT * FROM a, :t WHERE x = 1",
            "UPDATE :t SET a = 1",
            "SELECT a FROM x.:t",
            "SELECT :f(1)",
            "call :p (1)",
        ] {
            assert!(names_by_variable(text), "{text}");
        }
        for text in [
            "CALL transfer(:a, :b)",
            "SELECT a::text, :b FROM t WHERE c = :c AND d IN (:d, :e)",
            "SELECT 'from :t' FROM t WHERE name = 'n:k'",
            "UPDATE t SET a = :a, b = :b",
            "DO 'BEGIN x := 1; END'",
        ] {
            assert!(!names_by_variable(text), "{text}");
        }
    }
}
