//! An interleaving with a wrong outcome: a column for each transaction, numbered steps, and one last
//! line that says what the outcome is and what it would be one after the other.
//!
//! Shows the statements, rows and columns that matter, and leaves out the columns that isobench's own
//! workloads keep for their verdict. The same for every command. Not here: the interleaving in full
//! (`isobench_result::view::tried`).

use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr as _;

use isobench_result::numbers::counted;
use isobench_result::words::{distinct, enumerated};
use isobench_result::{AnsweredRows, OrderOutcome, TriedStep, WrongOutcome};

use super::layout::wrap;
use super::short::folder_of;

/// The columns in which isobench's own workloads note who wrote a row.
const BOOKKEEPING: [&str; 2] = ["version", "writer"];

/// The most steps that are all shown; of more, those at both ends.
const MOST_STEPS: usize = 16;

/// The most lines of a statement.
const MOST_LINES: usize = 2;

/// The most cells or rows that the last line names.
const MOST_NAMED: usize = 3;

/// The narrowest column of a transaction. Where there is no room, transactions are named in each line.
const NARROWEST: usize = 24;

/// The widest lines.
const WIDEST: usize = 100;

/// The most characters of a value.
const LONGEST_VALUE: usize = 24;

/// The width of the numbers before the steps.
const GUTTER: usize = 5;

type Row = Vec<Option<String>>;

/// A wrong outcome with a heading, for the levels at which it happened. `masked` are columns
/// (table.column) whose values mean nothing.
pub fn witness(wrong: &WrongOutcome, levels: &[String], masked: &[String], width: usize) -> Vec<String> {
    let mut lines = wrap(&format!("{}:", heading(wrong, levels)), width, 2);
    lines.extend(steps_and_end(wrong, masked, width));
    let indent = " ".repeat(GUTTER);
    let conditions = conditions(wrong);
    let conditions = conditions.iter().flat_map(|sentence| wrap(sentence, width.saturating_sub(GUTTER), 0));
    lines.extend(conditions.map(|line| format!("{indent}{line}")));
    lines
}

/// What it is, and where.
pub fn heading(wrong: &WrongOutcome, levels: &[String]) -> String {
    let before = if wrong.before.is_empty() { String::new() } else { format!(", {}", plain(&wrong.before)) };
    format!("What goes wrong at {} (executed{before})", enumerated(levels))
}

/// What is wrong, in a few words: "stock 999, not 998", "one row too many in member".
pub fn phrase(wrong: &WrongOutcome, masked: &[String]) -> String {
    if let Some(name) = wrong.broken.first() {
        return format!("breaks \"{}\"", plain(name));
    }
    let differences = Differences::of(wrong, masked);
    let first = differences.orders.first();
    if let Some(cell) = first.and_then(|order| order.cells.first()) {
        let others: Vec<&str> = differences
            .orders
            .iter()
            .flat_map(|order| &order.cells)
            .filter(|other| (&other.place, &other.column) == (&cell.place, &cell.column))
            .map(|other| other.otherwise.as_str())
            .collect();
        let others = distinct(others);
        return format!("{} {}, not {}", plain(&cell.column), cell.now, others.join(" or "));
    }
    let table = |row: &String| row.split(" (").next().unwrap_or_default().to_owned();
    if let Some(row) = first.and_then(|order| order.more.first()) {
        return format!("one row too many in {}", table(row));
    }
    if let Some(row) = first.and_then(|order| order.fewer.first()) {
        return format!("a row of {} is missing", table(row));
    }
    if wrong.damage {
        "rows that no order leaves".to_owned()
    } else {
        "an answer that no order gives".to_owned()
    }
}

/// The conditions of the user's that it breaks, in a sentence; `None` if there are none.
pub fn conditions(wrong: &WrongOutcome) -> Option<String> {
    let broken: Vec<String> = wrong.broken.iter().map(|name| format!("\"{}\"", plain(name))).collect();
    let what = if broken.len() == 1 { "condition" } else { "conditions" };
    (!broken.is_empty()).then(|| format!("This breaks {what} {}.", enumerated(&broken)))
}

/// The steps and the outcome.
pub fn steps_and_end(wrong: &WrongOutcome, masked: &[String], width: usize) -> Vec<String> {
    let width = width.min(WIDEST);
    let differences = Differences::of(wrong, masked);
    let steps = shown_steps(wrong, &differences);
    let mut lines = columns(wrong, &steps, &differences.columns, width);
    let mut end = if wrong.damage { differences.sentences(wrong) } else { answers(wrong) };
    if wrong.no_level_prevents {
        end.push(
            "No level prevents this: T1 is interrupted between two transactions of its script.".to_owned(),
        );
    }
    let indent = " ".repeat(GUTTER);
    let wrapped = end.iter().flat_map(|sentence| wrap(sentence, width.saturating_sub(GUTTER), 0));
    lines.extend(wrapped.map(|line| format!("{indent}{line}")));
    lines
}

/// A text on one line, fit to stand beside others.
fn plain(text: &str) -> String {
    let fit = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(fit).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn value(value: Option<&String>) -> String {
    let Some(text) = value else { return "NULL".to_owned() };
    let text = plain(text);
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.is_empty() => "''".to_owned(),
        None => text,
    }
}

fn is_bookkeeping(column: &str, columns: &[String]) -> bool {
    let all = BOOKKEEPING.iter().all(|own| columns.iter().any(|column| column == own));
    all && BOOKKEEPING.contains(&column)
}

/// A cell of a row that is another one than in a serial order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangedCell {
    /// The table and the row.
    place: String,
    column: String,
    now: String,
    otherwise: String,
}

/// What the tables hold, against what a serial order leaves in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Difference {
    cells: Vec<ChangedCell>,
    /// Rows that are there, and of which a serial order leaves fewer.
    more: Vec<String>,
    /// Rows that a serial order leaves, and of which fewer are there.
    fewer: Vec<String>,
}

/// The same for each serial order.
#[derive(Debug, Default)]
struct Differences {
    /// For each serial order; empty if the values aren't known.
    orders: Vec<Difference>,
    /// The tables that differ.
    tables: Vec<String>,
    /// The columns that differ.
    columns: Vec<String>,
}

impl Differences {
    fn of(wrong: &WrongOutcome, masked: &[String]) -> Differences {
        let known = |order: &&OrderOutcome| !order.tables.is_empty() || order.changes.is_empty();
        let orders = || std::iter::once(&wrong.outcome).chain(&wrong.serial_orders);
        if !wrong.damage || !orders().all(|order| known(&order)) {
            return Differences::default();
        }
        let found = Differences::without(wrong, masked, true);
        if found.tables.is_empty() { Differences::without(wrong, masked, false) } else { found }
    }

    /// The differences, without isobench's own columns if `own` is true.
    fn without(wrong: &WrongOutcome, masked: &[String], own: bool) -> Differences {
        let orders = || std::iter::once(&wrong.outcome).chain(&wrong.serial_orders);
        let names = distinct(orders().flat_map(|order| &order.tables).map(|table| table.table.as_str()));
        let mut found = Differences {
            orders: vec![Difference::default(); wrong.serial_orders.len()],
            ..Differences::default()
        };
        for name in names {
            let columns = orders().flat_map(|order| &order.tables).find(|table| table.table == name);
            let columns = columns.map(|table| table.columns.as_slice()).unwrap_or_default();
            let kept: Vec<usize> = (0..columns.len())
                .filter(|place| !masked.contains(&format!("{name}.{}", columns[*place])))
                .filter(|place| !own || !is_bookkeeping(&columns[*place], columns))
                .collect();
            let titles: Vec<&str> = kept.iter().map(|place| columns[*place].as_str()).collect();
            let now = net(&wrong.outcome, name, &kept);
            for (order, difference) in wrong.serial_orders.iter().zip(&mut found.orders) {
                let (more, fewer) = subtract(&now, &net(order, name, &kept));
                if more.is_empty() && fewer.is_empty() {
                    continue;
                }
                if !found.tables.iter().any(|known| known == name) {
                    found.tables.push(name.to_owned());
                }
                difference.add(name, &titles, more, fewer);
            }
        }
        let cells = found.orders.iter().flat_map(|order| &order.cells);
        found.columns = distinct(cells.map(|cell| cell.column.clone()));
        found
    }

    /// What is now, and what would be.
    fn sentences(&self, wrong: &WrongOutcome) -> Vec<String> {
        let Some((first, others)) = self.orders.split_first().filter(|_| !self.tables.is_empty()) else {
            return changes(wrong);
        };
        if others.iter().all(|other| other == first) {
            let how = match (wrong.serial_orders.len(), wrong.scripts.len()) {
                (0 | 1, _) => "one after the other",
                (_, 0..=2) => "one after the other, in either order,",
                _ => "one after the other, in any order,",
            };
            return first.sentences(how);
        }
        let of = |(order, difference): (&OrderOutcome, &Difference)| difference.sentences(&in_order(order));
        wrong.serial_orders.iter().zip(&self.orders).flat_map(of).collect()
    }
}

/// "first T1, then T2,".
fn in_order(order: &OrderOutcome) -> String {
    let names: Vec<String> = order.order.iter().map(|number| format!("T{number}")).collect();
    format!("in the order {},", names.join(", "))
}

/// How often each row is there more than at the start.
fn net(order: &OrderOutcome, name: &str, kept: &[usize]) -> BTreeMap<Row, i64> {
    let mut net = BTreeMap::new();
    let row = |row: &Row| kept.iter().map(|place| row.get(*place).cloned().flatten()).collect::<Row>();
    for table in order.tables.iter().filter(|table| table.table == name) {
        table.added.iter().for_each(|added| *net.entry(row(added)).or_default() += 1);
        table.removed.iter().for_each(|removed| *net.entry(row(removed)).or_default() -= 1);
    }
    net
}

/// The rows of which the first has more, and those of which it has fewer, as often.
fn subtract(now: &BTreeMap<Row, i64>, otherwise: &BTreeMap<Row, i64>) -> (Vec<Row>, Vec<Row>) {
    let (mut more, mut fewer) = (Vec::new(), Vec::new());
    for row in distinct(now.keys().chain(otherwise.keys())) {
        let of = |net: &BTreeMap<Row, i64>| net.get(row).copied().unwrap_or(0);
        let difference = of(now) - of(otherwise);
        let count = usize::try_from(difference.unsigned_abs()).unwrap_or(usize::MAX).min(MOST_STEPS);
        let rows = if difference > 0 { &mut more } else { &mut fewer };
        rows.extend(std::iter::repeat_n(row.clone(), count));
    }
    (more, fewer)
}

impl Difference {
    /// Adds the rows of a table. Rows that have most columns in common are one row that changed.
    fn add(&mut self, table: &str, columns: &[&str], more: Vec<Row>, mut fewer: Vec<Row>) {
        let alike = |one: &Row, other: &Row| one.iter().zip(other).filter(|(a, b)| a == b).count();
        for row in more {
            let best = (0..fewer.len()).max_by_key(|place| alike(&row, &fewer[*place]));
            let best = best.filter(|place| columns.len() == 1 || alike(&row, &fewer[*place]) > 0);
            let Some(best) = best else {
                self.more.push(format!("{} {}", plain(table), named_row(columns, &row)));
                continue;
            };
            let other = fewer.swap_remove(best);
            let same = (0..columns.len()).find(|place| row[*place] == other[*place]);
            let key = same.map(|place| format!(" {} {}", plain(columns[place]), value(row[place].as_ref())));
            let place = key
                .map_or_else(|| format!("a row of {}", plain(table)), |key| format!("{}{key}", plain(table)));
            let differing = (0..columns.len()).filter(|place| row[*place] != other[*place]);
            self.cells.extend(differing.map(|differing| ChangedCell {
                place: place.clone(),
                column: columns[differing].to_owned(),
                now: value(row[differing].as_ref()),
                otherwise: value(other[differing].as_ref()),
            }));
        }
        self.fewer.extend(fewer.iter().map(|row| format!("{} {}", plain(table), named_row(columns, row))));
    }

    fn sentences(&self, how: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        for cells in self.cells.chunk_by(|one, next| one.place == next.place).take(MOST_NAMED) {
            let place = &cells[0].place;
            let now: Vec<String> =
                cells.iter().map(|cell| format!("{} {}", plain(&cell.column), cell.now)).collect();
            let otherwise: Vec<String> =
                cells.iter().map(|cell| format!("{} {}", plain(&cell.column), cell.otherwise)).collect();
            sentences.push(match cells {
                [cell] => format!(
                    "{} of {place} is {}; {how} it would be {}.",
                    plain(&cell.column),
                    cell.now,
                    cell.otherwise
                ),
                _ => format!("{place} has {}; {how} {}.", enumerated(&now), enumerated(&otherwise)),
            });
        }
        for row in distinct(&self.more).into_iter().take(MOST_NAMED) {
            let count = self.more.iter().filter(|other| *other == row).count();
            let rows = if count == 1 { "one row".to_owned() } else { format!("{count} rows") };
            sentences.push(format!("There is {rows} too many: {row}; {how} there would be fewer."));
        }
        for row in distinct(&self.fewer).into_iter().take(MOST_NAMED) {
            sentences.push(format!("A row is missing: {row}; {how} it would be there."));
        }
        sentences
    }
}

/// A row with the names of its columns: "(show 1, no 1)".
fn named_row(columns: &[&str], row: &Row) -> String {
    const MOST: usize = 6;
    let mut values: Vec<String> = columns
        .iter()
        .zip(row)
        .take(MOST)
        .map(|(column, of)| format!("{} {}", plain(column), value(of.as_ref())))
        .collect();
    if columns.len() > MOST {
        values.push("…".to_owned());
    }
    format!("({})", values.join(", "))
}

/// The changes of the tables as lines of text, where nothing else is known.
fn changes(wrong: &WrongOutcome) -> Vec<String> {
    let is_there = |line: &String| wrong.serial_orders.iter().any(|order| order.changes.contains(line));
    let only: Vec<&String> = wrong.outcome.changes.iter().filter(|line| !is_there(line)).collect();
    let said = |lines: Vec<&String>| {
        let shown: Vec<String> = lines.iter().take(MOST_NAMED).map(|line| plain(line)).collect();
        let more = lines.len().saturating_sub(MOST_NAMED);
        let more =
            if more > 0 { format!(" and {}", counted(more as u64, "more row")) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let new = |order: &OrderOutcome| -> Vec<String> {
        order.changes.iter().filter(|line| !wrong.outcome.changes.contains(line)).cloned().collect()
    };
    let otherwise: Vec<Vec<String>> = distinct(wrong.serial_orders.iter().map(new));
    let mut sentences = Vec::new();
    if !only.is_empty() {
        sentences.push(format!("One after the other there would not be {}.", said(only)));
    }
    for lines in otherwise.iter().filter(|lines| !lines.is_empty()) {
        sentences.push(format!("One after the other there would be {}.", said(lines.iter().collect())));
    }
    sentences
}

/// The answers that differ.
fn answers(wrong: &WrongOutcome) -> Vec<String> {
    let transactions = distinct(wrong.steps.iter().map(|step| step.transaction));
    let mut sentences = Vec::new();
    for transaction in transactions {
        let of = |order: &OrderOutcome| -> Vec<String> {
            let rows = order.rows.iter().filter(|rows| rows.transaction == transaction);
            let texts = rows.map(|rows| in_short(rows, &[])).collect::<Vec<_>>();
            if texts.is_empty() {
                let start = format!("T{transaction}: ");
                return order
                    .answers
                    .iter()
                    .filter_map(|line| line.strip_prefix(&start))
                    .map(plain)
                    .collect();
            }
            texts
        };
        let now = of(&wrong.outcome);
        let others: Vec<Vec<String>> = wrong.serial_orders.iter().map(of).collect();
        if others.iter().all(|other| *other == now) {
            continue;
        }
        let differs = |place: &usize| others.iter().any(|other| other.get(*place) != now.get(*place));
        let longest = others.iter().map(Vec::len).chain([now.len()]).max().unwrap_or(0);
        let places: Vec<usize> = (0..longest).filter(differs).take(MOST_NAMED).collect();
        let said = |texts: &Vec<String>| {
            let texts: Vec<String> = places
                .iter()
                .map(|place| texts.get(*place).cloned().unwrap_or("nothing".to_owned()))
                .collect();
            texts.join(", then ")
        };
        let otherwise: Vec<String> = distinct(others.iter().map(said));
        sentences.push(format!(
            "T{transaction} gets {}; one after the other it would get {}.",
            said(&now),
            otherwise.join("; or ")
        ));
    }
    sentences
}

/// Rows in a few words: those of the columns that matter, if any of them is there.
fn in_short(rows: &AnsweredRows, columns: &[String]) -> String {
    const MOST: usize = 3;
    let row = match rows.rows.as_slice() {
        [] => return "no row".to_owned(),
        [row] => row,
        several => return counted(several.len() as u64, "row"),
    };
    let own = |place: &usize| !is_bookkeeping(&rows.columns[*place], &rows.columns);
    let all: Vec<usize> = (0..rows.columns.len().min(row.len())).filter(own).collect();
    let matter: Vec<usize> =
        all.iter().copied().filter(|place| columns.contains(&rows.columns[*place])).collect();
    let shown = if matter.is_empty() { all } else { matter };
    let mut said: Vec<String> = match shown.as_slice() {
        [only] => vec![value(row[*only].as_ref())],
        several => several
            .iter()
            .take(MOST)
            .map(|place| format!("{} {}", plain(&rows.columns[*place]), value(row[*place].as_ref())))
            .collect(),
    };
    if shown.len() > MOST {
        said.push("…".to_owned());
    }
    said.join(", ")
}

/// A step that is shown, with its rows where their values are known.
struct ShownStep<'a> {
    step: &'a TriedStep,
    rows: Option<&'a AnsweredRows>,
    /// True if it waited before.
    goes_on: bool,
}

/// The steps that matter: without BEGIN, and without statements on other tables than those that differ
/// if what they returned is what they return in a serial order.
fn shown_steps<'a>(wrong: &'a WrongOutcome, differences: &Differences) -> Vec<ShownStep<'a>> {
    let answered = returned(wrong);
    let mut steps: Vec<ShownStep<'_>> = Vec::new();
    let mut waiting: Vec<usize> = Vec::new();
    for (step, place) in wrong.steps.iter().zip(&answered) {
        let goes_on = waiting.contains(&step.transaction);
        waiting.retain(|transaction| *transaction != step.transaction);
        if step.waits() {
            waiting.push(step.transaction);
        }
        let rows = place.and_then(|place| rows_of(&wrong.outcome, step.transaction).nth(place));
        steps.push(ShownStep { step, rows, goes_on });
    }
    let went_on =
        |step: &TriedStep| steps.iter().any(|shown| shown.goes_on && std::ptr::eq(shown.step, step));
    let matters = |step: &TriedStep| {
        is_end(&step.sql)
            || step.waits()
            || went_on(step)
            || failed(step)
            || locks(&step.sql)
            || differences.tables.iter().any(|table| mentions(&step.sql, table))
    };
    let left_out: Vec<(usize, usize)> = wrong
        .steps
        .iter()
        .zip(&answered)
        .filter(|(step, _)| !matters(step))
        .filter_map(|(step, place)| Some((step.transaction, (*place)?)))
        .collect();
    let same_in = |order: &OrderOutcome| {
        left_out.iter().all(|(transaction, place)| {
            let of = |order| rows_of(order, *transaction).nth(*place).map(|rows| in_short(rows, &[]));
            of(&wrong.outcome) == of(order)
        })
    };
    let known = wrong.steps.iter().zip(&answered).all(|(step, place)| place.is_some() || !returns(step));
    let may = !differences.tables.is_empty() && known && wrong.serial_orders.iter().any(same_in);
    let transactions = distinct(wrong.steps.iter().map(|step| step.transaction));
    let whole: Vec<usize> = transactions
        .into_iter()
        .filter(|transaction| {
            let mut own = wrong.steps.iter().filter(|step| step.transaction == *transaction);
            !own.any(|step| matters(step) && !is_end(&step.sql))
        })
        .collect();
    let kept: Vec<bool> = steps
        .iter()
        .map(|shown| {
            let matters = !may || matters(shown.step) || whole.contains(&shown.step.transaction);
            matters && !is_begin(shown.step)
        })
        .collect();
    steps.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(shown, _)| shown).collect()
}

/// For each step that returned rows, which of its transaction's answers it is; none where that isn't
/// certain.
fn returned(wrong: &WrongOutcome) -> Vec<Option<usize>> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let places: Vec<Option<usize>> = wrong
        .steps
        .iter()
        .map(|step| {
            returns(step).then(|| {
                let count = counts.entry(step.transaction).or_default();
                *count += 1;
                *count - 1
            })
        })
        .collect();
    let certain = |transaction: usize| {
        counts.get(&transaction).copied() == Some(rows_of(&wrong.outcome, transaction).count())
    };
    wrong.steps.iter().zip(places).map(|(step, place)| place.filter(|_| certain(step.transaction))).collect()
}

fn rows_of(order: &OrderOutcome, transaction: usize) -> impl Iterator<Item = &AnsweredRows> {
    order.rows.iter().filter(move |rows| rows.transaction == transaction)
}

/// True if a step returned rows.
fn returns(step: &TriedStep) -> bool {
    step.answer.len() > 1
        && step.answer.last().is_some_and(|line| line.starts_with('(') && line.ends_with(')'))
}

fn command(sql: &str) -> String {
    let letters: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    letters.to_ascii_uppercase()
}

fn is_begin(step: &TriedStep) -> bool {
    ["BEGIN", "START"].contains(&command(&step.sql).as_str()) && !failed(step)
}

fn is_end(sql: &str) -> bool {
    ["COMMIT", "END", "ROLLBACK", "ABORT"].contains(&command(sql).as_str())
}

/// True if the server refused a step.
fn failed(step: &TriedStep) -> bool {
    let first = step.answer.first().map_or("", String::as_str);
    !returns(step) && !step.waits() && !first.is_empty() && !is_tag(first)
}

/// True if an answer is a command tag: "UPDATE 1".
fn is_tag(answer: &str) -> bool {
    answer.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == ' ')
}

/// True if a statement takes a lock by itself, for which others may wait.
fn locks(sql: &str) -> bool {
    let sql = sql.to_lowercase();
    sql.contains("_lock") || sql.trim_start().starts_with("lock ")
}

/// True if a statement has a table's name as a word.
fn mentions(sql: &str, table: &str) -> bool {
    let bare = table.rsplit('.').next().unwrap_or(table).to_lowercase();
    let word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    sql.to_lowercase().split(|letter| !word(letter)).any(|found| found == bare)
        || sql.to_lowercase().contains(&bare) && bare.contains(|letter| !word(letter))
}

/// The steps, each in the column of its transaction.
fn columns(wrong: &WrongOutcome, steps: &[ShownStep<'_>], matter: &[String], width: usize) -> Vec<String> {
    let mut transactions = distinct(wrong.steps.iter().map(|step| step.transaction));
    transactions.sort_unstable();
    let count = transactions.len().max(1);
    let column = (width.saturating_sub(GUTTER) / count).saturating_sub(2);
    let beside = column >= NARROWEST;
    let room = if beside { column } else { width.saturating_sub(GUTTER + 4) };
    let folder = folder_of(wrong.scripts.iter().map(String::as_str)).map_or(0, str::len);
    let name = |transaction: usize| {
        let script = wrong.scripts.get(transaction.wrapping_sub(1)).map(|script| plain(&script[folder..]));
        script.map_or_else(|| format!("T{transaction}"), |script| format!("T{transaction}  {script}"))
    };
    let mut lines = Vec::new();
    if beside {
        let titles: Vec<String> = transactions.iter().map(|one| fitted(&name(*one), column)).collect();
        let padded: Vec<String> = titles.iter().map(|title| pad(title, column + 2)).collect();
        lines.push(format!("{}{}", " ".repeat(GUTTER), padded.concat()).trim_end().to_owned());
    }
    for (number, shown) in steps.iter().enumerate() {
        if steps.len() > MOST_STEPS && number == MOST_STEPS / 2 {
            let left = steps.len() - MOST_STEPS;
            lines.push(format!("{}… {}", " ".repeat(GUTTER), counted(left as u64, "more statement")));
        }
        let is_between = (MOST_STEPS / 2..steps.len().saturating_sub(MOST_STEPS / 2)).contains(&number);
        if steps.len() > MOST_STEPS && is_between {
            continue;
        }
        let place = transactions.iter().position(|one| *one == shown.step.transaction).unwrap_or(0);
        let before = if beside { place * (column + 2) } else { 4 };
        for (line, text) in said(shown, matter, room).iter().enumerate() {
            let head = if line == 0 { format!("{:>3}  ", number + 1) } else { " ".repeat(GUTTER) };
            let own = match (beside, line) {
                (false, 0) => pad(&format!("T{}", shown.step.transaction), 4),
                _ => " ".repeat(before),
            };
            lines.push(format!("{head}{own}{text}"));
        }
    }
    lines
}

/// A text of at least this width.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// A text of at most this width.
fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for letter in text.chars() {
        if fitted.width() + 2 > width {
            break;
        }
        fitted.push(letter);
    }
    fitted + "…"
}

/// A step in a column of this width: the statement, and what came of it.
fn said(shown: &ShownStep<'_>, matter: &[String], room: usize) -> Vec<String> {
    let ShownStep { step, rows, goes_on } = shown;
    let result = result(step, *rows, matter);
    let variants = shortened(&step.sql, matter);
    let whole = |sql: &String| {
        let sql = if *goes_on { format!("{} goes on", command(sql)) } else { sql.clone() };
        if result.is_empty() { sql } else { format!("{sql} {result}") }
    };
    let texts: Vec<String> = variants.iter().map(whole).collect();
    if let Some(text) = texts.iter().find(|text| text.width() <= room) {
        return vec![text.clone()];
    }
    let shortest = texts.last().cloned().unwrap_or_default();
    let mut lines: Vec<String> = wrap(&shortest, room, 2).iter().map(|line| fitted(line, room)).collect();
    if lines.len() > MOST_LINES {
        // What came of it matters more than the end of a long statement.
        lines.truncate(MOST_LINES);
        let end = if result.is_empty() { "…".to_owned() } else { format!("  … {result}") };
        lines[MOST_LINES - 1] = fitted(&end, room);
    }
    lines
}

/// What came of a step: "→ 1000", "waits", "→ no row"; nothing for what is usual.
fn result(step: &TriedStep, rows: Option<&AnsweredRows>, matter: &[String]) -> String {
    if step.waits() {
        return "waits".to_owned();
    }
    if let Some(rows) = rows {
        let own: Vec<&String> =
            rows.columns.iter().filter(|column| !is_bookkeeping(column, &rows.columns)).collect();
        let is_write = command(&step.sql) != "SELECT" && command(&step.sql) != "WITH";
        // What isobench asks its own statements to return.
        let is_own = is_write && own.len() < rows.columns.len();
        return if is_own { String::new() } else { format!("→ {}", in_short(rows, matter)) };
    }
    let first = step.answer.first().map(|line| plain(line)).unwrap_or_default();
    if returns(step) {
        // Without the values apart, the text of the only row.
        return match step.answer.as_slice() {
            [_, row, _] => format!("→ {}", plain(row)),
            [.., count] => format!("→ {}", plain(count).trim_matches(['(', ')'])),
            [] => String::new(),
        };
    }
    match first.as_str() {
        "" => String::new(),
        _ if failed(step) => format!("→ {first}"),
        "UPDATE 0" | "DELETE 0" | "INSERT 0 0" => "→ no row".to_owned(),
        "ROLLBACK" if command(&step.sql) != "ROLLBACK" => "→ ROLLBACK".to_owned(),
        _ => String::new(),
    }
}

/// A statement, and shorter forms of it that keep what matters.
fn shortened(sql: &str, matter: &[String]) -> Vec<String> {
    let sql = plain(sql);
    let sql = sql.trim_end_matches(';').trim_end();
    let own = clause(sql, "RETURNING")
        .filter(|(_, list)| BOOKKEEPING.iter().all(|column| items(list).iter().any(|item| item == column)));
    let sql = own.map_or(sql, |(before, _)| before.trim_end());
    let has_own = own.is_some() || BOOKKEEPING.iter().all(|column| mentions(sql, column));
    let is_own = |item: &str| has_own && BOOKKEEPING.contains(&name_of(item));
    let of_matter = |item: &str| matter.iter().any(|column| column == name_of(item));
    let picked = |list: &str| -> (Vec<String>, bool) {
        let all: Vec<String> = items(list).into_iter().filter(|item| !is_own(item)).collect();
        let some: Vec<String> = all.iter().filter(|item| of_matter(item)).cloned().collect();
        if some.is_empty() { (all, false) } else { (some.clone(), some.len() < all.len()) }
    };
    match command(sql).as_str() {
        "SELECT" => {
            let Some((list, rest)) = clause(sql, "FROM") else { return vec![sql.to_owned()] };
            let (columns, cut) = picked(list.trim_start()["SELECT".len()..].trim());
            let columns = columns.join(", ");
            let dots = if cut { ", …" } else { "" };
            let mut forms = vec![format!("SELECT {columns}{dots} FROM {rest}")];
            if let Some((_, condition)) = clause(rest, "WHERE").filter(|_| cut) {
                forms.push(format!("SELECT {columns} … {condition}"));
            } else if let Some((table, _)) = rest.split_once(' ') {
                forms.push(format!("SELECT {columns}{dots} FROM {table} …"));
            }
            forms
        }
        "UPDATE" => {
            let Some((table, rest)) = clause(sql, "SET") else { return vec![sql.to_owned()] };
            let (list, condition) = clause(rest, "WHERE").unwrap_or((rest, ""));
            let (sets, cut) = picked(list);
            let sets = sets.join(", ");
            let dots = if cut { ", …" } else { "" };
            let filter = if condition.is_empty() { String::new() } else { format!(" WHERE {condition}") };
            let whole = format!("{table} SET {sets}{dots}{filter}");
            vec![whole, format!("{table} … {sets}"), format!("UPDATE … {sets}")]
        }
        _ => vec![sql.to_owned()],
    }
}

/// The name of a column in a list: that of `a.b AS c` is c, that of `a = 1` is a.
fn name_of(item: &str) -> &str {
    let item = item.split('=').next().unwrap_or(item).trim();
    let item = item.rsplit(' ').next().unwrap_or(item);
    item.rsplit('.').next().unwrap_or(item)
}

/// The items of a list, apart from commas in parentheses and quotes.
fn items(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    for (letter, outside) in outside(list) {
        match letter {
            ',' if outside => items.push(String::new()),
            letter => items.last_mut().expect("one item at least").push(letter),
        }
    }
    items.iter().map(|item| item.trim().to_owned()).collect()
}

/// The letters of a text, and whether each stands outside of quotes and parentheses.
fn outside(text: &str) -> impl Iterator<Item = (char, bool)> {
    let (mut depth, mut quote) = (0_usize, None);
    text.chars().map(move |letter| {
        let free = depth == 0 && quote.is_none();
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        (letter, free)
    })
}

/// What stands before and after a keyword outside of quotes and parentheses.
fn clause<'a>(sql: &'a str, keyword: &str) -> Option<(&'a str, &'a str)> {
    let mut place = 0;
    let mut before = ' ';
    for (letter, free) in outside(sql) {
        let rest = &sql[place..];
        let starts = rest.get(..keyword.len()).is_some_and(|word| word.eq_ignore_ascii_case(keyword));
        if free && before == ' ' && starts && rest[keyword.len()..].starts_with(' ') {
            return Some((sql[..place].trim_end(), rest[keyword.len()..].trim_start()));
        }
        before = letter;
        place += letter.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use isobench_result::ChangedTable;

    use super::*;

    fn values(values: &[&str]) -> Row {
        values.iter().map(|value| (*value != "NULL").then(|| (*value).to_owned())).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn step(transaction: usize, sql: &str, answer: &[&str]) -> TriedStep {
        TriedStep { transaction, sql: sql.to_owned(), line: None, answer: names(answer) }
    }

    fn table(table: &str, columns: &[&str], removed: &[&[&str]], added: &[&[&str]]) -> ChangedTable {
        let rows = |rows: &[&[&str]]| rows.iter().map(|row| values(row)).collect();
        ChangedTable {
            table: table.to_owned(),
            columns: names(columns),
            removed: rows(removed),
            added: rows(added),
        }
    }

    fn answered(transaction: usize, columns: &[&str], row: &[&str]) -> AnsweredRows {
        AnsweredRows { transaction, columns: names(columns), rows: vec![values(row)] }
    }

    const PRODUCT: [&str; 4] = ["id", "version", "writer", "stock"];
    const SHOP: [&str; 3] = ["id", "version", "writer"];

    /// Two orders that read the same stock, as isobench's own workload sends them.
    fn lost_update() -> WrongOutcome {
        let read = "SELECT id, version, writer, stock FROM products WHERE id = 1;";
        let shop = "SELECT id, version, writer FROM shops WHERE id = 1";
        let write = "UPDATE products SET version = version + 1, writer = 7, stock = 999 WHERE id = 1 RETURNING id, version, writer;";
        let rows = ["id | version | writer | stock", "1 | 0 |  | 1000", "(1 row)"];
        let returned = ["id | version | writer", "1 | 1 | 7", "(1 row)"];
        let order = |numbers: &[usize], stock: &str, second: &str| OrderOutcome {
            order: numbers.to_vec(),
            changes: vec![format!("+ products (1, 2, 7, {stock})")],
            tables: vec![table(
                "products",
                &PRODUCT,
                &[&["1", "0", "NULL", "1000"]],
                &[&["1", "2", "7", stock]],
            )],
            rows: vec![
                answered(1, &PRODUCT, &["1", "0", "NULL", second]),
                answered(1, &SHOP, &["1", "0", "NULL"]),
                answered(1, &SHOP, &["1", "1", "7"]),
                answered(2, &PRODUCT, &["1", "0", "NULL", "1000"]),
                answered(2, &SHOP, &["1", "1", "7"]),
            ],
            ..OrderOutcome::default()
        };
        WrongOutcome {
            damage: true,
            scripts: names(&["orders", "orders"]),
            steps: vec![
                step(1, "BEGIN;", &["BEGIN"]),
                step(1, read, &rows),
                step(2, "BEGIN;", &["BEGIN"]),
                step(2, read, &rows),
                step(2, write, &returned),
                step(2, "COMMIT;", &["COMMIT"]),
                step(1, shop, &["id | version | writer", "1 | 0 | ", "(1 row)"]),
                step(1, write, &returned),
                step(1, "COMMIT;", &["COMMIT"]),
            ],
            outcome: order(&[1, 2], "999", "1000"),
            serial_orders: vec![order(&[1, 2], "998", "1000"), order(&[2, 1], "998", "999")],
            ..WrongOutcome::default()
        }
    }

    #[test]
    fn a_lost_update_is_two_columns_and_a_line() {
        let expected = [
            "     T1  orders                    T2  orders",
            "  1  SELECT stock … id = 1 → 1000",
            "  2                                SELECT stock … id = 1 → 1000",
            "  3                                UPDATE … stock = 999",
            "  4                                COMMIT",
            "  5  UPDATE … stock = 999",
            "  6  COMMIT",
            "     stock of products id 1 is 999; one after the other, in either",
            "     order, it would be 998.",
        ];
        assert_eq!(steps_and_end(&lost_update(), &[], 66), expected);
    }

    /// A statement on another table is left out only if what it returned is possible in a serial order.
    #[test]
    fn what_no_order_returns_is_shown() {
        let mut wrong = lost_update();
        for order in &mut wrong.serial_orders {
            order.rows[1] = answered(1, &SHOP, &["2", "0", "NULL"]);
        }
        let lines = steps_and_end(&wrong, &[], 100).join("\n");
        assert!(lines.contains("FROM shops"), "{lines}");
    }

    #[test]
    fn narrow_terminals_name_the_transaction_in_each_line() {
        let lines = steps_and_end(&lost_update(), &[], 40);
        assert_eq!(lines[0], "  1  T1  SELECT stock … id = 1 → 1000");
        assert_eq!(lines[3], "  4  T2  COMMIT");
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:#?}");
    }

    #[test]
    fn waits_and_errors_are_shown() {
        let mut wrong = lost_update();
        let write = "UPDATE products SET stock = 999 WHERE id = 1";
        wrong.steps = vec![
            step(1, write, &["UPDATE 1"]),
            step(2, write, &["waits"]),
            step(1, "COMMIT", &["COMMIT"]),
            step(2, write, &["UPDATE 0"]),
            step(2, "COMMIT", &["ERROR:  it is late"]),
        ];
        let lines = steps_and_end(&wrong, &[], 100);
        let at = |number: usize| lines[number].trim_start_matches([' ', '1', '2', '3', '4', '5']);
        assert_eq!(at(2), "UPDATE products … stock = 999 waits");
        assert_eq!(at(4), "UPDATE goes on → no row");
        assert_eq!(at(5), "COMMIT → ERROR: it is late");
    }

    #[test]
    fn a_row_too_many_is_named_without_its_masked_key() {
        let columns = ["id", "show", "no"];
        let order = |rows: &[&[&str]]| OrderOutcome {
            changes: vec!["+".to_owned()],
            tables: vec![table("seat", &columns, &[], rows)],
            ..OrderOutcome::default()
        };
        let wrong = WrongOutcome {
            damage: true,
            scripts: names(&["a", "b", "c"]),
            outcome: order(&[&["11", "1", "1"], &["12", "1", "1"]]),
            serial_orders: vec![order(&[&["11", "1", "1"]]), order(&[&["14", "1", "1"]])],
            ..WrongOutcome::default()
        };
        let lines = steps_and_end(&wrong, &names(&["seat.id"]), 100);
        let end =
            "There is one row too many: seat (show 1, no 1); one after the other, in any order, there would";
        assert!(lines.join(" ").contains(end), "{lines:#?}");
        let without = steps_and_end(&wrong, &[], 100).join(" ");
        assert!(without.contains("in the order"), "{without}");
    }

    #[test]
    fn answers_that_no_order_gives_are_named() {
        let order = |one: &str, two: &str| OrderOutcome {
            rows: vec![answered(1, &["balance"], &[one]), answered(1, &["balance"], &[two])],
            ..OrderOutcome::default()
        };
        let wrong = WrongOutcome {
            steps: vec![step(1, "SELECT 1", &["SELECT 1"])],
            outcome: order("100", "101"),
            serial_orders: vec![order("100", "100"), order("99", "101")],
            ..WrongOutcome::default()
        };
        let end =
            "     T1 gets 100, then 101; one after the other it would get 100, then 100; or 99, then 101.";
        assert_eq!(steps_and_end(&wrong, &[], 100).last().map(String::as_str), Some(end));
    }

    /// Control characters of a user's data neither break the columns nor reach the terminal.
    #[test]
    fn values_stay_on_their_line() {
        let mut wrong = lost_update();
        for order in std::iter::once(&mut wrong.outcome).chain(&mut wrong.serial_orders) {
            let row = &mut order.tables[0].added[0];
            row[3] = Some(format!("{}\n\u{1b}[2J", row[3].as_deref().unwrap_or_default()));
        }
        let lines = steps_and_end(&wrong, &[], 80);
        assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:?}");
    }

    #[test]
    fn statements_are_cut_where_nothing_matters() {
        let matter = names(&["n"]);
        for (sql, short) in [
            ("SELECT a, n, b FROM t WHERE id = 1 AND x IN (1, 2);", "SELECT n … id = 1 AND x IN (1, 2)"),
            ("SELECT count(*) FROM t WHERE id = 1", "SELECT count(*) FROM t …"),
            ("SELECT ' FROM ', t.n FROM t", "SELECT t.n, … FROM t"),
            ("UPDATE t SET a = (SELECT 1, 2), n = n + 1 WHERE id = 1", "UPDATE … n = n + 1"),
            ("UPDATE t SET version = 1 WHERE id = 1", "UPDATE … version = 1"),
            ("DELETE FROM t", "DELETE FROM t"),
        ] {
            assert_eq!(shortened(sql, &matter).last().map(String::as_str), Some(short), "{sql}");
        }
    }
}
