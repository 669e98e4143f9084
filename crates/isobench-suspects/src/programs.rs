//! Templates as programs of operations on rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isobench_program::{Rows, Templates, templates_with};
use isobench_robustness::{Program, StatementId};
use isobench_script::{Command, CommandKind, Script, Symbols};
use isobench_sql::Catalog;

use crate::script::{Assume, Written, write};
use crate::template::Template;

/// The programs of templates.
pub struct Programs {
    written: Vec<Result<Written, String>>,
    templates: Templates,
    /// For each template the index of its program.
    places: Vec<Option<usize>>,
    /// The template's statement of each name.
    names: HashMap<StatementId, usize>,
    /// For each template why it isn't analysed.
    unknown: Vec<Option<String>>,
    /// The columns of the unique indexes of each table that have all of its rows.
    unique: BTreeMap<String, Vec<BTreeSet<String>>>,
}

/// The scripts of all templates, of which the server has to say how it reads them.
pub struct Scripts {
    symbols: Symbols,
    written: [Vec<Result<Written, String>>; 2],
}

impl Scripts {
    /// Writes them.
    pub fn of(templates: &[Template], catalog: &Catalog) -> Scripts {
        let mut symbols = Symbols::new();
        let written = [Assume::Recorded, Assume::Certain]
            .map(|assume| templates.iter().map(|one| write(one, assume, catalog, &mut symbols)).collect());
        Scripts { symbols, written }
    }

    /// All scripts.
    pub fn all(&self) -> impl Iterator<Item = &Script> {
        self.written.iter().flatten().flatten().map(|written| &written.script)
    }

    /// Makes programs of them: those in which recorded values are believed, and those that proofs are about.
    pub fn programs(self, catalog: &Catalog) -> [Programs; 2] {
        let catalog = &Catalog { sends_parameters: true, ..catalog.clone() };
        let symbols = self.symbols;
        let [recorded, certain] = self.written;
        [(recorded, Assume::Recorded), (certain, Assume::Certain)]
            .map(|(written, assume)| Programs::of(written, assume, &symbols, catalog))
    }
}

impl Programs {
    fn of(
        written: Vec<Result<Written, String>>,
        assume: Assume,
        symbols: &Symbols,
        catalog: &Catalog,
    ) -> Programs {
        let scripts: Vec<Script> = written.iter().flatten().map(|one| one.script.clone()).collect();
        let found: BTreeSet<StatementId> =
            written.iter().flatten().flat_map(|one| one.found.iter().cloned()).collect();
        // For proofs nothing is believed of rows: each statement may find none.
        let certain = assume == Assume::Certain;
        let absent = written.iter().flatten().filter(|_| certain).flat_map(|one| {
            one.script.commands.iter().map(|command| StatementId::new(&one.script.name, command.line))
        });
        let rows = Rows { absent: absent.collect(), found };
        let templates = templates_with(&scripts, symbols, catalog, &rows);
        let mut places = Vec::new();
        let mut names = HashMap::new();
        let mut next = 0;
        for one in &written {
            places.push(one.as_ref().ok().map(|_| next));
            let Ok(one) = one else { continue };
            next += 1;
            for (command, step) in one.script.commands.iter().zip(&one.steps) {
                if let Some(step) = step {
                    names.insert(StatementId::new(&one.script.name, command.line), *step);
                }
            }
        }
        let unknown = unknown(&written, &templates, &places);
        let unique = catalog.relations.iter().map(|relation| {
            let whole = relation.uniqueness.iter().filter(|one| !one.partial && !one.columns.is_empty());
            (relation.qualified(), whole.map(|one| one.columns.clone()).collect())
        });
        let unique = unique.collect();
        Programs { written, templates, places, names, unknown, unique }
    }

    /// Why a template isn't analysed.
    pub fn unknown(&self, template: usize) -> Option<&str> {
        self.unknown[template].as_deref()
    }

    /// The program of a template.
    pub fn program(&self, template: usize) -> Option<&Program> {
        self.templates.programs.get(self.places[template]?)
    }

    /// True if a statement runs functions, between whose statements no application can be held.
    pub(crate) fn runs_code(&self, at: &StatementId) -> bool {
        self.templates.statements.iter().any(|one| one.runs_code && one.at == *at)
    }

    pub(crate) fn step(&self, at: &StatementId) -> Option<usize> {
        self.names.get(at).copied()
    }

    /// True for the name of a table: theory has other names for what isn't one, such as the state of the server.
    pub(crate) fn is_table(&self, name: &str) -> bool {
        self.unique.contains_key(name)
    }

    /// True if these columns of a table have all columns of a unique index.
    pub(crate) fn are_unique(&self, table: &str, columns: &BTreeSet<String>) -> bool {
        self.unique.get(table).is_some_and(|all| all.iter().any(|own| own.is_subset(columns)))
    }

    /// The columns of a unique index of a table that are all among these; of several the first ones by name.
    pub(crate) fn unique_key(&self, table: &str, columns: &BTreeSet<String>) -> Option<&BTreeSet<String>> {
        self.unique.get(table)?.iter().filter(|own| own.is_subset(columns)).min()
    }

    /// The script of a template, to be shown.
    pub fn script(&self, template: usize) -> Option<&Script> {
        self.written[template].as_ref().ok().map(|one| &one.script)
    }
}

/// For each template the first reason why it isn't analysed.
fn unknown(
    written: &[Result<Written, String>],
    templates: &Templates,
    places: &[Option<usize>],
) -> Vec<Option<String>> {
    let of_place: HashMap<usize, usize> =
        places.iter().enumerate().filter_map(|(number, place)| Some(((*place)?, number))).collect();
    let mut found: Vec<Option<String>> = written.iter().map(|one| one.as_ref().err().cloned()).collect();
    for statement in &templates.statements {
        if let (Some(why), Some(number)) = (&statement.unknown, of_place.get(&statement.script)) {
            found[*number].get_or_insert_with(|| why.clone());
        }
    }
    for (number, one) in written.iter().enumerate() {
        let Ok(one) = one else { continue };
        if templates.branching.contains(&one.script.name) {
            found[number]
                .get_or_insert_with(|| "it has too many ways on which rows are found or not".to_owned());
        }
        let reaches = one.script.commands.iter().zip(&one.steps).filter(|(_, step)| step.is_some());
        let unread = reaches
            .filter_map(|(command, _)| first_word(command))
            .find(|word| !READ.contains(&word.as_str()));
        if let Some(word) = unread {
            found[number].get_or_insert_with(|| format!("isobench doesn't analyse {}", word.to_uppercase()));
        }
    }
    found
}

/// First words of statements that theory has operations for.
const READ: [&str; 15] = [
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
    "rollback",
    "lock",
    "begin",
    "commit",
    "(",
];

fn first_word(command: &Command) -> Option<String> {
    let CommandKind::Sql(sql) = &command.kind else { return None };
    let text = sql.as_written();
    let word: String = text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    Some(if word.is_empty() {
        text.trim_start().chars().take(1).collect()
    } else {
        word.to_ascii_lowercase()
    })
}
