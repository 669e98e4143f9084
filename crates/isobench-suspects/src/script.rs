//! A template as a script in memory, of which theory makes a program. Nothing of it is executed.

use isobench_robustness::StatementId;
use isobench_script::{Part, Script, Symbols, Writer, literal, parse};
use isobench_sql::Catalog;
use isobench_sql::normal::Normal;

use crate::copied::Copied;
use crate::locks::Lock;
use crate::template::{Known, MOST_STATEMENTS, Step, Template};

/// What is taken for sure about values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assume {
    /// What was equal whenever it was recorded is equal, and what was the same is constant: to look for suspects.
    Recorded,
    /// Only values that were equal so often that it was no accident: for proofs.
    Certain,
}

/// How many different values have to be equal, so that equality counts as certain.
const CERTAIN: usize = 5;

/// How often a value has to be the same, so that it is a constant.
const OFTEN: u64 = 5;

/// A template's script, and where its statements are.
#[derive(Debug)]
pub struct Written {
    /// The script.
    pub script: Script,
    /// For each command of the script the number of the template's statement, if it is one.
    pub steps: Vec<Option<usize>>,
    /// The statements that found their rows each time.
    pub found: Vec<StatementId>,
}

/// Marks a variable in a text.
const MARK: char = '\u{1}';

/// Writes the script of a template.
///
/// # Errors
/// A script can't have one of its statements, and why.
pub fn write(
    template: &Template,
    assume: Assume,
    catalog: &Catalog,
    symbols: &mut Symbols,
) -> Result<Written, String> {
    if template.statements.len() > MOST_STATEMENTS {
        return Err(format!("it has {} statements, more than {MOST_STATEMENTS}", template.statements.len()));
    }
    let name = name(template);
    let mut writer = Writer::new("");
    let mut steps = Vec::new();
    let whole = template.block || template.statements.len() > 1;
    if whole {
        own(&mut writer, "BEGIN", &mut steps)?;
    }
    let mut at = 0;
    while at < template.statements.len() {
        let repeated = template.loops.iter().find(|range| range.start == at && range.end > at).cloned();
        let range = repeated.clone().unwrap_or(at..at + 1);
        for last in [false, true].into_iter().take(if repeated.is_some() { 2 } else { 1 }) {
            for step in range.clone() {
                statement(&mut writer, template, (step, last), assume, catalog)?;
                steps.push(Some(step));
            }
        }
        at = range.end;
    }
    if whole {
        own(&mut writer, "COMMIT", &mut steps)?;
    }
    let text = writer.finish().map_err(|why| why.to_string())?;
    let script = parse(&name, &text, symbols).map_err(|error| error.to_string())?;
    if script.commands.len() != steps.len() {
        return Err("a script doesn't read its statements one by one".to_owned());
    }
    let found = script.commands.iter().zip(&steps).filter_map(|(command, step)| {
        let finds = assume == Assume::Recorded && template.statements[(*step)?].finds;
        finds.then(|| StatementId::new(&name, command.line))
    });
    let found = found.collect();
    Ok(Written { script, steps, found })
}

/// The name of a template's script.
pub fn name(template: &Template) -> String {
    format!("t{}", template.number)
}

fn own(writer: &mut Writer, text: &str, steps: &mut Vec<Option<usize>>) -> Result<(), String> {
    steps.push(None);
    writer.sql(&[Part::Own(text.to_owned())], None).map_err(|why| why.to_string())
}

fn statement(
    writer: &mut Writer,
    template: &Template,
    (step, last): (usize, bool),
    assume: Assume,
    catalog: &Catalog,
) -> Result<(), String> {
    let one = &template.statements[step];
    if let Some(savepoint) = &one.savepoint {
        return writer.sql(&[Part::Foreign(savepoint)], None).map_err(|why| why.to_string());
    }
    // A list of one element in each transaction is that element; for proofs it may have more.
    let twice = |list: usize| assume == Assume::Certain || one.twice.get(list).copied().unwrap_or(false);
    let from = one.first_value + if last { one.values } else { 0 };
    let mut within: Vec<(usize, usize)> = Vec::new();
    let text = one.normal.text(&twice, &mut |number, value| {
        let mut place = from + number;
        // One parameter of a statement is one value.
        if let Some(parameter) = template.values.get(place).and_then(|known| known.parameter) {
            match within.iter().find(|(own, _)| *own == parameter) {
                Some((_, first)) => place = *first,
                None => within.push((parameter, place)),
            }
        }
        let text = value_text(template, place, assume);
        match &value.cast {
            Some(cast) => format!("({text}::{cast})"),
            None => text,
        }
    });
    let copied = Copied::of(&text);
    let text = match &copied {
        Some(copied) => {
            let value = &mut |number| format!("{MARK}t{}_{step}_{number}{MARK}", template.number);
            copied.statement(catalog, value).unwrap_or(text)
        }
        None => text,
    };
    if text.chars().filter(|letter| *letter == MARK).count() % 2 != 0 {
        return Err("it has a control character".to_owned());
    }
    let parts: Vec<Part<'_>> = text
        .split(MARK)
        .enumerate()
        .map(
            |(number, part)| {
                if number % 2 == 1 { Part::Own(format!(":{part}")) } else { Part::Foreign(part) }
            },
        )
        .collect();
    let inserts = copied.is_some_and(|copied| copied.writes());
    if inserts || ["insert", "update", "delete", "merge"].contains(&one.normal.verb().as_str()) {
        writer.computed();
    }
    writer.sql(&parts, None).map_err(|why| why.to_string())
}

/// What stands for a value: a variable between marks, or a constant.
fn value_text(template: &Template, place: usize, assume: Assume) -> String {
    let Some(known) = template.values.get(place) else { return "NULL".to_owned() };
    match known.lock.as_ref().filter(|_| assume == Assume::Recorded) {
        Some(Lock::Follows(other)) if *other != place => return value_text(template, *other, assume),
        Some(Lock::Same(value)) if is_integer(value) => return value.clone(),
        _ => {}
    }
    let of_code = step_of(template, place).is_some_and(|step| {
        template.values[step.first_value..].iter().take(step.values).any(|one| one.parameter.is_some())
    });
    if let Some(constant) = constant(known, of_code).filter(|_| assume == Assume::Recorded) {
        return constant;
    }
    format!("{MARK}t{}_{}{MARK}", template.number, root(template, place, assume))
}

/// True for a number that SQL may hold as it is.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (1..=18).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// The first of the values that are equal to one.
pub fn root(template: &Template, place: usize, assume: Assume) -> usize {
    let mut at = place;
    while let Some(earlier) = equal(template, at, assume) {
        at = earlier;
    }
    at
}

fn equal(template: &Template, place: usize, assume: Assume) -> Option<usize> {
    let known = &template.values[place];
    let (earlier, shared) = known.equal?;
    let other = &template.values[earlier];
    let same_column = known.column.is_some() && known.column == other.column;
    let holds = match assume {
        Assume::Recorded => same_column || shared >= CERTAIN,
        Assume::Certain => {
            let always = |one: &Known| one.times == template.count && !one.of_last && !one.null;
            let table = |place: usize| only_table(&step_of(template, place)?.normal);
            let same_table = table(place).is_some_and(|own| table(earlier) == Some(own));
            same_column && same_table && shared >= CERTAIN && always(known) && always(other)
        }
    };
    holds.then_some(earlier)
}

/// The statement that has a value.
fn step_of(template: &Template, place: usize) -> Option<&Step> {
    template.statements.iter().rfind(|step| step.first_value <= place)
}

/// The table of a statement that names one only.
fn only_table(normal: &Normal) -> Option<String> {
    let words: Vec<&str> = normal.key.split(' ').collect();
    let count = |word: &str| {
        words.iter().filter(|own| own.trim_start_matches('(').eq_ignore_ascii_case(word)).count()
    };
    let several = count("JOIN") + count("USING") > 0 || count("SELECT") > 1 || count("FROM") > 1;
    let begins = |word: &str| ["FROM", "UPDATE", "INTO"].iter().any(|own| own.eq_ignore_ascii_case(word));
    let at = words.iter().position(|word| begins(word))?;
    let named = words.get(at + 1).filter(|word| !word.ends_with(',') && !word.starts_with('('))?;
    // `UPDATE t SET … FROM u` has two.
    let updates = words[0].eq_ignore_ascii_case("UPDATE") && count("FROM") > 0;
    let listed = words[at + 2..]
        .iter()
        .take(2)
        .any(|word| word.ends_with(',') && !words[at].eq_ignore_ascii_case("INTO"));
    (!several && !updates && !listed).then(|| named.replace('"', ""))
}

/// A value that was the same each time, and looks as if the code had it, as SQL. `of_code`: its statement has
/// parameters, so that literals are the code's.
fn constant(known: &Known, of_code: bool) -> Option<String> {
    let mut seen = known.seen.iter();
    let (Some(Some(value)), None) = (seen.next(), seen.next()) else { return None };
    if value.contains(['\n', '\r', '\0', MARK, ':', '\\']) || value.len() > 60 || value.starts_with("hash ") {
        return None;
    }
    let wordy = !value.is_empty() && !value.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@');
    match &known.literal {
        Some(text) if of_code || wordy && known.times >= OFTEN => Some(text.clone()),
        _ if known.any_literal => None,
        _ => (wordy && known.times >= OFTEN).then(|| literal(value)),
    }
}
