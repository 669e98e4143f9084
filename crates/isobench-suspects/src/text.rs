//! The answer on one screen, and with all details.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::answer::{Answer, Between, COUNTED, Group, Row, Schedule};
use crate::live::{Live, Side};
use crate::suspect::Kind;
use crate::words::short;

/// How many suspects one screen shows.
const MOST_SUSPECTS: usize = 7;

/// How many of those that went wrong.
const MOST_LIVE: usize = 3;

/// How many of those between transactions.
const MOST_BETWEEN: usize = 3;

/// How many reasons why kinds aren't analysed.
const MOST_REASONS: usize = 4;

/// Where the answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    /// Lines have at most so many columns.
    pub width: usize,
    /// The name of the database in commands, if it is known.
    pub database: Option<&'a str>,
    /// True to show everything.
    pub details: bool,
}

/// The answer.
pub fn render(answer: &Answer, screen: Screen<'_>) -> String {
    let mut text = String::new();
    live(&mut text, answer, screen);
    head(&mut text, answer, screen);
    suspects(&mut text, answer, screen);
    between(&mut text, answer, screen);
    counts(&mut text, answer, screen);
    next(&mut text, answer, screen);
    if screen.details {
        details(&mut text, answer, screen);
    }
    text
}

fn plural(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// What went wrong while it was recorded: the first ones with both sides.
fn live(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let lost = answer.live.iter().filter(|live| live.kind == Kind::LostUpdate).count() as u64;
    let twice = answer.live.iter().filter(|live| live.kind == Kind::Duplicate).count() as u64;
    let over = answer.live.len() as u64 - lost - twice;
    let mut found = Vec::new();
    if lost > 0 {
        found.push(format!("{} {} lost", plural(lost, "change"), if lost == 1 { "was" } else { "were" }));
    }
    if twice > 0 {
        let were = if twice == 1 { "was" } else { "were" };
        found.push(format!("{} {were} inserted twice", plural(twice, "row")));
    }
    if over > 0 {
        let were = if over == 1 { "was" } else { "were" };
        found.push(format!("{} {were} probably exceeded", plural(over, "limit")));
    }
    if found.is_empty() {
        return;
    }
    paragraph(text, &format!("While this was recorded, {}.", found.join(", and ")), screen.width, 0);
    let most = if screen.details { usize::MAX } else { MOST_LIVE };
    for (number, live) in (1..).zip(answer.live.iter().take(most)) {
        let title = cut(&live.title(), screen.width.saturating_sub(6));
        let _ = writeln!(text, "{:>4}  {title}", format!("{number}."));
        let half = (screen.width.saturating_sub(6) / 2).max(20);
        let sides: Vec<Vec<String>> =
            live.sides.iter().map(|side| side_lines(side, live, half - 2)).collect();
        for line in 0..sides[0].len().max(sides[1].len()) {
            let part = |side: &Vec<String>| side.get(line).cloned().unwrap_or_default();
            let both = format!("{:<half$}{}", part(&sides[0]), part(&sides[1]));
            let _ = writeln!(text, "      {}", both.trim_end());
        }
        if let Some(one) = live.otherwise() {
            paragraph(text, &one, screen.width, 6);
        }
    }
    let rest = answer.live.len().saturating_sub(most);
    if rest > 0 {
        let _ = writeln!(text, "  {rest} more: --details");
    }
    text.push('\n');
}

impl Live {
    /// The fault and its row, in a few words.
    pub fn title(&self) -> String {
        let of_row: Vec<String> =
            self.row.iter().map(|(column, value)| format!("{column} {value}")).collect();
        let row = format!("{} {}", short(&self.table), of_row.join(", "));
        match self.kind {
            Kind::Duplicate => format!("{row}: inserted twice"),
            Kind::WriteSkew => format!("{row}: one row too {}", if is_fewer(self) { "few" } else { "many" }),
            _ => format!("{row}: a change of {} is lost", columns(&self.sides[0].wrote)),
        }
    }

    /// What both sides did, and what one after the other would have, in lines.
    pub fn witness(&self) -> Vec<String> {
        let sides = self.sides.iter().map(|side| side_lines(side, self, usize::MAX).join(", "));
        sides.chain(self.otherwise()).collect()
    }

    /// What one after the other would have.
    fn otherwise(&self) -> Option<String> {
        let (_, first) = self.otherwise.first()?;
        if self.kind == Kind::WriteSkew {
            return Some(format!(
                "after one of them the other one finds {first}, and then this code never writes"
            ));
        }
        let (now, after) = (pairs(&self.sides[1].wrote), pairs(&self.otherwise));
        Some(format!("it is {now}; one after the other it would be {after}"))
    }
}

/// True if both took a row away.
fn is_fewer(live: &Live) -> bool {
    live.sides.iter().all(|side| !side.wrote.is_empty())
}

/// What one side read and wrote, with lines of the capture.
fn side_lines(side: &Side, live: &Live, width: usize) -> Vec<String> {
    let route = side.route.as_ref().map_or(String::new(), |route| format!(" {route}"));
    let mut lines = vec![format!("session {}{route}", side.session)];
    match (side.read_line, live.kind) {
        (Some(line), Kind::Duplicate) => lines.push(format!("found none (line {line})")),
        (Some(line), Kind::WriteSkew) => {
            let count = side.read.first().map_or("", |(_, count)| count);
            lines.push(format!("found {count} rows (line {line})"));
        }
        (Some(line), _) if !side.read.is_empty() => {
            lines.push(format!("read {} (line {line})", pairs(&side.read)));
        }
        _ => {}
    }
    let wrote = match live.kind {
        Kind::Duplicate => "inserted it".to_owned(),
        Kind::WriteSkew if side.wrote.is_empty() => "inserted one".to_owned(),
        _ => format!("wrote {}", pairs(&side.wrote)),
    };
    lines.push(format!("{wrote} (line {})", side.write_line));
    lines.iter().map(|line| cut(line, width)).collect()
}

fn pairs(all: &[(String, String)]) -> String {
    all.iter().map(|(column, value)| format!("{column} {value}")).collect::<Vec<_>>().join(", ")
}

fn columns(all: &[(String, String)]) -> String {
    all.iter().map(|(column, _)| column.as_str()).collect::<Vec<_>>().join(", ")
}

fn head(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let pairs = match answer.racing {
        0 => "No pair of transactions can race at the level they ran at, as far as isobench sees.".to_owned(),
        1 => "1 pair of transactions can race at the level they ran at.".to_owned(),
        many => format!("{many} pairs of transactions can race at the level they ran at."),
    };
    paragraph(text, &pairs, screen.width, 0);
    let kinds = answer.templates.len() as u64;
    let of = format!(
        "{} of {}; {} with common tables; theory alone, nothing was run",
        plural(answer.transactions, "transaction"),
        plural(kinds, "kind"),
        plural(answer.pairs, "pair")
    );
    paragraph(text, &of, screen.width, 0);
    text.push('\n');
}

fn suspects(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let most = if screen.details { usize::MAX } else { MOST_SUSPECTS };
    for (number, group) in (1..).zip(answer.suspects.iter().take(most)) {
        let level = format!("{}, needs {}", group.levels.join(" and "), needed(group));
        entry(text, number, &group.title, group.count, screen.width);
        let place = place(group.line, group.routes.first().map(String::as_str));
        paragraph(text, &format!("{}; {level}; {place}", group.reason), screen.width, 6);
        if number == 1 || screen.details {
            witness(text, group, screen.width);
        }
    }
    let rest = answer.suspects.len().saturating_sub(most);
    if rest > 0 {
        let _ = writeln!(text, "  {}: --details", plural(rest as u64, "more suspect"));
    }
    if !answer.suspects.is_empty() {
        text.push('\n');
    }
}

fn needed(group: &Group) -> &str {
    group.needed.as_deref().unwrap_or("a lock: no level is enough")
}

/// A numbered line with a count at its end.
fn entry(text: &mut String, number: usize, title: &str, count: u64, width: usize) {
    let times = format!("{count} recorded");
    let room = width.saturating_sub(6 + times.len() + 1);
    let title = cut(title, room);
    let _ = writeln!(text, "{:>4}  {title:<room$} {times}", format!("{number}."));
}

fn place(line: u64, route: Option<&str>) -> String {
    match route {
        Some(route) => format!("{route}, line {line}"),
        None => format!("line {line}"),
    }
}

/// Two columns: who goes wrong, and who comes in between.
fn witness(text: &mut String, group: &Group, width: usize) {
    let Schedule { before, within, after } = &group.schedule;
    let half = (width.saturating_sub(8) / 2).max(20);
    let mut number = 0;
    let mut line = |left: &str, right: &str| {
        number += 1;
        let _ = writeln!(text, "{:>6}  {}", number, format!("{left:<half$} {right}").trim_end());
    };
    let sql = |one: &str| cut(&brief(one, group), half - 1);
    for one in before {
        line(&sql(one), "");
    }
    for one in within {
        line("", &sql(one));
    }
    line("", "COMMIT");
    for one in after {
        line(&sql(one), "");
    }
    line("COMMIT", "");
    let lost = match group.kind {
        Kind::LostUpdate => format!("the change of {} by the second one is lost", group.tables[0]),
        Kind::Duplicate if group.reason == COUNTED => {
            format!("{} may have one row more than the first one allows", group.tables[0])
        }
        Kind::Duplicate => format!("{} has two rows; one after the other it would have one", group.tables[0]),
        Kind::WriteSkew => "what the first one read isn't so any more".to_owned(),
        Kind::StaleRead => "the first one sees only a part of what the second one did".to_owned(),
    };
    let _ = writeln!(text, "        {lost}");
}

/// A statement without quotation marks and names of tables before columns, and of its columns those that matter.
fn brief(key: &str, group: &Group) -> String {
    let plain = key.replace('"', "");
    let words: Vec<String> = plain
        .split(' ')
        .map(|word| match word.rsplit_once('.') {
            Some((before, name))
                if before.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte)) =>
            {
                name.to_owned()
            }
            _ => word.to_owned(),
        })
        .collect();
    let plain = words.join(" ");
    let (Some(list), Some(from)) = (plain.strip_prefix("SELECT "), plain.find(" FROM ")) else {
        return plain;
    };
    if from < 30 || list.starts_with("count(") {
        return plain;
    }
    let columns: Vec<&str> = group.columns.iter().take(2).map(String::as_str).collect();
    let columns = if columns.is_empty() { "…".to_owned() } else { columns.join(", ") };
    format!("SELECT {columns}{}", &plain[from..])
}

fn between(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    if answer.between.is_empty() {
        return;
    }
    paragraph(text, "Read in one transaction, written in the next: no level protects that.", screen.width, 2);
    let most = if screen.details { usize::MAX } else { MOST_BETWEEN };
    for (number, one) in (1..).zip(answer.between.iter().take(most)) {
        entry(text, number, &one.title, one.count, screen.width);
        let by = if one.traced { "one request" } else { "one connection, within a second" };
        let place = place(one.line, one.route.as_deref());
        paragraph(text, &format!("{}; {by}; {place}", one.reason), screen.width, 6);
        if screen.details {
            for statement in &one.statements {
                paragraph(text, statement, screen.width, 8);
            }
        }
    }
    let rest = answer.between.len().saturating_sub(most);
    if rest > 0 {
        let _ = writeln!(text, "  {rest} more: --details");
    }
    text.push('\n');
}

fn counts(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let mut excluded: BTreeMap<&str, u64> = BTreeMap::new();
    for row in answer.templates.iter().filter(|row| row.state == "excluded" && !row.lone) {
        *excluded.entry(&row.level).or_default() += 1;
    }
    for (level, count) in excluded {
        paragraph(
            text,
            &format!("{} without a schedule at {level}, by theory and as recorded", plural(count, "kind")),
            screen.width,
            2,
        );
    }
    let lone = answer.templates.iter().filter(|row| row.lone && row.state != "not-analysed").count() as u64;
    if lone > 0 {
        paragraph(
            text,
            &format!("{} of one query: it needs no level", plural(lone, "kind")),
            screen.width,
            2,
        );
    }
    if answer.held > 0 {
        let one = format!("{} that its level keeps from racing", plural(answer.held, "pair"));
        paragraph(text, &one, screen.width, 2);
    }
    undecided(text, answer, screen);
    not_analysed(text, answer, screen);
    text.push('\n');
}

/// The kinds that are undecided, with the most frequent reason.
fn undecided(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let rows = || answer.templates.iter().filter(|row| row.state == "undecided" && !row.lone);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows() {
        *reasons.entry(row.why.as_deref().unwrap_or_default()).or_default() += 1;
    }
    if let Some((why, _)) = reasons.iter().max_by_key(|(_, count)| **count) {
        let why = answer.doubt.as_deref().unwrap_or(why);
        let kinds = plural(rows().count() as u64, "kind");
        let one = format!("{kinds} without a suspect, undecided: {why}");
        paragraph(text, &cut(&one, 3 * screen.width.saturating_sub(4)), screen.width, 2);
    }
}

/// The kinds that aren't analysed, with their share of all transactions and each reason once, the most frequent first.
fn not_analysed(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let rows: Vec<&Row> = answer.templates.iter().filter(|row| row.state == "not-analysed").collect();
    if rows.is_empty() {
        return;
    }
    let reasons = reasons(&rows);
    let count: u64 = rows.iter().map(|row| row.count).sum();
    let of = format!(
        "{} not analysed, {} of {}:",
        plural(rows.len() as u64, "kind"),
        count,
        plural(answer.transactions, "transaction")
    );
    paragraph(text, &of, screen.width, 2);
    let most = if screen.details { usize::MAX } else { MOST_REASONS };
    for (why, count) in reasons.iter().take(most) {
        paragraph(
            text,
            &cut(&format!("{count}x {why}"), 3 * screen.width.saturating_sub(6)),
            screen.width,
            4,
        );
    }
    let rest = reasons.len().saturating_sub(most);
    if rest > 0 {
        paragraph(text, &format!("{}: --details", plural(rest as u64, "more reason")), screen.width, 4);
    }
}

/// The reasons why kinds aren't analysed, with how many of their transactions, the most frequent first. All functions that
/// isobench doesn't know are one reason.
fn reasons(rows: &[&Row]) -> Vec<(String, u64)> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        let why = row.why.as_deref().unwrap_or_default();
        let function = why.strip_prefix("isobench doesn't know what function ");
        match function.and_then(|rest| rest.strip_suffix(" reads and writes")) {
            Some(name) => *functions.entry(name).or_default() += row.count,
            None => *found.entry(why).or_default() += row.count,
        }
    }
    let mut all: Vec<(String, u64)> = found.into_iter().map(|(why, count)| (why.to_owned(), count)).collect();
    if !functions.is_empty() {
        let count = functions.values().sum();
        let mut names: Vec<(&str, u64)> = functions.into_iter().collect();
        names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        let names: Vec<&str> = names.into_iter().map(|(name, _)| name).collect();
        let of = if names.len() == 1 { "function" } else { "functions" };
        all.push((format!("isobench doesn't know what rows the {of} {} may touch", names.join(", ")), count));
    }
    all.sort_by(|(one, a), (other, b)| (b, one).cmp(&(a, other)));
    all
}

/// What to do next.
fn next(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let Some(first) = answer.suspects.first() else {
        if let Some(Between { line, .. }) = answer.between.first() {
            let look =
                format!("Next: read the code that sends the statements before line {line} of the capture.");
            paragraph(text, &look, screen.width, 2);
        }
        return;
    };
    let on =
        screen.database.map_or("--copy-from CONNECTION".to_owned(), |name| format!("--copy-from {name}"));
    match (first.routes.as_slice(), &first.request) {
        ([one, ..], _) => {
            let _ = writeln!(text, "  Try the first one: REQUEST is one to {}", cut(one, 40));
            let _ = writeln!(text, "    isobench race {on} -- REQUEST --and REQUEST");
        }
        ([], Some(trace)) => {
            let _ = writeln!(text, "  Try the first one: REQUEST is that of trace {trace}");
            let _ = writeln!(text, "    isobench race {on} -- REQUEST --and REQUEST");
        }
        ([], None) => {
            let look = format!(
                "Try the first one: find the request whose code sends the statements from line {} of the capture on.",
                first.line
            );
            paragraph(text, &look, screen.width, 2);
            let _ = writeln!(text, "    isobench race {on} -- REQUEST --and REQUEST");
        }
    }
    if !screen.details {
        let _ = writeln!(text, "  All pairs, and what each transaction is: --details");
    }
}

fn details(text: &mut String, answer: &Answer, screen: Screen<'_>) {
    let _ = writeln!(text, "\nAll kinds of transactions");
    for row in &answer.templates {
        let why = row.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let of = format!(
            "{} ({}, {}x, line {}): {}{why}",
            row.name,
            row.level,
            row.count,
            row.line,
            row.state.replace('-', " ")
        );
        paragraph(text, &of, screen.width, 2);
        for statement in &row.statements {
            paragraph(text, &cut(statement, 400), screen.width, 6);
        }
    }
}

/// A text in lines of at most so many columns, each after blanks.
fn paragraph(text: &mut String, words: &str, width: usize, indent: usize) {
    let room = width.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut lines = Vec::new();
    for word in words.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    for line in lines {
        let _ = writeln!(text, "{:indent$}{}", "", cut(&line, room));
    }
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}
