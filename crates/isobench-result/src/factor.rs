//! The factors: what the cells of a result differ in, a row for each kind.
//!
//! A cell is told from others by its [`Assignment`], the value of every factor. Pairs and trends match
//! cells by it; names, columns, selectors and the choice of the cells that are compared are views of
//! the table. A new factor is kept in the cell's `varied` under its name: a row here, and it has a
//! column, a title, a place in names and in the axes of pictures. Not here: what a factor does
//! (`isobench-comparison`), and its option (`isobench-plan`).

pub(crate) mod names;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use isobench_isolation::Allocation;
use isobench_plan::{MIXED, Selector};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::document::{Cell, Document, ScriptLevel};
use crate::numbers::{count, counted, optional, short};
use crate::view::Heading;
use crate::words::distinct;

pub use names::{BACKGROUND, ENDPOINT, FAULT, SERVER_BIN, SERVER_VERSION, SETTING, STANDBY};

/// A kind of factor.
pub struct Kind {
    /// Its identity, which other parts of the program know it by.
    pub id: FactorId,
    /// Its name: the cell's member, the column in CSV, the title above a column. Of what is
    /// in `varied` the key there, or what the key begins with.
    pub name: &'static str,
    /// The option that gives its values.
    pub option: &'static str,
    /// The unit of its values; empty if they have none.
    pub unit: &'static str,
    /// Its meaning, without a full stop.
    pub meaning: &'static str,
    /// Which comparison of throughput is between cells that differ in it.
    pub compared: Compared,
    /// True if the cells of two results are matched by it; else a pair warns of a difference.
    pub matched: bool,
    /// When a cell's name has it.
    pub named: Named,
    /// Its value in a cell.
    pub of: Of,
    /// A value in a sentence.
    said: fn(&FactorValue) -> String,
    /// A value in the name of a cell, by which services keep a series.
    called: fn(&FactorValue) -> String,
}

/// The identity of a kind of factor. A parameter of the plan may have the name of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactorId {
    /// The scripts.
    Workload,
    /// The size of the tables.
    Scale,
    /// The number of clients.
    Clients,
    /// The number of workers.
    Jobs,
    /// The query protocol.
    Protocol,
    /// The retry policy.
    Backoff,
    /// The rate that was asked for.
    Rate,
    /// The strategy.
    Strategy,
    /// Whatever is in `varied`.
    Varied,
    /// The isolation level.
    Level,
}

/// Which comparison of throughput is between cells that differ in a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// That to the first level.
    ToFirstLevel,
    /// That to the first strategy.
    ToFirstStrategy,
    /// That to the first settings, version, fault …
    ToFirstSetting,
    /// None: they are different situations.
    Never,
}

/// When the name of a cell has a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// Always.
    Always,
    /// If cells differ in it.
    IfVarying,
}

/// The source of a factor's value.
pub enum Of {
    /// Words.
    Text(fn(&Cell) -> Cow<'_, str>),
    /// A whole number.
    Count(fn(&Cell) -> u64),
    /// A number that may be missing.
    Number(fn(&Cell) -> Option<f64>),
    /// The cell's `varied`, at exactly the kind's name.
    Varied,
    /// The same, at every name that begins with the kind's.
    VariedFrom,
}

/// The value of a factor.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum FactorValue {
    /// None.
    Nothing,
    /// Words.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
}

/// The kinds, in the order of columns: those that are members of a cell, then those of `varied`, the
/// first that fits a name; the level last.
pub static KINDS: &[Kind] = &[
    Kind {
        id: FactorId::Workload,
        name: "workload",
        option: "--workload",
        meaning: "script or scripts that the clients run",
        of: Of::Text(|cell| cell.workload.as_str().into()),
        said: |value| format!("workload {value}"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Scale,
        name: "scale",
        option: "--scale",
        meaning: "size of the tables",
        of: Of::Count(|cell| cell.scale.into()),
        said: |value| format!("scale {}", value.shown()),
        called: |value| format!("scale {value}"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Clients,
        name: "clients",
        option: "--clients",
        meaning: "simulated users, each with a connection",
        named: Named::Always,
        of: Of::Count(|cell| cell.clients.into()),
        said: |value| value.counted("client"),
        called: |value| value.counted("client"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Jobs,
        name: "jobs",
        option: "--jobs",
        meaning: "worker threads that drive the clients",
        matched: false,
        of: Of::Count(|cell| cell.jobs.into()),
        said: |value| value.counted("worker"),
        called: |value| value.counted("worker"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Protocol,
        name: "protocol",
        option: "--protocol",
        meaning: "query protocol",
        of: Of::Text(|cell| cell.protocol.as_str().into()),
        said: |value| format!("{value} protocol"),
        called: |value| format!("{value} protocol"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Backoff,
        name: "backoff",
        option: "--backoff",
        meaning: "retry policy: how long a client waits before it tries again",
        of: Of::Text(|cell| cell.backoff.as_str().into()),
        said: |value| format!("backoff {value}"),
        called: |value| format!("backoff {value}"),
        ..MEMBER
    },
    Kind {
        id: FactorId::Rate,
        name: "rate",
        option: "--rate",
        unit: "per s",
        meaning: "transactions that were to be begun per second; latency counts from the scheduled start",
        of: Of::Number(|cell| cell.rate),
        said: |value| value.number("no rate", |rate| format!("{} per second wanted", short(rate))),
        called: |value| value.number("no rate", |rate| format!("{} per s wanted", short(rate))),
        ..MEMBER
    },
    Kind {
        id: FactorId::Strategy,
        name: "strategy",
        option: "--strategies",
        meaning: "how the application copes with conflicts",
        compared: Compared::ToFirstStrategy,
        of: Of::Text(|cell| cell.strategy().into()),
        ..MEMBER
    },
    Kind {
        name: SERVER_VERSION,
        option: "--vary server-version=",
        meaning: "version of the server under test",
        ..OF_SERVER
    },
    Kind {
        name: SERVER_BIN,
        option: "--vary server-bin=",
        meaning: "folder of the server's programs",
        ..OF_SERVER
    },
    Kind {
        name: ENDPOINT,
        option: "--vary endpoint=",
        meaning: "way by which clients reach the server: direct, or the connection string of a pooler or proxy",
        ..OF_SERVER
    },
    Kind {
        name: STANDBY,
        option: "--standby",
        meaning: "how standbys follow, and what a commit waits for",
        ..OF_SERVER
    },
    Kind {
        name: BACKGROUND,
        option: "--background",
        meaning: "what another session does on the server",
        ..OF_SERVER
    },
    Kind {
        name: FAULT,
        option: "--fault",
        meaning: "what happens to the server, and at which second of the measured part",
        ..OF_SERVER
    },
    Kind {
        name: SETTING,
        option: "--vary setting:NAME=",
        meaning: "a setting of the server or of all sessions, read back",
        of: Of::VariedFrom,
        ..OF_SERVER
    },
    PARAMETER,
    Kind {
        id: FactorId::Level,
        name: "level",
        option: "--levels",
        meaning: "isolation level asked for; the one in effect where none was",
        compared: Compared::ToFirstLevel,
        named: Named::Always,
        of: Of::Text(|cell| cell.level.name().into()),
        ..MEMBER
    },
];

/// A member of the cell, in words that are its value.
const MEMBER: Kind = Kind {
    id: FactorId::Workload,
    name: "",
    option: "",
    unit: "",
    meaning: "",
    compared: Compared::Never,
    matched: true,
    named: Named::IfVarying,
    of: Of::Text(|_| Cow::Borrowed("")),
    said: FactorValue::to_string,
    called: FactorValue::to_string,
};

/// A parameter that the plan names: of the workload, of its tables, of the scripts.
const PARAMETER: Kind = Kind {
    id: FactorId::Varied,
    option: "--vary NAME=",
    meaning: "a parameter that the plan varies",
    of: Of::VariedFrom,
    ..MEMBER
};

/// Something about the server, whose values are compared with the first one.
const OF_SERVER: Kind = Kind { compared: Compared::ToFirstSetting, of: Of::Varied, ..PARAMETER };

impl FactorId {
    /// The kind that is a member of a cell.
    fn kind(self) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.id == self)
    }
}

impl Kind {
    /// The kind of what is in `varied` under a name.
    pub fn of_varied(name: &str) -> &'static Kind {
        let fits = |kind: &&Kind| match kind.of {
            Of::Varied => kind.name == name,
            Of::VariedFrom => name.starts_with(kind.name),
            Of::Text(_) | Of::Count(_) | Of::Number(_) => false,
        };
        KINDS.iter().find(fits).unwrap_or(&PARAMETER)
    }

    /// Those that are members of a cell.
    pub fn members() -> impl Iterator<Item = &'static Kind> {
        KINDS.iter().filter(|kind| kind.id != FactorId::Varied)
    }

    /// Its value in a cell; nothing if it isn't a member.
    pub fn value(&self, cell: &Cell) -> FactorValue {
        match self.of {
            Of::Text(of) => FactorValue::Text(of(cell).into_owned()),
            Of::Count(of) => FactorValue::Count(of(cell)),
            Of::Number(of) => of(cell).map_or(FactorValue::Nothing, FactorValue::Number),
            Of::Varied | Of::VariedFrom => FactorValue::Nothing,
        }
    }

    /// True if two cells have the same value of a member.
    fn is_same(&self, one: &Cell, other: &Cell) -> bool {
        match self.of {
            Of::Text(of) => of(one) == of(other),
            Of::Count(of) => of(one) == of(other),
            Of::Number(of) => of(one) == of(other),
            Of::Varied | Of::VariedFrom => true,
        }
    }
}

/// True if two cells differ in nothing but what these comparisons are between.
pub fn alike(one: &Cell, other: &Cell, between: &[Compared]) -> bool {
    let members = || Kind::members().filter(|kind| !between.contains(&kind.compared));
    let rest = |cell: &'_ Cell| -> Vec<(String, String)> {
        let rest = cell.varied.iter().filter(|(name, _)| !between.contains(&Kind::of_varied(name).compared));
        rest.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    members().all(|kind| kind.is_same(one, other)) && (one.varied == other.varied || rest(one) == rest(other))
}

/// True if a cell has every value that a selector gives. What is varied comes before a member of the
/// same name.
pub fn selects(cell: &Cell, selector: &Selector) -> bool {
    let Selector { level, strategy, clients, varied } = selector;
    let has = |(name, wanted): (&String, &String)| match cell.varied.get(name) {
        Some(value) => value == wanted,
        None if of_script(cell, name, wanted) => true,
        None => Kind::members().any(|kind| kind.name == name && kind.value(cell).to_string() == *wanted),
    };
    let is_level = |level: &String| match &cell.level.allocation {
        Some(_) => level == MIXED,
        None => *level == cell.level.name(),
    };
    level.as_ref().is_none_or(is_level)
        && strategy.as_ref().is_none_or(|strategy| strategy == cell.strategy())
        && clients.is_none_or(|clients| clients == cell.clients)
        && varied.iter().all(has)
}

/// True if a script, called as in an allocation, has this level in a cell.
fn of_script(cell: &Cell, name: &str, wanted: &str) -> bool {
    let called = cell.level.scripts.iter().filter(|script| Allocation::is_called(&script.script, name));
    called.map(ScriptLevel::mode).any(|mode| mode.to_string() == wanted || mode.level.short() == wanted)
}

impl FactorValue {
    /// The value as people read it.
    fn shown(&self) -> String {
        match self {
            FactorValue::Count(number) => count(*number),
            FactorValue::Number(number) => short(*number),
            FactorValue::Nothing => optional(None),
            FactorValue::Text(text) => text.clone(),
        }
    }

    fn counted(&self, what: &str) -> String {
        match self {
            FactorValue::Count(number) => counted(*number, what),
            other => format!("{other} {what}"),
        }
    }

    fn number(&self, missing: &str, said: fn(f64) -> String) -> String {
        match self {
            FactorValue::Number(number) => said(*number),
            _ => missing.to_owned(),
        }
    }
}

/// The value as programs read it; empty if there is none.
impl std::fmt::Display for FactorValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FactorValue::Nothing => Ok(()),
            FactorValue::Text(text) => f.write_str(text),
            FactorValue::Count(number) => write!(f, "{number}"),
            FactorValue::Number(number) => write!(f, "{number}"),
        }
    }
}

/// The value of every factor of a cell: what it is, whatever was measured. Equal ones of two results
/// are the same cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    members: BTreeMap<FactorId, FactorValue>,
    varied: BTreeMap<String, String>,
}

impl Assignment {
    /// That of a cell, without the factors in which the cells of two results may differ.
    pub fn of(cell: &Cell) -> Assignment {
        let members = Kind::members().filter(|kind| kind.matched);
        Assignment {
            members: members.map(|kind| (kind.id, kind.value(cell))).collect(),
            varied: cell.varied.clone(),
        }
    }

    /// The value of a factor that is a member of cells.
    pub fn value(&self, id: FactorId) -> &FactorValue {
        self.members.get(&id).unwrap_or(&FactorValue::Nothing)
    }

    /// The same as text.
    pub fn text(&self, id: FactorId) -> String {
        self.value(id).to_string()
    }

    /// The level asked for; the one in effect, where none was.
    pub fn level(&self) -> &str {
        match self.value(FactorId::Level) {
            FactorValue::Text(level) => level,
            _ => "",
        }
    }

    /// What is in `varied`.
    pub fn varied(&self) -> &BTreeMap<String, String> {
        &self.varied
    }

    /// The assignment without what is in `varied` under some names.
    #[must_use]
    pub fn without(mut self, is_left_out: impl Fn(&str) -> bool) -> Assignment {
        self.varied.retain(|name, _| !is_left_out(name));
        self
    }

    /// True if nothing differs but this member, whether it does or not.
    pub fn is_same_but(&self, other: &Assignment, id: FactorId) -> bool {
        let rest = |one: &Assignment| {
            let mut one = one.clone();
            one.members.remove(&id);
            one
        };
        rest(self) == rest(other)
    }

    /// True if this member differs, and nothing else.
    pub fn differs_only_in(&self, other: &Assignment, id: FactorId) -> bool {
        self.value(id) != other.value(id) && self.is_same_but(other, id)
    }
}

/// The members by their names, and `varied`.
impl Serialize for Assignment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (id, value) in &self.members {
            if *id == FactorId::Level {
                map.serialize_entry("varied", &self.varied)?;
            }
            map.serialize_entry(id.kind().map_or("", |kind| kind.name), value)?;
        }
        map.end()
    }
}

/// The names of cells: the level, the clients, and what varies.
pub struct Names {
    always: Vec<&'static Kind>,
    varying: Vec<&'static Kind>,
    parameters: Vec<String>,
    /// What is left out at the beginning of a parameter's name.
    prefix: &'static str,
}

impl Names {
    /// The names that tell these cells from one another.
    pub fn of<'a>(cells: impl Iterator<Item = &'a Assignment>) -> Names {
        let all: Vec<&Assignment> = cells.collect();
        let (always, sometimes): (Vec<&Kind>, Vec<&Kind>) = Kind::members()
            .filter(|kind| kind.id != FactorId::Level)
            .partition(|kind| kind.named == Named::Always);
        let differ =
            |same: &dyn Fn(&Assignment, &Assignment) -> bool| all.windows(2).any(|two| !same(two[0], two[1]));
        let varies = |kind: &&Kind| differ(&|one, other| one.value(kind.id) == other.value(kind.id));
        let parameters: BTreeSet<&String> = all.iter().flat_map(|one| one.varied.keys()).collect();
        let is_varying =
            |name: &&String| differ(&|one, other| one.varied.get(*name) == other.varied.get(*name));
        Names {
            always,
            varying: sometimes.into_iter().filter(varies).collect(),
            parameters: parameters.into_iter().filter(is_varying).cloned().collect(),
            prefix: "",
        }
    }

    /// The same with settings called by their names alone.
    #[must_use]
    pub fn for_people(self) -> Names {
        Names { prefix: SETTING, ..self }
    }

    /// The level, the number of clients, and what varies.
    pub fn of_cell(&self, cell: &Assignment) -> String {
        format!("{}, {}", cell.level(), self.others(cell))
    }

    /// The name without the level.
    pub fn others(&self, cell: &Assignment) -> String {
        self.words(cell, |kind, value| (kind.called)(value)).join(", ")
    }

    /// The name as that of a file, with every digit.
    pub fn of_file(&self, cell: &Assignment) -> String {
        let exact = |kind: &Kind, value: &FactorValue| match value {
            FactorValue::Number(number) => format!("{} {number}", kind.name),
            _ => (kind.called)(value),
        };
        let plain = |word: String| word.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let words = std::iter::once(cell.level().to_owned()).chain(self.words(cell, exact));
        words.map(plain).collect::<Vec<_>>().join("-")
    }

    /// A parameter may be a member, too, such as the scale.
    fn words(&self, cell: &Assignment, word: fn(&Kind, &FactorValue) -> String) -> Vec<String> {
        let members = self.always.iter().chain(&self.varying).map(|kind| word(kind, cell.value(kind.id)));
        let parameters = self.parameters.iter().map(|key| {
            let name = key.strip_prefix(self.prefix).unwrap_or(key);
            match cell.varied.get(key) {
                Some(value) => format!("{name} {value}"),
                None => format!("no {name}"),
            }
        });
        distinct(members.chain(parameters))
    }
}

/// A factor of a document: a kind, and of parameters which one.
#[derive(Clone)]
pub struct Factor {
    kind: &'static Kind,
    /// Its key in `varied`; empty if it is a member of cells.
    parameter: String,
    /// True if all its values are numbers.
    numeric: bool,
}

impl Factor {
    fn member(kind: &'static Kind) -> Factor {
        Factor { kind, parameter: String::new(), numeric: !matches!(kind.of, Of::Text(_)) }
    }

    /// Its identity.
    pub fn id(&self) -> FactorId {
        self.kind.id
    }

    /// True if it is in `varied`.
    pub fn is_varied(&self) -> bool {
        self.kind.id == FactorId::Varied
    }

    /// True if its values are numbers, which are right-aligned.
    pub fn is_numeric(&self) -> bool {
        self.numeric
    }

    /// Its name above a column and before a value.
    pub fn title(&self) -> &str {
        if self.is_varied() {
            self.parameter.strip_prefix(SETTING).unwrap_or(&self.parameter)
        } else {
            self.kind.name
        }
    }

    /// The heading of its column.
    pub fn heading(&self) -> Heading {
        Heading::new(self.title(), self.kind.unit, self.numeric)
    }

    /// Its meaning, without a full stop.
    pub fn meaning(&self) -> &'static str {
        self.kind.meaning
    }

    /// Its value in a cell, for a column of this title.
    pub fn value(&self, cell: &Cell) -> String {
        if self.is_varied() {
            cell.varied.get(&self.parameter).cloned().unwrap_or_default()
        } else {
            self.kind.value(cell).shown()
        }
    }

    /// Its value in a cell, for a sentence: "8 clients", "foreign-keys on".
    pub fn said(&self, cell: &Cell) -> String {
        if self.is_varied() {
            self.named(cell).trim_end().to_owned()
        } else {
            (self.kind.said)(&self.kind.value(cell))
        }
    }

    /// Its title and its value: "clients 8".
    pub fn named(&self, cell: &Cell) -> String {
        format!("{} {}", self.title(), self.value(cell))
    }

    /// True if the cells of a document differ in it.
    fn varies(&self, document: &Document) -> bool {
        let mut values = document.cells.iter().map(|cell| self.value(cell));
        let first = values.next();
        values.any(|value| Some(value) != first)
    }
}

/// All factors of a document but the level, the varied parameters last and in the plan's order.
fn all(document: &Document) -> impl Iterator<Item = Factor> {
    let members = Kind::members().filter(|kind| kind.id != FactorId::Level);
    members.map(Factor::member).chain(parameters(document))
}

/// The factors in which the cells of a document differ.
pub fn varying(document: &Document) -> Vec<Factor> {
    all(document).filter(|factor| factor.varies(document)).collect()
}

/// The factors that all cells of a document have in common.
pub fn constant(document: &Document) -> Vec<Factor> {
    all(document).filter(|factor| !factor.varies(document)).collect()
}

/// True if the cells of a document differ in their strategies.
pub fn strategies_vary(document: &Document) -> bool {
    let first = document.cells.first().map(Cell::strategy);
    document.cells.iter().any(|cell| Some(cell.strategy()) != first)
}

fn parameters(document: &Document) -> Vec<Factor> {
    let varied = || document.cells.iter().map(|cell| &cell.varied);
    let planned = document.plan.vary().iter().map(|parameter| &parameter.name);
    let names = distinct(planned.chain(varied().flat_map(BTreeMap::keys)));
    let numeric = |name: &String| {
        varied()
            .filter_map(|varied| varied.get(name))
            .all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    };
    let factor = |name: &String| Factor {
        kind: Kind::of_varied(name),
        parameter: name.clone(),
        numeric: numeric(name),
    };
    names.into_iter().map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{CellLevel, Client, Plan, Server};
    use isobench_isolation::{EffectiveLevel, Level};
    use isobench_plan::Vary;

    #[test]
    fn parameters_have_the_names_and_the_order_of_the_plan() {
        let planned = |name: &str| Vary { name: name.to_owned(), values: Vec::new() };
        let plan = Plan { vary: Some(vec![planned("rows"), planned("foreign-keys")]), ..Plan::default() };
        let mut document = Document::new(Server::default(), Client::default(), plan);
        for (keys, rows) in [("off", "1000"), ("on", "1000")] {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            cell.varied =
                [("foreign-keys", keys), ("rows", rows)].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
            document.cells.push(cell);
        }
        let known: Vec<(String, bool)> = all(&document)
            .filter(Factor::is_varied)
            .map(|factor| (factor.title().to_owned(), factor.is_numeric()))
            .collect();
        assert_eq!(known, [("rows".to_owned(), true), ("foreign-keys".to_owned(), false)]);
        let varying: Vec<String> =
            varying(&document).iter().map(|factor| factor.said(&document.cells[1])).collect();
        assert_eq!(varying, ["foreign-keys on"]);
        assert!(!strategies_vary(&document));
        document.cells[0].strategy = Some("retry".to_owned());
        assert!(!strategies_vary(&document), "retry is what no strategy means");
        document.cells[0].strategy = Some("for-update".to_owned());
        assert!(strategies_vary(&document));
    }

    #[test]
    fn a_parameter_is_no_other_factor_of_the_same_name() {
        let plan = Plan {
            vary: Some(vec![Vary { name: "strategy".to_owned(), values: Vec::new() }]),
            ..Plan::default()
        };
        let mut document = Document::new(Server::default(), Client::default(), plan);
        for value in ["a", "b"] {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            cell.varied = [("strategy".to_owned(), value.to_owned())].into();
            document.cells.push(cell);
        }
        let varying = varying(&document);
        assert_eq!(varying.iter().map(Factor::title).collect::<Vec<_>>(), ["strategy"]);
        assert!(varying[0].is_varied());
        assert_eq!(crate::answer::factors(&document, &document.cells[1]), "strategy b");
    }

    #[test]
    fn every_kind_says_what_it_is_and_members_come_before_the_varied() {
        let mut names = BTreeSet::new();
        for kind in KINDS {
            assert!(names.insert(kind.name), "{} is there twice", kind.name);
            assert!(!kind.meaning.is_empty() && !kind.meaning.ends_with('.'), "{}", kind.name);
            assert!(kind.option.starts_with("--"), "{}", kind.name);
            let is_member = !matches!(kind.of, Of::Varied | Of::VariedFrom);
            assert_eq!(is_member, kind.id != FactorId::Varied, "{}", kind.name);
            assert!(
                !is_member || kind.id.kind().is_some_and(|found| found.name == kind.name),
                "{}",
                kind.name
            );
        }
        for (name, kind) in [("fault", FAULT), ("setting:fsync", SETTING), ("rows", ""), ("faults", "")] {
            assert_eq!(Kind::of_varied(name).name, kind, "{name}");
        }
    }

    #[test]
    fn cells_are_selected_by_any_factor() {
        let mut cell = Cell::new("w", CellLevel::new(Some(Level::Serializable), EffectiveLevel::Unknown));
        cell.scale = 10;
        cell.varied = [("rows".to_owned(), "5".to_owned())].into();
        for (text, is_selected) in [
            ("ser", true),
            ("rr", false),
            ("ser+retry", true),
            ("ser+swallow", false),
            ("ser+clients=1", true),
            ("ser+clients=2", false),
            ("ser+rows=5+scale=10", true),
            ("ser+rows=50", false),
            ("ser+scale=1", false),
            ("ser+other=1", false),
        ] {
            assert_eq!(selects(&cell, &text.parse().expect(text)), is_selected, "{text}");
        }
    }

    #[test]
    fn cells_are_alike_but_for_what_is_compared() {
        let cell = |strategy: &str, fsync: &str, rows: &str| {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            cell.strategy = Some(strategy.to_owned());
            cell.varied = [("setting:fsync", fsync), ("rows", rows)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into();
            cell
        };
        let one = cell("retry", "on", "1");
        assert!(alike(&one, &cell("retry", "on", "1"), &[]));
        assert!(!alike(&one, &cell("swallow", "on", "1"), &[]));
        assert!(alike(&one, &cell("swallow", "on", "1"), &[Compared::ToFirstStrategy]));
        assert!(!alike(&one, &cell("retry", "off", "1"), &[Compared::ToFirstStrategy]));
        assert!(alike(&one, &cell("retry", "off", "1"), &[Compared::ToFirstSetting]));
        assert!(!alike(&one, &cell("retry", "off", "2"), &[Compared::ToFirstSetting]));
        assert!(!alike(&one, &Cell { clients: 2, ..one.clone() }, &[Compared::ToFirstLevel]));
    }
}
