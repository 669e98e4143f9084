//! What was found, as one document: suspects in groups, what is carried between transactions, and each template.

use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Level;
use serde::Serialize;

use crate::between::Carried;
use crate::judged::Judged;
use crate::live::Live;
use crate::script;
use crate::suspect::{Kind, State, Suspect};
use crate::template::Template;
use crate::words::{deeds, reason, short, title, verb};

/// The form of the document.
pub const FORMAT: &str = "isobench/suspects";

/// What was found.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// The form of the document.
    pub format: &'static str,
    /// What certainly went wrong while it was recorded, in order.
    pub live: Vec<Live>,
    /// The number of recorded transactions.
    pub transactions: u64,
    /// Pairs of templates that can race at the levels at which they ran.
    pub racing: u64,
    /// Pairs that were looked at.
    pub pairs: u64,
    /// Pairs that could race at read committed, and can't at the levels at which they ran.
    pub held: u64,
    /// Suspects, the gravest first.
    pub suspects: Vec<Group>,
    /// What is read in one transaction and written in a later one.
    pub between: Vec<Between>,
    /// Each template.
    pub templates: Vec<Row>,
    /// Why nothing is proved, if something concerns all templates.
    pub doubt: Option<String>,
}

/// Suspects of one kind on the same tables and columns.
#[derive(Debug, Serialize)]
pub struct Group {
    /// What it does, such as "update item after reading it".
    pub title: String,
    /// What can go wrong.
    pub kind: Kind,
    /// The table that is read, and the one by which it goes wrong.
    pub tables: [String; 2],
    /// The columns that are read and changed; empty if rows come or go.
    pub columns: BTreeSet<String>,
    /// Why that is wrong.
    pub reason: String,
    /// How many transactions were recorded that can go wrong so.
    pub count: u64,
    /// The levels at which they ran.
    pub levels: Vec<String>,
    /// The lowest level at which no such schedule is found; `None` if there is none.
    pub needed: Option<String>,
    /// The line of the capture with one.
    pub line: u64,
    /// The routes of their requests, the most frequent first.
    pub routes: Vec<String>,
    /// The trace of one.
    pub request: Option<String>,
    /// The pairs of templates, by their numbers: that which goes wrong, and the other one.
    pub pairs: Vec<[usize; 2]>,
    /// The statements of the first pair that matter.
    pub schedule: Schedule,
}

/// Why a limit doesn't hold.
pub(crate) const COUNTED: &str = "both count without the other's row, and both insert";

/// A schedule: statements of two transactions.
#[derive(Debug, Serialize)]
pub struct Schedule {
    /// The first transaction up to its read.
    pub before: Vec<String>,
    /// The other one, as a whole.
    pub within: Vec<String>,
    /// The rest of the first one.
    pub after: Vec<String>,
}

/// What is read in one transaction and written in a later one of the same request.
#[derive(Debug, Serialize)]
pub struct Between {
    /// What it does.
    pub title: String,
    /// What can go wrong.
    pub kind: Kind,
    /// The table.
    pub table: String,
    /// The columns that are read, and then written; empty for a row that is inserted.
    pub columns: BTreeSet<String>,
    /// Why that is wrong.
    pub reason: String,
    /// How often it was recorded.
    pub count: u64,
    /// The line of the capture with such a write.
    pub line: u64,
    /// The statements.
    pub statements: [String; 2],
    /// The route of one such request.
    pub route: Option<String>,
    /// True if a trace says that both are of one request; else they follow one another on a connection.
    pub traced: bool,
    /// The templates.
    pub templates: [usize; 2],
}

/// A template.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub number: usize,
    /// What it does.
    pub name: String,
    /// How often it was recorded.
    pub count: u64,
    /// The level at which it ran.
    pub level: String,
    /// `suspect`, `excluded`, `undecided`, `not-analysed`.
    pub state: &'static str,
    /// Why it isn't proved, or analysed.
    pub why: Option<String>,
    /// The line of the capture with its first statement.
    pub line: u64,
    /// Its statements.
    pub statements: Vec<String>,
    /// True if it is a lone query.
    pub lone: bool,
}

impl Answer {
    /// What was found of templates.
    pub fn of(
        templates: &[Template],
        live: Vec<Live>,
        judged: &Judged,
        carried: &[Carried],
        doubt: Option<String>,
    ) -> Answer {
        let racing: BTreeSet<[usize; 2]> = judged.suspects.iter().map(pair).collect();
        let carried: Vec<Between> = between(templates, carried);
        let mut states = judged.states.clone();
        for one in &carried {
            for number in one.templates {
                if states[number] == State::Excluded {
                    states[number] =
                        State::Undecided("it writes what an earlier transaction read".to_owned());
                }
            }
        }
        Answer {
            format: FORMAT,
            live,
            transactions: templates.iter().map(|one| one.count).sum(),
            racing: racing.len() as u64,
            pairs: judged.pairs as u64,
            held: judged.held as u64,
            suspects: groups(templates, &judged.suspects),
            between: carried,
            templates: templates.iter().zip(&states).map(|(one, state)| row(one, state)).collect(),
            doubt,
        }
    }

    /// The number of templates in a state.
    pub fn count(&self, state: &str) -> usize {
        self.templates.iter().filter(|row| row.state == state).count()
    }

    /// True if nothing could be judged.
    pub fn is_empty(&self) -> bool {
        self.templates.iter().all(|row| row.state == "not-analysed")
    }
}

fn pair(suspect: &Suspect) -> [usize; 2] {
    [suspect.split.min(suspect.within), suspect.split.max(suspect.within)]
}

fn row(template: &Template, state: &State) -> Row {
    let (word, why) = match state {
        State::Suspect => ("suspect", None),
        State::Excluded => ("excluded", None),
        State::Undecided(why) => ("undecided", Some(why.clone())),
        State::NotAnalysed(why) => ("not-analysed", Some(why.clone())),
    };
    let statements: Vec<String> = template.statements.iter().map(|step| step.normal.key.clone()).collect();
    let lone = statements.len() == 1 && template.statements[0].normal.verb() == "select";
    Row {
        number: template.number,
        name: deeds(template).unwrap_or_else(|| script::name(template)),
        count: template.count,
        level: template.level.name().to_owned(),
        state: word,
        why,
        line: template.line,
        statements,
        lone,
    }
}

/// Suspects of one kind on the same tables and columns, in their order.
fn groups(templates: &[Template], suspects: &[Suspect]) -> Vec<Group> {
    let mut found: Vec<(Group, BTreeSet<usize>, BTreeMap<String, u64>)> = Vec::new();
    for suspect in suspects {
        let (template, title) = (&templates[suspect.split], title(suspect, templates));
        let tables = [short(&suspect.read_table).to_owned(), short(&suspect.back_table).to_owned()];
        let same = |group: &Group| {
            (group.kind, &group.title, &group.columns, &group.tables)
                == (suspect.kind, &title, &suspect.columns, &tables)
        };
        let place = found.iter().position(|(group, ..)| same(group)).unwrap_or_else(|| {
            found.push((
                group(templates, suspect, title.clone(), tables.clone()),
                BTreeSet::new(),
                BTreeMap::new(),
            ));
            found.len() - 1
        });
        let (group, members, routes) = &mut found[place];
        let level = template.level.name().to_owned();
        if !group.levels.contains(&level) {
            group.levels.push(level);
        }
        let both = [suspect.split, suspect.within];
        if !group.pairs.contains(&both) {
            group.pairs.push(both);
        }
        group.needed = match (group.needed.take(), suspect.needed) {
            (Some(known), Some(own)) => {
                let known: Level = known.parse().unwrap_or(own);
                Some(known.max(own).name().to_owned())
            }
            _ => None,
        };
        if members.insert(suspect.split) {
            group.count += template.count;
            for (route, count) in &template.routes {
                *routes.entry(route.clone()).or_default() += count;
            }
        }
    }
    found
        .into_iter()
        .map(|(mut group, _, routes)| {
            let mut routes: Vec<(String, u64)> = routes.into_iter().collect();
            routes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            group.routes = routes.into_iter().map(|(route, _)| route).collect();
            group
        })
        .collect()
}

fn group(templates: &[Template], suspect: &Suspect, title: String, tables: [String; 2]) -> Group {
    let (split, within) = (&templates[suspect.split], &templates[suspect.within]);
    let text = |template: &Template, step: usize| template.statements[step].normal.key.clone();
    let mut steps = suspect.within_steps.to_vec();
    // The same transaction reads first, too.
    if suspect.split == suspect.within {
        steps.push(suspect.steps[0]);
    }
    steps.sort_unstable();
    steps.dedup();
    let words = split.statements[suspect.steps[0]].normal.key.to_ascii_lowercase();
    let counts = suspect.kind == Kind::Duplicate && (words.contains("count(") || words.contains("sum("));
    let [read, back] = suspect.steps.map(|step| text(split, step));
    let (before, after) =
        if suspect.earlier { (vec![back, read], Vec::new()) } else { (vec![read], vec![back]) };
    Group {
        title,
        kind: suspect.kind,
        tables,
        columns: suspect.columns.clone(),
        reason: if counts { COUNTED.to_owned() } else { reason(suspect.kind, &suspect.columns) },
        count: 0,
        levels: Vec::new(),
        needed: suspect.needed.map(|level| level.name().to_owned()),
        line: split.line,
        routes: Vec::new(),
        request: split.request.clone(),
        pairs: Vec::new(),
        schedule: Schedule {
            before,
            within: steps.into_iter().map(|step| text(within, step)).collect(),
            after,
        },
    }
}

/// What is carried, of each kind, table and columns once.
fn between(templates: &[Template], carried: &[Carried]) -> Vec<Between> {
    let mut found: Vec<Between> = Vec::new();
    for one in carried {
        let table = short(&one.table).to_owned();
        if let Some(known) = found
            .iter_mut()
            .find(|known| (known.kind, &known.table, &known.columns) == (one.kind, &table, &one.columns))
        {
            known.count += one.count;
            continue;
        }
        let [first, second] = one.templates.map(|number| &templates[number]);
        let verb = verb(&second.statements[one.steps[1]].normal);
        let title = match one.kind {
            Kind::Duplicate => format!("insert {table} after looking for it"),
            _ => format!("{verb} {table} after reading it"),
        };
        let statements = [(first, one.steps[0]), (second, one.steps[1])];
        found.push(Between {
            title,
            kind: one.kind,
            reason: reason(one.kind, &one.columns),
            table,
            columns: one.columns.clone(),
            count: one.count,
            line: second.line,
            statements: statements.map(|(template, step)| template.statements[step].normal.key.clone()),
            route: one.route.clone(),
            traced: one.traced,
            templates: one.templates,
        });
    }
    found
}
