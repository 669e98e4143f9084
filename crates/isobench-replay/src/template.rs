//! Templates: transactions, or the transactions of a request, that differ in their values only.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use isobench_isolation::Level;

use crate::sessions::{End, Executed, Recorded, Transaction};
use crate::statement::Role;

/// The most templates that become scripts.
const MOST: usize = 40;

/// The longest sequence of statements that is recognised as the body of a loop.
const LONGEST_BODY: usize = 6;

/// What becomes a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// A transaction.
    #[default]
    Transaction,
    /// All transactions of a request, in sequence.
    Request,
}

/// An instance of a template: transactions in sequence.
pub type Unit<'a> = Vec<&'a Transaction>;

/// Transactions that differ in their values only.
#[derive(Debug)]
pub struct Template<'a> {
    /// A name, as that of a file without its extension: letters, digits and dashes.
    pub name: String,
    /// The number of its instances.
    pub count: u64,
    /// Those instances that have the most frequent number of repetitions, and of values in lists.
    pub instances: Vec<Unit<'a>>,
    /// How often each level was seen; `None` is the server's default.
    pub levels: BTreeMap<Option<Level>, u64>,
}

/// What the application did after conflicts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// Transactions that failed by 40001 or 40P01.
    pub failed: u64,
    /// Of these, those after which the session executed the same again.
    pub retried: u64,
}

/// The templates of a capture.
#[derive(Debug)]
pub struct Templates<'a> {
    /// Those that become scripts, the most frequent first.
    pub kept: Vec<Template<'a>>,
    /// The others.
    pub rare: Vec<Template<'a>>,
    /// The number of instances of all.
    pub total: u64,
    /// Transactions that ended in another way than by commit or rollback, by how they ended.
    pub failed: BTreeMap<String, u64>,
    /// Conflicts, by the level at which they happened.
    pub conflicts: BTreeMap<Option<Level>, Conflicts>,
    /// All transactions, by level.
    pub levels: BTreeMap<Option<Level>, u64>,
}

impl<'a> Templates<'a> {
    /// Finds the templates. Keeps the most frequent ones until they cover `coverage` percent, and those that
    /// write: however rare, they are what others can be wronged by.
    pub fn of(recorded: &'a Recorded, scope: Scope, coverage: f64) -> Templates<'a> {
        let mut found = Templates {
            kept: Vec::new(),
            rare: Vec::new(),
            total: 0,
            failed: BTreeMap::new(),
            conflicts: conflicts(&recorded.transactions),
            levels: BTreeMap::new(),
        };
        let mut units: Vec<Unit<'a>> = Vec::new();
        let mut requests: HashMap<&str, usize> = HashMap::new();
        for transaction in &recorded.transactions {
            *found.levels.entry(transaction.level).or_default() += 1;
            match &transaction.end {
                End::Failed(code) => {
                    *found.failed.entry(format!("failed with SQLSTATE {code}")).or_default() += 1;
                    continue;
                }
                End::Open => {
                    *found.failed.entry("unfinished".to_owned()).or_default() += 1;
                    continue;
                }
                End::Committed | End::RolledBack => {}
            }
            let request = transaction.request.as_deref().filter(|_| scope == Scope::Request);
            match request.map(|request| *requests.entry(request).or_insert(units.len())) {
                Some(place) if place < units.len() => units[place].push(transaction),
                _ => units.push(vec![transaction]),
            }
        }
        found.total = units.len() as u64;
        let mut groups: HashMap<Vec<String>, Vec<Unit<'a>>> = HashMap::new();
        for unit in units {
            groups.entry(key(&unit)).or_default().push(unit);
        }
        let mut groups: Vec<(Vec<String>, Vec<Unit<'a>>)> = groups.into_iter().collect();
        groups.sort_by(|(one, first), (other, second)| (second.len(), one).cmp(&(first.len(), other)));
        let mut names = BTreeSet::new();
        let mut covered = 0;
        for (_, units) in groups {
            let template = Template::of(units, &mut names);
            let enough =
                covered as f64 >= coverage / 100.0 * found.total as f64 && !writes(&template.instances[0]);
            if enough || found.kept.len() >= MOST {
                found.rare.push(template);
            } else {
                covered += template.count;
                found.kept.push(template);
            }
        }
        found
    }

    /// The number of instances of the templates that become scripts.
    pub fn covered(&self) -> u64 {
        self.kept.iter().map(|template| template.count).sum()
    }
}

impl<'a> Template<'a> {
    fn of(units: Vec<Unit<'a>>, names: &mut BTreeSet<String>) -> Template<'a> {
        let count = units.len() as u64;
        let mut levels = BTreeMap::new();
        let mut shapes: HashMap<Vec<(&str, usize)>, usize> = HashMap::new();
        for unit in &units {
            *levels.entry(unit[0].level).or_default() += 1;
            *shapes.entry(shape(unit)).or_default() += 1;
        }
        let most = shapes.iter().max_by(|one, other| (one.1, other.0).cmp(&(other.1, one.0)));
        let wanted = most.map(|(shape, _)| shape.clone()).unwrap_or_default();
        let instances: Vec<Unit<'a>> = units.into_iter().filter(|unit| shape(unit) == wanted).collect();
        let name = unique(name_of(&instances[0]), names);
        Template { name, count, instances, levels }
    }
}

/// The statements of a unit, in order.
pub fn statements<'a>(unit: &[&'a Transaction]) -> impl Iterator<Item = &'a Executed> {
    unit.iter().flat_map(|transaction| &transaction.statements)
}

/// The key by which units are of one template: their statements, with loops folded.
fn key(unit: &[&Transaction]) -> Vec<String> {
    let mut key = Vec::new();
    for transaction in unit {
        key.extend(transaction.block.then(|| format!("BEGIN {}", transaction.read_only)));
        let statements = transaction.statements.iter().map(|executed| executed.normal.key.clone());
        key.extend(folded(statements.collect()));
        key.push(format!("{:?}", transaction.end));
    }
    key
}

/// For each transaction a number, the same for those that differ in their values only.
pub fn alike(transactions: &[Transaction]) -> Vec<usize> {
    let mut known: HashMap<Vec<String>, usize> = HashMap::new();
    let number = |transaction| {
        let next = known.len();
        *known.entry(key(&[transaction])).or_insert(next)
    };
    transactions.iter().map(number).collect()
}

/// A sequence in which repetitions of up to some statements are left out.
fn folded(sequence: Vec<String>) -> Vec<String> {
    let mut folded: Vec<String> = Vec::new();
    for one in sequence {
        folded.push(one);
        let length = folded.len();
        let repeats = |body: &usize| folded[length - 2 * body..length - body] == folded[length - body..];
        if let Some(body) = (1..=LONGEST_BODY.min(length / 2)).find(repeats) {
            folded.truncate(length - body);
        }
    }
    folded
}

/// The statements of a unit with their numbers of values.
fn shape<'a>(unit: &[&'a Transaction]) -> Vec<(&'a str, usize)> {
    statements(unit).map(|executed| (executed.normal.key.as_str(), executed.normal.places.len())).collect()
}

/// What was done about conflicts.
fn conflicts(transactions: &[Transaction]) -> BTreeMap<Option<Level>, Conflicts> {
    let mut sessions: HashMap<u64, Vec<&Transaction>> = HashMap::new();
    for transaction in transactions {
        sessions.entry(transaction.session).or_default().push(transaction);
    }
    let mut found: BTreeMap<Option<Level>, Conflicts> = BTreeMap::new();
    for session in sessions.values() {
        for (place, transaction) in session.iter().enumerate().filter(|(_, one)| one.conflicted()) {
            let counted = found.entry(transaction.level).or_default();
            counted.failed += 1;
            let again = session.get(place + 1).is_some_and(|next| begins_alike(transaction, next));
            counted.retried += u64::from(again);
        }
    }
    found
}

/// True if a transaction begins with the statements, and the values of the first one, that another one
/// had until it failed.
fn begins_alike(failed: &Transaction, next: &Transaction) -> bool {
    let (mut failed_first, mut next_first) = (failed.statements.iter(), next.statements.iter());
    let values = |executed: &Executed| -> Vec<_> {
        executed.normal.places.iter().map(|place| place.value.clone()).collect()
    };
    let first = failed_first.next().zip(next_first.next());
    let alike = |one: &Executed, other: &Executed| one.normal.key == other.normal.key;
    first.is_some_and(|(one, other)| alike(one, other) && values(one) == values(other))
        && failed.statements.len() <= next.statements.len()
        && failed_first.zip(next_first).all(|(one, other)| alike(one, other))
}

fn reads(verb: &str) -> bool {
    matches!(verb, "select" | "values" | "table" | "with")
}

/// True if a statement of a unit writes, by its first word.
pub fn writes(unit: &[&Transaction]) -> bool {
    statements(unit).any(|executed| executed.role == Role::Work && !reads(&executed.normal.verb))
}

/// A name of what a unit does: what it writes, or else what it reads.
fn name_of(unit: &[&Transaction]) -> String {
    let mut deeds: Vec<(bool, (&str, &str))> = Vec::new();
    for executed in statements(unit).filter(|executed| executed.role == Role::Work) {
        let normal = &executed.normal;
        let reads = reads(&normal.verb);
        let deed = (normal.verb.as_str(), normal.table.as_deref().unwrap_or("something"));
        if !deeds.contains(&(reads, deed)) {
            deeds.push((reads, deed));
        }
    }
    let only_reads = deeds.iter().all(|(reads, _)| *reads);
    let named = deeds.iter().filter(|(reads, _)| *reads == only_reads).map(|(_, deed)| deed).take(4);
    let mut text = String::new();
    let mut before = "";
    for (verb, table) in named {
        text.push_str(if *verb == before { "" } else { verb });
        text.extend(["-", table, "-"]);
        before = verb;
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).take(60).collect();
    let text = text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if text.is_empty() { "transaction".to_owned() } else { text }
}

/// A name that no other template has.
fn unique(name: String, names: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
    let free = free.unwrap_or(name);
    names.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_words(text: &str) -> String {
        folded(text.split(' ').map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn loops_are_folded() {
        assert_eq!(folded_words("a b b b c"), "a b c");
        assert_eq!(folded_words("x a b a b a b y"), "x a b y");
        assert_eq!(folded_words("a b c"), "a b c");
        assert_eq!(folded_words("a a b b a a b b"), "a b");
    }

    #[test]
    fn names_are_unique() {
        let mut names = BTreeSet::new();
        let mut name = || unique("a".to_owned(), &mut names);
        assert_eq!([name(), name(), name()], ["a", "a-2", "a-3"]);
    }
}
