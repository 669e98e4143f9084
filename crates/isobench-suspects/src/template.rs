//! Transactions that differ in their values alone, and what is known of these values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use isobench_capture::Datum;
use isobench_isolation::Level;
use isobench_replay::{End, Recorded, Role, Transaction};
use isobench_sql::normal::{Normal, Source, Value};

use crate::folding::folded;
use crate::locks::{Link, Lock, join, links};

/// Transactions of one level that differ in their values alone.
#[derive(Debug)]
pub struct Template {
    /// Its number among all.
    pub number: usize,
    /// Its statements, repetitions left out.
    pub statements: Vec<Step>,
    /// The ranges of statements that were repeated.
    pub loops: Vec<Range<usize>>,
    /// The number of its transactions.
    pub count: u64,
    /// The level at which it ran.
    pub level: Level,
    /// True if it is a block, or several statements of one message.
    pub block: bool,
    /// The line of the capture with its first statement, of the first one.
    pub line: u64,
    /// The routes of its requests, with how often each was seen.
    pub routes: BTreeMap<String, u64>,
    /// A trace to which one belongs.
    pub request: Option<String>,
    /// What is known of values.
    pub values: Vec<Known>,
    /// Those of the first transaction, to be shown.
    pub shown: Vec<Option<Option<String>>>,
    /// The values that came together with those of advisory locks.
    pub(crate) links: Vec<Link>,
}

/// A statement of a template.
#[derive(Debug)]
pub struct Step {
    /// Its normal form, of the first transaction.
    pub normal: Normal,
    /// For each of its lists whether there were several elements in any transaction.
    pub twice: Vec<bool>,
    /// The number of its first value among those of the template. Values of a repeated statement follow twice:
    /// those of the first and of the last time.
    pub first_value: usize,
    /// The number of its values, of one time.
    pub values: usize,
    /// True if it was executed, and found or returned a row, each time.
    pub finds: bool,
    /// True if it returned no row in some transaction.
    pub finds_none: bool,
    /// The names of the columns of its result.
    pub columns: Vec<String>,
    /// It is a savepoint, or another statement by its text.
    pub savepoint: Option<String>,
}

/// What is known of a value in all transactions of a template.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Known {
    /// The different values that were seen, as texts, up to some; `None` is NULL.
    pub seen: BTreeSet<Option<String>>,
    /// How often it was there.
    pub times: u64,
    /// The column that it is compared with or assigned to.
    pub column: Option<String>,
    /// The literal, if it was one, and the same, each time.
    pub literal: Option<String>,
    /// True if it was a literal at any time.
    pub any_literal: bool,
    /// The number of its parameter, if it was one each time.
    pub parameter: Option<usize>,
    /// The earlier value that it was equal to each time, and how many different values of both were seen.
    pub equal: Option<(usize, usize)>,
    /// The statement, and the name of the column, of an earlier result of one row with this value each time, if the value
    /// is compared with a column of that name.
    pub returned: Option<usize>,
    /// True in a condition.
    pub compared: bool,
    /// True if NULL was seen.
    pub null: bool,
    /// Type of a literal that stood alone.
    pub cast: Option<String>,
    /// True for values of the last repetition.
    pub of_last: bool,
    /// What is known of it if an advisory lock is made of it.
    pub lock: Option<Lock>,
}

/// The most different values of a place that are kept.
const MOST_SEEN: usize = 16;

/// The most statements of a template that is judged.
pub const MOST_STATEMENTS: usize = 80;

/// A statement as it was executed.
struct Executed {
    normal: Normal,
    savepoint: Option<String>,
    rows: Option<u64>,
    columns: Vec<String>,
    /// The recorded rows of its result, by column.
    results: Vec<BTreeMap<String, String>>,
    line: u64,
    /// When it was sent, and when its answer came.
    time: [u64; 2],
}

/// The transactions of a template, to be compared.
struct Group<'a> {
    transactions: Vec<&'a Transaction>,
    line: u64,
}

/// The templates of a capture, those that write first, then the most frequent. `default`: the level of sessions
/// that set none.
pub fn templates(recorded: &Recorded, default: Level) -> Vec<Template> {
    templates_of(recorded, default).0
}

/// The same, with the number of the template of each transaction of [`Recorded::transactions`], then of
/// [`Recorded::beyond`].
pub(crate) fn templates_of(recorded: &Recorded, default: Level) -> (Vec<Template>, Vec<Option<usize>>) {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known: HashMap<(Level, bool, String), usize> = HashMap::new();
    let mut places = Vec::new();
    for transaction in recorded.transactions.iter().chain(&recorded.beyond) {
        let level = transaction.level.unwrap_or(default);
        let executed = executed(transaction);
        if executed.is_empty() {
            places.push(NONE);
            continue;
        }
        let kept = folded(&executed.iter().map(|one| one.normal.key.as_str()).collect::<Vec<_>>());
        let keys: Vec<&str> = kept.places.iter().map(|all| executed[all[0]].normal.key.as_str()).collect();
        let next = groups.len();
        let place = *known.entry((level, transaction.block, keys.join("\n"))).or_insert(next);
        if place == next {
            let line = executed.first().map_or(0, |first| first.line);
            groups.push(Group { transactions: Vec::new(), line });
        }
        groups[place].transactions.push(transaction);
        places.push(place);
    }
    let mut order: Vec<usize> = (0..groups.len()).collect();
    let writes = |place: &usize| {
        groups[*place].transactions[0].statements.iter().any(|one| is_write(&one.normal.verb))
    };
    order.sort_by_key(|place| (!writes(place), std::cmp::Reverse(groups[*place].transactions.len()), *place));
    let mut numbers = vec![0; groups.len()];
    for (number, place) in order.iter().enumerate() {
        numbers[*place] = number;
    }
    let templates =
        order.iter().enumerate().map(|(number, place)| template(number, &groups[*place], default));
    let mut templates: Vec<Template> = templates.collect();
    join(&mut templates);
    let number = |place: usize| numbers.get(place).copied();
    (templates, places.into_iter().map(number).collect())
}

/// No template: none of its statements did anything.
const NONE: usize = usize::MAX;

/// A statement as it ran in one transaction.
pub(crate) struct Run {
    /// Its number in the template.
    pub(crate) step: usize,
    /// Its values in conditions, by column.
    pub(crate) compared: Vec<(String, String)>,
    /// Its other values, by column.
    pub(crate) assigned: Vec<(String, String)>,
    /// How many rows it found, if that is known.
    pub(crate) rows: Option<u64>,
    /// The recorded rows of its result, by column.
    pub(crate) results: Vec<BTreeMap<String, String>>,
    /// Its normal form.
    pub(crate) key: String,
    /// The line of the capture that has it.
    pub(crate) line: u64,
    /// When it was sent, and when its answer came.
    pub(crate) time: [u64; 2],
}

/// The statements of a transaction as they ran.
pub(crate) fn runs(transaction: &Transaction) -> Vec<Run> {
    let executed = executed(transaction);
    let kept = folded(&executed.iter().map(|one| one.normal.key.as_str()).collect::<Vec<_>>());
    let mut found = Vec::new();
    for (step, places) in kept.places.iter().enumerate() {
        for place in places {
            let one = &executed[*place];
            let (mut compared, mut assigned) = (Vec::new(), Vec::new());
            for value in one.normal.values().into_iter().flatten() {
                let text = value.known.as_ref().and_then(|known| known.as_ref().map(shown));
                if let (Some(column), Some(text)) = (value.column.clone(), text) {
                    if value.compared { compared.push((column, text)) } else { assigned.push((column, text)) }
                }
            }
            let results = one.results.clone();
            let (key, line, time) = (one.normal.key.clone(), one.line, one.time);
            found.push(Run { step, compared, assigned, rows: one.rows, results, key, line, time });
        }
    }
    found
}

/// True for the first word of a statement that writes.
pub fn is_write(verb: &str) -> bool {
    !["select", "values", "table", "with"].contains(&verb.to_ascii_lowercase().as_str())
}

/// The statements of a transaction, with those that no script has, in order.
fn executed(transaction: &Transaction) -> Vec<Executed> {
    let mut found = Vec::new();
    let mut beyond = transaction.beyond.iter().peekable();
    for (number, one) in transaction.statements.iter().enumerate() {
        while let Some(other) = beyond.next_if(|other| other.after <= number) {
            found.push(of_beyond(other));
        }
        let savepoint = match &one.role {
            Role::Savepoint(words, name) => Some(format!("{words} \"{}\"", name.replace('"', "\"\""))),
            _ => None,
        };
        // A statement that the server refused to read did nothing, and never will.
        let refused = one
            .answer
            .error
            .as_ref()
            .is_some_and(|error| error.code.starts_with("42") || error.code == "25P02");
        if refused {
            continue;
        }
        let normal = match &one.role {
            // Frameworks number their savepoints.
            Role::Savepoint(words, _) => Normal { key: (*words).to_owned(), items: Vec::new() },
            _ => Normal::of(&one.sent, &one.parameters),
        };
        let columns: Vec<String> = one.columns.iter().map(|column| column.name.clone()).collect();
        let named = |row: &Vec<Option<Datum>>| -> BTreeMap<String, String> {
            let pairs = columns.iter().zip(row);
            pairs.filter_map(|(name, value)| Some((name.clone(), shown(value.as_ref()?)))).collect()
        };
        let results = one.answer.values.iter().map(named).collect();
        let (rows, line, time) = (rows(&one.answer), one.line, [one.at, one.at + one.took]);
        found.push(Executed { normal, savepoint, rows, columns, results, line, time });
    }
    found.extend(beyond.map(of_beyond));
    found
}

fn of_beyond(beyond: &isobench_replay::Beyond) -> Executed {
    let normal = Normal::of(&beyond.sent, &beyond.parameters);
    Executed {
        normal,
        savepoint: None,
        rows: None,
        columns: Vec::new(),
        results: Vec::new(),
        line: beyond.line,
        time: [0, u64::MAX],
    }
}

/// How many rows a statement found, changed or returned, if its answer says so.
fn rows(answer: &isobench_capture::Answer) -> Option<u64> {
    if answer.error.is_some() {
        return None;
    }
    let tag = answer.tag.as_deref()?;
    let counted = ["SELECT", "UPDATE", "DELETE", "INSERT", "MERGE"].iter().any(|word| tag.starts_with(word));
    tag.rsplit(' ').next()?.parse().ok().filter(|_| counted)
}

fn template(number: usize, group: &Group<'_>, default: Level) -> Template {
    let first = group.transactions[0];
    let mut made = Made::of(first);
    for transaction in &group.transactions {
        made.add(transaction);
    }
    made.compare();
    let mut routes = BTreeMap::new();
    for route in group.transactions.iter().filter_map(|one| one.route.clone()) {
        *routes.entry(route).or_default() += 1;
    }
    let mut template = Template {
        number,
        statements: made.steps,
        loops: made.loops,
        count: group.transactions.len() as u64,
        level: first.level.unwrap_or(default),
        block: first.block,
        line: group.line,
        routes,
        request: group.transactions.iter().find_map(|one| one.request.clone()),
        values: made.values,
        shown: made.rows.first().cloned().unwrap_or_default(),
        links: Vec::new(),
    };
    template.links = links(&template, &made.rows);
    template
}

/// The values of a transaction: absent, NULL, or a text.
pub(crate) type Values = Vec<Option<Option<String>>>;

/// The results of a transaction's statements that returned one row, by column.
type Results = Vec<BTreeMap<String, String>>;

/// A template in the making.
struct Made {
    steps: Vec<Step>,
    loops: Vec<Range<usize>>,
    values: Vec<Known>,
    /// The values of each transaction: absent, NULL, or a text.
    rows: Vec<Values>,
    /// For each transaction the results of its statements that returned one row, by column.
    results: Vec<Results>,
}

impl Made {
    fn of(first: &Transaction) -> Made {
        let executed = executed(first);
        let kept = folded(&executed.iter().map(|one| one.normal.key.as_str()).collect::<Vec<_>>());
        let mut steps = Vec::new();
        let mut values = Vec::new();
        for places in &kept.places {
            let one = &executed[places[0]];
            let count = one.normal.values().len();
            let step = Step {
                twice: vec![false; one.normal.lists().len()],
                normal: one.normal.clone(),
                first_value: values.len(),
                values: count,
                finds: true,
                finds_none: false,
                columns: one.columns.clone(),
                savepoint: one.savepoint.clone(),
            };
            steps.push(step);
            values.resize(values.len() + 2 * count, Known::default());
            let from = values.len() - count;
            values[from..].iter_mut().for_each(|value: &mut Known| value.of_last = true);
        }
        Made { steps, loops: Vec::new(), values, rows: Vec::new(), results: Vec::new() }
    }

    /// Adds the values of a transaction.
    fn add(&mut self, transaction: &Transaction) {
        let executed = executed(transaction);
        let kept = folded(&executed.iter().map(|one| one.normal.key.as_str()).collect::<Vec<_>>());
        let ended = matches!(transaction.end, End::Committed | End::RolledBack);
        for range in kept.loops {
            if !self.loops.contains(&range) {
                self.loops.push(range);
            }
        }
        let mut row = vec![None; self.values.len()];
        for (step, places) in self.steps.iter_mut().zip(&kept.places) {
            let all =
                |test: &dyn Fn(u64) -> bool| places.iter().all(|at| executed[*at].rows.is_some_and(test));
            step.finds &= all(&|rows| rows > 0);
            step.finds_none |= ended && places.iter().any(|at| executed[*at].rows == Some(0));
            for at in places {
                for (known, now) in step.twice.iter_mut().zip(executed[*at].normal.lists()) {
                    *known |= now;
                }
            }
            let times = [places.first(), places.last().filter(|_| places.len() > 1)];
            for (time, place) in times.into_iter().enumerate() {
                let Some(place) = place else { continue };
                let own = executed[*place].normal.values();
                for (number, value) in own.into_iter().enumerate() {
                    let at = step.first_value + time * step.values + number;
                    let (Some(value), Some(slot)) = (value, self.values.get_mut(at)) else { continue };
                    row[at] = slot.see(value);
                }
            }
        }
        self.rows.push(row);
        let only = |places: &Vec<usize>| match executed[places[0]].results.as_slice() {
            [row] if executed[places[0]].rows == Some(1) => row.clone(),
            _ => BTreeMap::new(),
        };
        self.results.push(kept.places.iter().map(only).collect());
    }

    /// Finds equal values, and joins loops that overlap.
    fn compare(&mut self) {
        self.loops.sort_by_key(|range| (range.start, range.end));
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in std::mem::take(&mut self.loops) {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        self.loops = joined;
        for later in 0..self.values.len() {
            if self.values[later].times == 0 {
                continue;
            }
            let found = (0..later).find_map(|earlier| Some((earlier, self.equal(earlier, later)?)));
            self.values[later].equal = found;
            self.values[later].returned = self.returned(later);
        }
    }

    /// The statement whose result had a value of a condition in its column of the same name, each time.
    fn returned(&self, value: usize) -> Option<usize> {
        let known = &self.values[value];
        let name = known.column.as_ref().filter(|_| known.compared)?;
        let own = self.steps.iter().rposition(|step| step.first_value <= value)?;
        (0..own).rev().find(|step| {
            let same = |(row, results): (&Values, &Results)| match &row[value] {
                None => true,
                Some(Some(text)) => results.get(*step).and_then(|one| one.get(name)) == Some(text),
                Some(None) => false,
            };
            self.rows.iter().zip(&self.results).all(same)
        })
    }

    /// How many different values two places shared, if they were equal in each transaction that has the later one.
    fn equal(&self, earlier: usize, later: usize) -> Option<usize> {
        let mut shared = BTreeSet::new();
        for row in &self.rows {
            match (&row[earlier], &row[later]) {
                (_, None) => {}
                (Some(Some(one)), Some(Some(other))) if one == other => {
                    shared.insert(one);
                }
                _ => return None,
            }
        }
        (!shared.is_empty()).then_some(shared.len())
    }
}

impl Known {
    /// Notes a value, and returns it as text.
    #[expect(clippy::option_option, reason = "not recorded, NULL, or a value")]
    fn see(&mut self, value: &Value) -> Option<Option<String>> {
        let first = self.times == 0;
        self.times += 1;
        match &value.source {
            Source::Parameter(number) => {
                self.parameter = Some(*number).filter(|_| first || self.parameter == Some(*number));
                self.literal = None;
            }
            Source::Literal(text) => {
                self.parameter = None;
                self.any_literal = true;
                self.literal = Some(text.clone()).filter(|_| first || self.literal.as_ref() == Some(text));
            }
        }
        if first {
            self.column.clone_from(&value.column);
            self.cast.clone_from(&value.cast);
            self.compared = value.compared;
        }
        let known = value.known.as_ref()?.as_ref().map(shown);
        self.null |= known.is_none();
        if self.seen.len() < MOST_SEEN {
            self.seen.insert(known.clone());
        }
        Some(known)
    }
}

/// A value as text, equal for equal values.
fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Text(text) => text.clone(),
        Datum::Hex { hex } => format!("\\x{hex}"),
        Datum::Hash { hash, .. } => format!("hash {hash}"),
    }
}
