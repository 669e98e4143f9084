//! A template as a script, with the table of its inputs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isobench_capture::Datum;

use isobench_script::{NotOneCommand, Part, Writer as ScriptWriter, lexer, literal};

use crate::inference::{Fresh, Inferred, Lineage, Operand, Rule, Source, type_name};
use crate::sessions::{End, Executed, Transaction};
use crate::statement::{Place, Role};
use crate::template::{Template, statements};
use crate::values::shown;

/// The most recorded inputs of a template that are used again.
const MOST_INPUTS: usize = 1_000;

/// A script.
#[derive(Debug)]
pub struct Script {
    /// Its text.
    pub text: String,
    /// SQL that makes the table of its inputs; empty without inputs.
    pub inputs: String,
    /// For each row of that table, the number of its instance, and its values as SQL. Without inputs, the
    /// first instance without values.
    pub rows: Vec<(usize, String)>,
    /// Values of which only a hash was recorded.
    pub hashed: bool,
    /// The rule of each value, with the text before it.
    pub rules: Vec<(String, Inferred)>,
}

/// The sequences of new keys: by table and column.
#[derive(Debug, Default)]
pub struct Keys {
    sequences: BTreeMap<(Option<String>, String), (String, i64)>,
}

impl Keys {
    /// The name of the sequence of a column, whose numbers are above this one.
    fn above(&mut self, place: &Place, highest: i64) -> String {
        let number = self.sequences.len() + 1;
        let column = place.column.clone().unwrap_or_else(|| (None, number.to_string()));
        let entry = self.sequences.entry(column).or_insert_with(|| (format!("isobench_keys_{number}"), 0));
        entry.1 = entry.1.max(highest);
        entry.0.clone()
    }

    /// SQL that makes the sequences.
    pub fn sql(&self) -> String {
        self.sequences.values().fold(String::new(), |mut sql, (name, highest)| {
            let _ = writeln!(sql, "CREATE SEQUENCE {name} START {};", highest.saturating_add(1).max(1));
            sql
        })
    }
}

/// The shortest pause that is kept, in microseconds: what is shorter is the way to the recorder and back.
const LEAST_PAUSE: u64 = 100;

/// Writes the script of a template; `number` is that of its table of inputs. With `pauses` it pauses where
/// the application did.
///
/// # Errors
/// A script can't hold it, and why.
pub fn write(
    template: &Template<'_>,
    number: usize,
    inferred: &[Inferred],
    lineage: &Lineage,
    pauses: bool,
    keys: &mut Keys,
) -> Result<Script, String> {
    let unit = &template.instances[0];
    for executed in statements(unit) {
        if executed.normal.texts.iter().any(|text| has_parameter(text)) {
            return Err("the value of a parameter wasn't recorded".to_owned());
        }
    }
    let mut writer = Writer {
        template,
        inferred,
        lineage,
        names: Vec::new(),
        columns: Vec::new(),
        fresh: Vec::new(),
        number,
        pauses: if pauses { pauses_of(template) } else { Vec::new() },
    };
    writer.name_inputs(keys);
    let (inputs, rows, hashed) = writer.inputs();
    let drawn = if inputs.is_empty() { 0 } else { rows.len() };
    let text = writer.script(drawn).map_err(|why| why.to_string())?;
    let all: Vec<&Executed> = statements(unit).collect();
    let shown = |one: &Inferred| {
        let (statement, place) = one.at;
        all[statement].normal.places[place].column.as_ref().map_or_else(
            || format!("value {}", place + 1),
            |(table, column)| table.as_ref().map_or(column.clone(), |table| format!("{table}.{column}")),
        )
    };
    let rules = inferred.iter().map(|one| (shown(one), one.clone())).collect();
    Ok(Script { text, inputs, rows, hashed, rules })
}

/// Writes a pause that is long enough.
fn pause(script: &mut ScriptWriter, microseconds: Option<&u64>) {
    if let Some(microseconds) = microseconds.filter(|pause| **pause >= LEAST_PAUSE) {
        script.sleep(*microseconds);
    }
}

/// Writes a statement of isobench's own.
fn own(script: &mut ScriptWriter, sql: String) -> Result<(), NotOneCommand> {
    script.sql(&[Part::Own(sql)], None)
}

/// True if a statement changes rows itself, by its first word.
fn writes_rows(verb: &str) -> bool {
    ["insert", "update", "delete", "merge", "with"].contains(&verb)
}

/// True if a text has a parameter left (`$1`).
fn has_parameter(text: &str) -> bool {
    lexer::tokens(text).iter().any(|token| token.kind == lexer::Kind::Parameter)
}

struct Writer<'a, 'b> {
    template: &'a Template<'b>,
    inferred: &'a [Inferred],
    lineage: &'a Lineage,
    /// The variable of each place, if it is an input or a new key.
    names: Vec<Option<String>>,
    /// The columns of the table of inputs, each with the places that it is for.
    columns: Vec<(String, usize)>,
    /// The new keys: a recorded prefix as SQL, the rest of the expression, and the variable.
    fresh: Vec<(String, String, String)>,
    number: usize,
    /// The pauses of each transaction before each statement but the first and before its end, in
    /// microseconds; empty to leave them out.
    pauses: Vec<Vec<u64>>,
}

/// How long the application paused in each transaction of a template: before each statement but the first,
/// and before the end of a block, from the answer before it. The median of all instances, in microseconds.
fn pauses_of(template: &Template<'_>) -> Vec<Vec<u64>> {
    let transactions = 0..template.instances[0].len();
    let of = |transaction: &Transaction| -> Vec<u64> {
        let sent = transaction.statements.iter().map(|executed| executed.at).skip(1);
        let sent = sent.chain(std::iter::once(transaction.until));
        let answered =
            transaction.statements.iter().map(|executed| executed.at.saturating_add(executed.took));
        answered.zip(sent).map(|(answered, sent)| sent.saturating_sub(answered)).collect()
    };
    transactions
        .map(|number| {
            let all: Vec<Vec<u64>> = template.instances.iter().map(|unit| of(unit[number])).collect();
            let median = |place: usize| {
                let mut pauses: Vec<u64> = all.iter().filter_map(|own| own.get(place).copied()).collect();
                pauses.sort_unstable();
                pauses[pauses.len() / 2]
            };
            (0..all[0].len()).map(median).collect()
        })
        .collect()
}

impl Writer<'_, '_> {
    fn instance(&self, instance: usize, place: usize) -> &Place {
        let (statement, number) = self.inferred[place].at;
        let executed = statements(&self.template.instances[instance]).nth(statement);
        executed.map(|executed| &executed.normal.places[number]).expect("all instances have the same shape")
    }

    /// The values of a place in all instances.
    fn values(&self, place: usize) -> Vec<&Option<Datum>> {
        (0..self.template.instances.len()).map(|instance| &self.instance(instance, place).value).collect()
    }

    fn name_inputs(&mut self, keys: &mut Keys) {
        let mut used = vec!["i_row".to_owned()];
        let mut vectors: Vec<(Vec<&Option<Datum>>, String)> = Vec::new();
        let this: &Self = self;
        let mut names = Vec::new();
        let (mut columns, mut fresh) = (Vec::new(), Vec::new());
        for (place, one) in this.inferred.iter().enumerate() {
            let sample = this.instance(0, place);
            let mut fresh_name = |letter: char| {
                let column = sample.column.as_ref().map_or("value", |(_, column)| column);
                let plain = |letter: char| {
                    if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '_' }
                };
                let base: String = column.chars().map(plain).take(40).collect();
                let base = format!("{letter}_{base}");
                let numbered = (2..).map(|number| format!("{base}_{number}"));
                let name = std::iter::once(base.clone()).chain(numbered).find(|name| !used.contains(name));
                let name = name.unwrap_or(base);
                used.push(name.clone());
                name
            };
            let name = match &one.rule {
                Rule::Input => {
                    let values = this.values(place);
                    let known = vectors.iter().find(|(known, _)| *known == values);
                    let known = known.map(|(_, name)| name.clone());
                    Some(known.unwrap_or_else(|| {
                        let name = fresh_name('i');
                        columns.push((name.clone(), place));
                        vectors.push((values, name.clone()));
                        name
                    }))
                }
                Rule::Fresh(kind) => {
                    let name = fresh_name('k');
                    let mut recorded = String::new();
                    let sql = match kind {
                        Fresh::Uuid => "gen_random_uuid()".to_owned(),
                        Fresh::Random { length } => {
                            let hashes = vec!["md5(random()::text)"; length.div_ceil(32)].join(" || ");
                            if length % 32 == 0 { hashes } else { format!("left({hashes}, {length})") }
                        }
                        Fresh::Number { prefix, highest } => {
                            let next = format!("nextval('{}')", keys.above(sample, *highest));
                            if prefix.is_empty() {
                                next
                            } else {
                                recorded = literal(prefix);
                                format!(" || {next}")
                            }
                        }
                    };
                    fresh.push((recorded, sql, name.clone()));
                    Some(name)
                }
                _ => None,
            };
            names.push(name);
        }
        for (place, one) in this.inferred.iter().enumerate() {
            if let Rule::AsFresh(other) = one.rule {
                names[place] = names.get(other).cloned().flatten();
            }
        }
        self.names = names;
        self.columns = columns;
        self.fresh = fresh;
    }

    /// The whole script.
    fn script(&self, rows: usize) -> Result<String, NotOneCommand> {
        let levels = self.template.levels.iter().map(|(level, count)| {
            format!(
                "{} {count} times",
                level.map_or("the server's default level", isobench_isolation::Level::name)
            )
        });
        let levels = levels.collect::<Vec<_>>().join(", ");
        let mut script = ScriptWriter::new(&format!(" {} times; at {levels}", self.template.count));
        self.before(&mut script, rows)?;
        self.body(&mut script)?;
        script.finish()
    }

    /// What stands before the transactions: the values that come from outside.
    fn before(&self, script: &mut ScriptWriter, rows: usize) -> Result<(), NotOneCommand> {
        let mut query: Vec<Part<'_>> = vec![Part::Own("SELECT ".to_owned())];
        let mut comma = "";
        for (name, _) in &self.columns {
            query.push(Part::Own(format!("{comma}{name}")));
            comma = ", ";
        }
        for (recorded, sql, name) in &self.fresh {
            query.extend([Part::Own(comma.to_owned()), Part::Foreign(recorded)]);
            query.push(Part::Own(format!("{sql} AS {name}")));
            comma = ", ";
        }
        if comma.is_empty() {
            return Ok(());
        }
        if rows > 0 {
            script.set("i_row", &format!("random(1, {rows})"));
            query.push(Part::Own(format!(" FROM {} WHERE i_row = :i_row", inputs_name(self.number))));
        }
        script.sql(&query, Some(""))
    }

    fn body(&self, script: &mut ScriptWriter) -> Result<(), NotOneCommand> {
        let (mut statement, mut place) = (0, 0);
        let reads = |number: usize| {
            let of = |source: &Source| source.statement == number;
            self.inferred.iter().any(|one| match &one.rule {
                Rule::Sum { read: source, operand: Operand::Read(other), .. } => of(source) || of(other),
                Rule::Read(source) | Rule::Sum { read: source, .. } => of(source),
                _ => false,
            })
        };
        for (number, transaction) in self.template.instances[0].iter().enumerate() {
            let mut pauses = self.pauses.get(number).into_iter().flatten();
            let mut savepoints: Vec<&str> = Vec::new();
            // Something was read, and it isn't recorded what.
            let mut read_unknown = false;
            // A statement alone, too, so that it can be given a level of its own.
            own(script, if transaction.read_only { "BEGIN READ ONLY" } else { "BEGIN" }.to_owned())?;
            for (place_within, executed) in transaction.statements.iter().enumerate() {
                if place_within > 0 {
                    pause(script, pauses.next());
                }
                if let Role::Savepoint(words, name) = &executed.role {
                    let number = savepoints.iter().position(|known| known == name).unwrap_or_else(|| {
                        savepoints.push(name);
                        savepoints.len() - 1
                    });
                    own(script, format!("{words} s{}", number + 1))?;
                } else {
                    let texts = &executed.normal.texts;
                    let unknown = executed.answer.columns.is_none() && executed.answer.tag.is_none();
                    let computed = self.inferred.iter().any(|one| one.at.0 == statement && one.computed);
                    if computed || read_unknown && writes_rows(&executed.normal.verb) {
                        script.computed();
                    }
                    read_unknown |= unknown;
                    let mut sql = vec![Part::Foreign(&texts[0])];
                    for after in &texts[1..] {
                        sql.extend([self.value(place, after.starts_with("::")), Part::Foreign(after)]);
                        place += 1;
                    }
                    let stored = reads(statement).then(|| format!("r{}_", statement + 1));
                    script.sql(&sql, stored.as_deref())?;
                }
                statement += 1;
            }
            pause(script, pauses.next());
            own(script, if transaction.end == End::RolledBack { "ROLLBACK" } else { "COMMIT" }.to_owned())?;
        }
        Ok(())
    }

    /// SQL for the value of a place.
    fn value(&self, place: usize, cast: bool) -> Part<'_> {
        let sql = match &self.inferred[place].rule {
            Rule::Constant(sql) => return Part::Foreign(sql),
            Rule::Read(source) => read(source),
            Rule::Now { date: false } => "now()".to_owned(),
            Rule::Now { date: true } => "current_date".to_owned(),
            Rule::Fresh(_) | Rule::AsFresh(_) => self.variable(place),
            Rule::Input => self.input(place),
            Rule::Sum { read: source, minus, operand, .. } => {
                let of_type = if source.type_oid == 1700 { "numeric" } else { "bigint" };
                let operand = match operand {
                    Operand::Constant(number) => shown(*number),
                    Operand::Place(other) => match &self.inferred[*other].rule {
                        Rule::Read(other) => format!("{}::{of_type}", read(other)),
                        _ => format!("{}::{of_type}", self.variable(*other)),
                    },
                    Operand::Read(other) => format!("{}::{of_type}", read(other)),
                };
                let sum = format!("{}::{of_type} {} {operand}", read(source), if *minus { "-" } else { "+" });
                if cast { format!("({sum})") } else { sum }
            }
        };
        Part::Own(sql)
    }

    fn variable(&self, place: usize) -> String {
        self.names[place].as_ref().map_or_else(|| "NULL".to_owned(), |name| format!(":{name}"))
    }

    /// A variable can't be NULL: it is the empty text then.
    fn input(&self, place: usize) -> String {
        let variable = self.variable(place);
        if self.values(place).iter().all(|value| value.is_some()) {
            return variable;
        }
        match self.lineage.type_of(self.instance(0, place)) {
            Some(name) => format!("nullif({variable}, '')::{name}"),
            None => format!("nullif({variable}, '')"),
        }
    }

    /// The table of inputs, its rows, and whether values are hashes.
    fn inputs(&self) -> (String, Vec<(usize, String)>, bool) {
        if self.columns.is_empty() {
            return (String::new(), vec![(0, String::new())], false);
        }
        let instances = self.template.instances.len();
        let step = instances.div_ceil(MOST_INPUTS);
        let name = inputs_name(self.number);
        // As integers they are keys by which rows are found; as texts `1` and `01` are two.
        let is_integer = |place| {
            (0..instances).all(|instance| match &self.instance(instance, place).value {
                Some(Datum::Text(text)) => {
                    text.parse::<i64>().is_ok_and(|number| number.to_string() == *text)
                }
                _ => false,
            })
        };
        let column = |(column, place): &(String, _)| {
            format!("{column} {}", if is_integer(*place) { "bigint" } else { "text" })
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        let table = format!("CREATE TABLE {name} (i_row integer PRIMARY KEY, {});\n", columns.join(", "));
        let mut hashed = false;
        let mut rows = Vec::new();
        for instance in (0..instances).step_by(step) {
            let values = self.columns.iter().map(|(_, place)| match &self.instance(instance, *place).value {
                None => "NULL".to_owned(),
                Some(Datum::Text(text)) => literal(text),
                Some(Datum::Hex { hex }) => literal(&format!("\\x{hex}")),
                Some(Datum::Hash { hash, .. }) => {
                    hashed = true;
                    literal(hash)
                }
            });
            rows.push((instance, values.collect::<Vec<_>>().join(", ")));
        }
        (table, rows, hashed)
    }
}

/// The name of a table of inputs.
pub fn inputs_name(number: usize) -> String {
    format!("isobench_inputs_{number}")
}

/// SQL that fills the table of inputs of this number.
pub fn fill<'r>(number: usize, rows: impl IntoIterator<Item = &'r str>) -> String {
    let rows: Vec<&str> = rows.into_iter().collect();
    let mut sql = String::new();
    for (number_of, values) in rows.iter().enumerate() {
        if number_of % 500 == 0 {
            let _ = writeln!(sql, "INSERT INTO {} VALUES", inputs_name(number));
        }
        let ends = number_of % 500 == 499 || number_of + 1 == rows.len();
        let _ = writeln!(sql, "  ({}, {values}){}", number_of + 1, if ends { ";" } else { "," });
    }
    sql
}

/// A variable with what was read.
fn read(source: &Source) -> String {
    let variable = format!(":r{}_{}", source.statement + 1, source.column);
    match type_name(source.type_oid).filter(|_| source.nullable) {
        Some(name) => format!("nullif({variable}, '')::{name}"),
        None => variable,
    }
}
