//! The rule of each value of a template: where an application took it from.
//!
//! A rule has to hold in 95 % of the instances from which it is found, and in 95 % of the fifth that is
//! held out. What has no such rule is an input.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use isobench_capture::{Column, Datum};

use isobench_script::lexer::words;
use isobench_script::literal;

use crate::constraints::Constraints;
use crate::outputs::columns;
use crate::sessions::{Executed, Recorded};
use crate::statement::{Clause, Place};
use crate::template::{Template, statements};
use crate::values::{Billionths, has_variable, instant, is_distinctive, is_uuid, number, same, shown, text};

/// The share of instances in which a rule has to hold.
pub const ENOUGH: f64 = 0.95;

/// Every fifth instance is held out.
const HELD_OUT: usize = 5;

/// The types whose values applications change in part: texts, JSON, bytes, and arrays of numbers and texts.
const MODIFIED: [u32; 11] = [17, 25, 114, 1005, 1007, 1009, 1015, 1016, 1042, 1043, 3802];

/// The fewest characters that are left of a value that was changed in part.
const LEAST_KEPT: usize = 6;

/// The lengths of random texts, such as codes and the tokens of sessions.
const TOKENS: RangeInclusive<usize> = 12..=128;

/// How far a time may be from when it was sent, in microseconds.
const CLOCK: i64 = 10_000_000;

/// The facts on tables that all results of a capture show.
#[derive(Debug, Default)]
pub struct Lineage {
    /// The names of tables, by their numbers.
    tables: HashMap<u32, String>,
    /// The names of columns, by the numbers of table and column, where a statement gives them others.
    columns: HashMap<(u32, i16), String>,
    /// The types of columns, by the names of table and column.
    types: HashMap<(String, String), u32>,
    /// The keys of tables.
    constraints: Constraints,
}

impl Lineage {
    /// Finds names of tables: of a result whose columns are all of one table, the statement names it.
    pub fn of(recorded: &Recorded, constraints: Constraints) -> Lineage {
        let mut named: HashMap<u32, BTreeMap<&str, u64>> = HashMap::new();
        let all = || recorded.transactions.iter().flat_map(|transaction| &transaction.statements);
        for executed in all() {
            let mut numbers: Vec<u32> = executed.columns.iter().map(|column| column.table).collect();
            numbers.retain(|number| *number != 0);
            numbers.dedup();
            if let (&[number], Some(table)) = (numbers.as_slice(), &executed.normal.table) {
                *named.entry(number).or_default().entry(table).or_default() += 1;
            }
        }
        let tables: HashMap<u32, String> = named
            .into_iter()
            .filter_map(|(number, names)| {
                let (most, _) = names.into_iter().max_by_key(|(_, count)| *count)?;
                Some((number, most.to_owned()))
            })
            .collect();
        let mut lineage = Lineage { tables, columns: own_names(all()), types: HashMap::new(), constraints };
        let mut types = HashMap::new();
        for column in all().flat_map(|executed| executed.columns.iter()) {
            if let Some(table) = lineage.table(column) {
                types.insert((table.to_owned(), lineage.name(column).to_owned()), column.type_oid);
            }
        }
        lineage.types = types;
        lineage
    }

    /// The name of a result's column in its table.
    fn name<'a>(&'a self, column: &'a Column) -> &'a str {
        self.columns.get(&(column.table, column.number)).unwrap_or(&column.name)
    }

    /// The keys of tables.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// The type of the column of a place, as SQL names it.
    pub fn type_of(&self, place: &Place) -> Option<&'static str> {
        let (table, column) = place.column.as_ref()?;
        type_name(*self.types.get(&(table.clone()?, column.clone()))?)
    }

    /// The name of a result's table, if it is a column of one.
    pub fn table(&self, column: &Column) -> Option<&str> {
        self.tables.get(&column.table).map(String::as_str)
    }

    /// How a result's column is akin to the column of a place.
    fn kinship(&self, place: &Place, column: &Column) -> Kinship {
        let (Some((table, name)), Some(of)) = (&place.column, self.table(column)) else {
            return Kinship::None;
        };
        let own = self.name(column);
        if table.as_deref() == Some(of) && name == own {
            return Kinship::Same;
        }
        if let Some((to, key)) = self.reference(place) {
            return if to == of && key == own { Kinship::Refers } else { Kinship::None };
        }
        let named_alike = name == own && name.ends_with("_id");
        if refers(name, of) && own == "id" || named_alike { Kinship::Refers } else { Kinship::None }
    }

    /// What the column of a place refers to by a foreign key.
    fn reference(&self, place: &Place) -> Option<&(String, String)> {
        let (table, name) = place.column.as_ref()?;
        self.constraints.refers(table.as_deref()?, name)
    }
}

/// The names of columns in their tables, where statements give them others.
fn own_names<'a>(all: impl Iterator<Item = &'a Executed>) -> HashMap<(u32, i16), String> {
    let mut looked_at: BTreeSet<&str> = BTreeSet::new();
    let mut found = HashMap::new();
    for executed in all {
        let outputs = executed.columns.iter().filter(|column| column.number > 0);
        if outputs.count() == 0 || !looked_at.insert(&executed.normal.key) {
            continue;
        }
        let Some(names) = columns(&executed.normal.key) else { continue };
        if names.len() != executed.columns.len() {
            continue;
        }
        for (column, name) in executed.columns.iter().zip(names) {
            if let Some(name) = name.filter(|_| column.table != 0 && column.number > 0) {
                found.insert((column.table, column.number), name);
            }
        }
    }
    found
}

/// True if at least half of a text, and no less than a word of it, stands at the beginning or the end of
/// another one.
fn is_much_like(one: &str, other: &str) -> bool {
    let alike = |(one, other): &(char, char)| one == other;
    let first = one.chars().zip(other.chars()).take_while(alike).count();
    let last = one.chars().rev().zip(other.chars().rev()).take_while(alike).count();
    let length = one.chars().count();
    let kept = (first + last).min(length);
    kept >= LEAST_KEPT && 2 * kept >= length
}

/// True if the name of a column is that of a reference to a table: `product_id` to `product`, `products`
/// and `shop_product`.
fn refers(name: &str, table: &str) -> bool {
    name.strip_suffix("_id").is_some_and(|stem| {
        table == stem
            || table.strip_suffix(stem).is_some_and(|before| before.ends_with('_'))
            || table == format!("{stem}s")
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinship {
    Same,
    Refers,
    None,
}

/// The name of a type; of usual types only. Source: `pg_type.dat`.
pub fn type_name(oid: u32) -> Option<&'static str> {
    Some(match oid {
        16 => "boolean",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        25 => "text",
        114 => "json",
        700 => "real",
        701 => "double precision",
        1042 | 1043 => "varchar",
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        1186 => "interval",
        1700 => "numeric",
        2950 => "uuid",
        3802 => "jsonb",
        _ => return None,
    })
}

/// True for a type of exact numbers.
fn is_number(oid: u32) -> bool {
    matches!(oid, 20 | 21 | 23 | 1700)
}

/// A value of a result's only row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The number of the statement.
    pub statement: usize,
    /// The column's name.
    pub column: String,
    /// The number of the column.
    pub number: usize,
    /// Its type, by its number in `pg_type`.
    pub type_oid: u32,
    /// It was NULL in some instance.
    pub nullable: bool,
}

/// What is added to a value that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Constant(Billionths),
    /// The value of another place.
    Place(usize),
    /// Another number that was read.
    Read(Source),
}

/// A new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fresh {
    /// A random UUID.
    Uuid,
    /// The next number, after a prefix: greater than all that were recorded.
    Number {
        /// What stands before the number.
        prefix: String,
        /// The highest recorded number.
        highest: i64,
    },
    /// Random letters and digits; hexadecimal ones are made.
    Random {
        /// Their number.
        length: usize,
    },
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// SQL that is the same each time.
    Constant(String),
    /// What a statement before it read.
    Read(Source),
    /// What a statement before it read, plus or minus another value.
    Sum {
        /// What was read.
        read: Source,
        /// The operand is subtracted.
        minus: bool,
        /// The other value.
        operand: Operand,
        /// The recorded values would allow a constant, too.
        ambiguous: bool,
    },
    /// A key that no row had.
    Fresh(Fresh),
    /// The same new key as of this place.
    AsFresh(usize),
    /// The time.
    Now {
        /// A date without a time.
        date: bool,
    },
    /// A recorded value, drawn anew.
    Input,
}

/// A place of a template with its rule.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// The number of the statement, and of the place in it.
    pub at: (usize, usize),
    /// The rule.
    pub rule: Rule,
    /// Instances that were held out in which the rule gives the recorded value, and all of them. Not
    /// for inputs.
    pub hits: Option<(u64, u64)>,
    /// The rule that failed on what was held out, if one did.
    pub refused: Option<&'static str>,
    /// True for an input that the application may have computed from the value which it had read in the
    /// same column: a number, or a text that is much like it.
    pub computed: bool,
}

/// The instances of a template, by place and statement.
struct Seen<'a> {
    lineage: &'a Lineage,
    /// For each statement, its instances.
    statements: Vec<Vec<&'a Executed>>,
    /// All places: statement and number.
    places: Vec<(usize, usize)>,
    /// The results that a variable can hold, in order.
    sources: Vec<Source>,
    /// For each statement whether it takes a number from a sequence.
    sequences: Vec<bool>,
    /// When recording began, in microseconds since 1970.
    began: Option<i64>,
    instances: usize,
}

/// The results that a variable can hold: of one row in all instances, with columns whose names are those
/// of variables.
fn sources(statement: usize, instances: &[&Executed]) -> Vec<Source> {
    let of_one_row = |executed: &&Executed| executed.answer.rows == 1 && executed.answer.values.len() == 1;
    if !instances.iter().all(of_one_row) || !variables(&instances[0].columns) {
        return Vec::new();
    }
    let source = |(number, column): (usize, &Column)| Source {
        statement,
        column: column.name.clone(),
        number,
        type_oid: column.type_oid,
        nullable: instances.iter().any(|executed| read(executed, number).is_none()),
    };
    instances[0].columns.iter().enumerate().map(source).collect()
}

/// Finds the rule of each value of a template.
pub fn infer(template: &Template<'_>, lineage: &Lineage, began: &str) -> Vec<Inferred> {
    let instances = template.instances.len();
    let mut rows: Vec<Vec<&Executed>> = Vec::new();
    for unit in &template.instances {
        for (number, executed) in statements(unit).enumerate() {
            if rows.len() <= number {
                rows.push(Vec::with_capacity(instances));
            }
            rows[number].push(executed);
        }
    }
    let places = rows
        .iter()
        .enumerate()
        .flat_map(|(number, executed)| (0..executed[0].normal.places.len()).map(move |place| (number, place)))
        .collect();
    let sources = rows.iter().enumerate().flat_map(|(number, executed)| sources(number, executed)).collect();
    let takes =
        |executed: &Vec<&Executed>| words(&executed[0].normal.key).iter().any(|word| word.is("nextval"));
    let sequences = rows.iter().map(takes).collect();
    let seen =
        Seen { lineage, statements: rows, places, sources, sequences, began: instant(began), instances };
    let mut found: Vec<Inferred> = Vec::new();
    for place in 0..seen.places.len() {
        let one = seen.infer(place, &found);
        found.push(one);
    }
    seen.settle(&mut found);
    found
}

impl<'a> Seen<'a> {
    fn place(&self, place: usize, instance: usize) -> &'a Place {
        let (statement, number) = self.places[place];
        &self.statements[statement][instance].normal.places[number]
    }

    #[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
    fn value(&self, place: usize, instance: usize) -> &'a Option<Datum> {
        &self.place(place, instance).value
    }

    /// The instances from which rules are found.
    fn training(&self) -> impl Iterator<Item = usize> {
        let all = self.instances < HELD_OUT;
        (0..self.instances).filter(move |number| all || number % HELD_OUT != HELD_OUT - 1)
    }

    fn held_out(&self) -> impl Iterator<Item = usize> {
        let none = self.instances < HELD_OUT;
        (0..self.instances).filter(move |number| !none && number % HELD_OUT == HELD_OUT - 1)
    }

    fn holds(&self, rule: impl Fn(usize) -> bool) -> bool {
        let all = self.training().count();
        // Most rules fail at once.
        let mut misses = 0_usize;
        let enough = self.training().all(|instance| {
            misses += usize::from(!rule(instance));
            (all - misses) as f64 >= ENOUGH * all as f64
        });
        enough && misses < all
    }

    /// The results that a variable can hold, the latest first.
    fn sources(&self, before: usize) -> impl Iterator<Item = &Source> {
        self.sources.iter().rev().filter(move |source| source.statement < before)
    }

    #[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
    fn read(&self, source: &Source, instance: usize) -> &'a Option<Datum> {
        read(self.statements[source.statement][instance], source.number)
    }

    fn column(&self, source: &Source) -> &'a Column {
        &self.statements[source.statement][0].columns[source.number]
    }

    fn infer(&self, place: usize, found: &[Inferred]) -> Inferred {
        let at = self.places[place];
        let mut refused = None;
        for (name, rule) in self.candidates(place, found) {
            let (mut hits, mut all) = (0_u64, 0_u64);
            for instance in self.held_out() {
                all += 1;
                hits += u64::from(self.predicts(&rule, place, instance));
            }
            if all == 0 || hits as f64 >= ENOUGH * all as f64 {
                return Inferred { at, rule, hits: Some((hits, all)), refused, computed: false };
            }
            refused = refused.or(Some(name));
        }
        Inferred { at, rule: Rule::Input, hits: None, refused, computed: self.may_be_computed(place) }
    }

    /// The rules that hold in the instances from which they are found, the likeliest first.
    fn candidates(&self, place: usize, found: &[Inferred]) -> Vec<(&'static str, Rule)> {
        let (statement, _) = self.places[place];
        let mut rules = Vec::new();
        let sample = self.place(place, 0);
        let equal = |source: &Source| {
            self.holds(|instance| same(self.read(source, instance), self.value(place, instance)))
        };
        let akin = |source: &Source| self.lineage.kinship(sample, self.column(source));
        let usable = |source: &&Source| !source.nullable || type_name(source.type_oid).is_some();
        let known = |source: &&Source| !self.is_known(source, found);
        let sources: Vec<&Source> = self.sources(statement).filter(usable).filter(known).collect();
        let of_sequence =
            |source: &Source| sample.clause == Clause::Insert && self.sequences[source.statement];
        let related = |source: &Source| akin(source) != Kinship::None || of_sequence(source);
        if let Some(source) = sources.iter().copied().find(|source| related(source) && equal(source)) {
            rules.push(("a value read before", Rule::Read(source.clone())));
        }
        let constant = self.constant(place);
        if rules.is_empty() && sample.clause == Clause::Set {
            let same_column = sources
                .iter()
                .copied()
                .filter(|source| akin(source) == Kinship::Same && is_number(source.type_oid));
            let mut same_column = same_column;
            let sum = same_column.find_map(|source| self.sum(place, source, constant.is_some()));
            rules.extend(sum.map(|rule| ("read and computed", rule)));
        }
        let key = sample.clause == Clause::Insert && constant.is_some() && self.is_new_key(place);
        rules.extend(constant.filter(|_| !key).map(|sql| ("a constant", Rule::Constant(sql))));
        let distinct = |source: &Source| self.holds(|instance| is_distinctive(self.read(source, instance)));
        let unlike = self.is_unlike(place);
        if let Some(source) =
            sources.iter().copied().find(|source| equal(source) && (unlike || distinct(source)))
        {
            rules.push(("a value read before", Rule::Read(source.clone())));
        }
        let earlier = found.iter().enumerate().filter(|(_, one)| matches!(one.rule, Rule::Fresh(_)));
        let mut as_before = earlier.filter(|(other, _)| {
            self.holds(|instance| self.value(*other, instance) == self.value(place, instance))
        });
        if let Some((other, _)) = as_before.next() {
            rules.push(("the new key", Rule::AsFresh(other)));
        }
        if let Some(date) = self.clock(place) {
            rules.push(("the time", Rule::Now { date }));
        }
        if sample.clause == Clause::Insert && !self.is_of_another_row(place, found) {
            rules.extend(self.fresh(place).map(|fresh| ("a new key", Rule::Fresh(fresh))));
        }
        rules
    }

    /// See [`Inferred::computed`].
    fn may_be_computed(&self, place: usize) -> bool {
        let (statement, _) = self.places[place];
        let sample = self.place(place, 0);
        let own = |source: &&Source| self.lineage.kinship(sample, self.column(source)) == Kinship::Same;
        let source = self.sources(statement).find(own).filter(|_| sample.clause == Clause::Set);
        let Some(source) = source else { return false };
        let changes = || {
            let pair = |instance| text(self.read(source, instance)).zip(text(self.value(place, instance)));
            self.training().filter_map(pair).filter(|(read, new)| read != new)
        };
        let reference = self.is_reference(source);
        if is_number(source.type_oid) {
            return !reference && changes().next().is_some();
        }
        let alike = changes().filter(|(read, new)| is_much_like(read, new)).count();
        MODIFIED.contains(&source.type_oid) && alike > 0 && 2 * alike >= changes().count()
    }

    /// True if a result is an input of its own statement, which asked for rows with that value: what follows
    /// from it follows from the input, however many rows there are.
    fn is_known(&self, source: &Source, found: &[Inferred]) -> bool {
        let inputs = found.iter().enumerate().filter(|(_, one)| one.rule == Rule::Input);
        let mut of_statement = inputs.filter(|(_, one)| one.at.0 == source.statement);
        of_statement.any(|(other, _)| {
            let asked = self.place(other, 0);
            asked.clause == Clause::Other
                && self.lineage.kinship(asked, self.column(source)) == Kinship::Same
                && self.holds(|instance| same(self.read(source, instance), self.value(other, instance)))
        })
    }

    /// SQL for a value that is the same in all instances.
    fn constant(&self, place: usize) -> Option<String> {
        let first = self.value(place, 0);
        (0..self.instances).all(|instance| self.value(place, instance) == first).then_some(())?;
        let sql = match (&self.place(place, 0).literal, first) {
            (Some(literal), _) => literal.clone(),
            (None, None) => "NULL".to_owned(),
            (None, Some(Datum::Text(text))) => literal(text),
            (None, Some(_)) => return None,
        };
        (!has_variable(&sql)).then_some(sql)
    }

    /// What was read, plus or minus a constant, another place, or something else that was read.
    fn sum(&self, place: usize, source: &Source, constant: bool) -> Option<Rule> {
        let read = |instance| number(self.read(source, instance));
        let new = |instance| number(self.value(place, instance));
        let difference = |instance| Some(new(instance)? - read(instance)?);
        let first = self.training().find_map(difference)?;
        let step = first.abs() == 1_000_000_000;
        let reference = self.is_reference(source);
        if first != 0 && !reference && self.holds(|instance| difference(instance) == Some(first)) {
            if constant && !step {
                return None;
            }
            let (minus, operand) = (first < 0, Operand::Constant(first.abs()));
            return Some(Rule::Sum { read: source.clone(), minus, operand, ambiguous: constant });
        }
        let others = (0..self.places.len()).filter(|other| *other != place);
        let varies = |other: &usize| {
            self.training().any(|instance| self.value(*other, instance) != self.value(*other, 0))
        };
        for other in others.filter(varies) {
            for minus in [false, true] {
                let sign = if minus { -1 } else { 1 };
                let hit = |instance| {
                    let operand = number(self.value(other, instance)).map(|operand| sign * operand);
                    operand.is_some() && operand == difference(instance)
                };
                if self.holds(hit) {
                    let operand = Operand::Place(other);
                    return Some(Rule::Sum { read: source.clone(), minus, operand, ambiguous: false });
                }
            }
        }
        let (statement, _) = self.places[place];
        let numbers = self.sources(statement).filter(|other| {
            *other != source
                && is_number(other.type_oid)
                && !self.is_reference(other)
                && self.read_varies(other)
        });
        numbers.flat_map(|other| [(other, false), (other, true)]).find_map(|(other, minus)| {
            let sign = if minus { -1 } else { 1 };
            let hit = |instance| {
                let operand = number(self.read(other, instance)).map(|operand| sign * operand);
                operand.is_some() && operand == difference(instance)
            };
            let operand = || Operand::Read(other.clone());
            self.holds(hit).then(|| Rule::Sum {
                read: source.clone(),
                minus,
                operand: operand(),
                ambiguous: false,
            })
        })
    }

    /// True if a column holds a key or a reference, by its name, which nothing is added to.
    fn is_reference(&self, source: &Source) -> bool {
        let own = self.lineage.name(self.column(source));
        own.ends_with("_id") || own.ends_with("Id") || own == "id"
    }

    /// True if what was read isn't the same in all instances.
    fn read_varies(&self, source: &Source) -> bool {
        self.training().any(|instance| self.read(source, instance) != self.read(source, 0))
    }

    /// `Some(date only)` for the time at which a statement was sent.
    fn clock(&self, place: usize) -> Option<bool> {
        let began = self.began?;
        let (statement, _) = self.places[place];
        let sent =
            |instance: usize| began + i64::try_from(self.statements[statement][instance].at).unwrap_or(0);
        let time = |instance| {
            let time = text(self.value(place, instance)).and_then(instant);
            time.is_some_and(|time| (time - sent(instance)).abs() <= CLOCK)
        };
        if self.holds(time) {
            return Some(false);
        }
        let date = |instance| {
            let day = text(self.value(place, instance)).filter(|text| text.len() == 10);
            let begins = day.and_then(|day| instant(&format!("{day} 00:00:00")));
            begins.is_some_and(|begins| (0..86_400_000_000).contains(&(sent(instance) - begins)))
        };
        self.holds(date).then_some(true)
    }

    /// True if a value that was always the same can be used only once.
    fn is_new_key(&self, place: usize) -> bool {
        let value = text(self.value(place, 0));
        self.instances == 1 && value.is_some() && (self.is_key(place) || value.is_some_and(is_uuid))
    }

    /// True if a column is named as keys are.
    fn is_key(&self, place: usize) -> bool {
        let keys = ["id", "number", "uuid", "guid", "key", "code", "reference"];
        self.place(place, 0).column.as_ref().is_some_and(|(_, name)| keys.contains(&name.as_str()))
    }

    /// True if a value is the key of a row that was there before: by a foreign key, or since a condition
    /// on another column has the same input.
    fn is_of_another_row(&self, place: usize, found: &[Inferred]) -> bool {
        let sample = self.place(place, 0);
        let compared = |other: usize| {
            let input = self.place(other, 0);
            found[other].rule == Rule::Input && input.clause == Clause::Other && input.column != sample.column
        };
        self.lineage.reference(sample).is_some()
            || (0..found.len()).any(|other| compared(other) && self.equal(other, place))
    }

    /// True if the values of a place are texts that are another one in each of many instances, so that a
    /// source with the same ones isn't equal by accident.
    fn is_unlike(&self, place: usize) -> bool {
        let values = (0..self.instances).map(|instance| self.value(place, instance));
        let texts: BTreeSet<&str> = values.filter(|value| number(value).is_none()).filter_map(text).collect();
        self.instances >= HELD_OUT && texts.len() == self.instances
    }

    /// True if two places have the same values in all instances.
    fn equal(&self, one: usize, other: usize) -> bool {
        (0..self.instances).all(|instance| self.value(one, instance) == self.value(other, instance))
    }

    /// A key that was new each time.
    fn fresh(&self, place: usize) -> Option<Fresh> {
        let mut values: Vec<&str> = Vec::with_capacity(self.instances);
        for instance in 0..self.instances {
            values.push(text(self.value(place, instance))?);
        }
        let mut sorted = values.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < values.len() {
            return None;
        }
        if values.iter().all(|value| is_uuid(value)) {
            return Some(Fresh::Uuid);
        }
        let digits =
            |value: &str| value.len() - value.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
        let prefix = &values[0][..values[0].len() - digits(values[0])];
        let numbers: Option<Vec<i64>> = values
            .iter()
            .map(|value| value.strip_prefix(prefix).and_then(|number| number.parse().ok()))
            .collect();
        if let Some(numbers) = numbers {
            let rising = numbers.windows(2).filter(|pair| pair[0] < pair[1]).count();
            // Concurrent sessions may send them in another order.
            let enough = self.instances == 1 || rising as f64 >= 0.8 * (numbers.len() - 1) as f64;
            let highest = numbers.iter().copied().max().unwrap_or_default();
            let lowest = numbers.iter().copied().min().unwrap_or_default();
            let dense = highest.abs_diff(lowest) <= 2 * numbers.len() as u64;
            let unlike_amounts = self.instances == 1
                || !prefix.is_empty()
                || numbers.len() >= HELD_OUT && (dense || self.is_key(place));
            return (enough
                && unlike_amounts
                && prefix.len() < 60
                && !has_variable(prefix)
                && highest < i64::MAX / 2)
                .then(|| Fresh::Number { prefix: prefix.to_owned(), highest });
        }
        let length = values[0].len();
        let token =
            |value: &str| value.len() == length && value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let mixed = |value: &&&str| {
            value.bytes().any(|byte| byte.is_ascii_digit())
                && value.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        let enough = length == 32
            || TOKENS.contains(&length)
                && values.len() >= HELD_OUT
                && 5 * values.iter().filter(mixed).count() >= 4 * values.len();
        (enough && values.iter().all(|value| token(value))).then_some(Fresh::Random { length })
    }

    /// True if a rule gives the recorded value of an instance. Of a new key and of the time only the
    /// kind can be compared.
    fn predicts(&self, rule: &Rule, place: usize, instance: usize) -> bool {
        let value = self.value(place, instance);
        match rule {
            Rule::Constant(_) => value == self.value(place, 0),
            Rule::Read(source) => same(self.read(source, instance), value),
            Rule::Sum { read, minus, operand, .. } => {
                let operand = match operand {
                    Operand::Constant(number) => Some(*number),
                    Operand::Place(other) => number(self.value(*other, instance)),
                    Operand::Read(other) => number(self.read(other, instance)),
                };
                let sum = number(self.read(read, instance)).zip(operand);
                let sum = sum.map(|(read, operand)| if *minus { read - operand } else { read + operand });
                sum.is_some() && sum == number(value)
            }
            Rule::AsFresh(other) => self.value(*other, instance) == value,
            Rule::Now { date } => {
                let (Some(began), Some(text)) = (self.began, text(value)) else { return false };
                let sent =
                    began + i64::try_from(self.statements[self.places[place].0][instance].at).unwrap_or(0);
                let time = if *date { instant(&format!("{text} 00:00:00")) } else { instant(text) };
                let near = if *date { 86_400_000_000 } else { CLOCK };
                time.is_some_and(|time| (time - sent).abs() <= near)
            }
            // New keys were compared with all instances.
            Rule::Fresh(_) | Rule::Input => true,
        }
    }

    /// Makes inputs of sums whose operand isn't known before, and looks for new keys, before they are
    /// used, by these keys.
    fn settle(&self, found: &mut [Inferred]) {
        for key in 0..found.len() {
            if !matches!(found[key].rule, Rule::Fresh(_)) {
                continue;
            }
            for place in 0..key {
                let same = self.place(place, 0).column == self.place(key, 0).column;
                if same && found[place].rule == Rule::Input && self.equal(place, key) {
                    found[place].rule = Rule::AsFresh(key);
                    found[place].hits = found[key].hits;
                }
            }
        }
        for place in 0..found.len() {
            let Rule::Sum { operand: Operand::Place(other), .. } = &found[place].rule else { continue };
            let plain = match &found[*other].rule {
                // New keys were compared with all instances.
                Rule::Fresh(_) | Rule::Input => true,
                Rule::Read(source) => source.statement < self.places[place].0 && !source.nullable,
                _ => false,
            };
            if !plain {
                found[place].rule = Rule::Input;
                found[place].hits = None;
                found[place].refused = Some("read and computed");
                found[place].computed = true;
            }
        }
    }
}

/// A value of a result's only row.
#[expect(clippy::ref_option, reason = "it is a part of what was recorded")]
fn read(executed: &Executed, column: usize) -> &Option<Datum> {
    executed.answer.values.first().and_then(|row| row.get(column)).unwrap_or(&None)
}

/// True if all columns have different names, and such that `\gset` can store them.
fn variables(columns: &[Column]) -> bool {
    let named = |column: &Column| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        !column.name.is_empty() && column.name.chars().all(plain)
    };
    let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len() == columns.len() && columns.iter().all(named)
}

impl Rule {
    /// The rule in a few words.
    pub fn describe(&self) -> String {
        match self {
            Rule::Constant(sql) => format!("constant {sql}"),
            Rule::Read(source) => format!("{} of statement {}", source.column, source.statement + 1),
            Rule::Sum { read, minus, operand, ambiguous } => {
                let sign = if *minus { "−" } else { "+" };
                let operand = match operand {
                    Operand::Constant(number) => shown(*number),
                    Operand::Place(_) => "another value".to_owned(),
                    Operand::Read(other) => format!("{} of statement {}", other.column, other.statement + 1),
                };
                let doubt = if *ambiguous { " (a constant would fit, too)" } else { "" };
                format!("{} of statement {} {sign} {operand}{doubt}", read.column, read.statement + 1)
            }
            Rule::Fresh(_) | Rule::AsFresh(_) => "new key".to_owned(),
            Rule::Now { date: false } => "now()".to_owned(),
            Rule::Now { date: true } => "current_date".to_owned(),
            Rule::Input => "input".to_owned(),
        }
    }
}
