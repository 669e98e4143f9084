//! The findings as text: the answer, one schedule in a column for each command, and a line for each
//! level, all on one screen.

#[cfg(test)]
mod tests;

use isobench_race::{
    AnswerReport, Difference, Finding, LevelReport, RaceError, Report, StepReport, Switches, Verdict,
};
use unicode_width::UnicodeWidthStr as _;

/// The most lines of a report.
const LINES: usize = 40;

/// The narrowest and the widest report.
const WIDTHS: (usize, usize) = (60, 120);

/// The most lines of one statement.
const STATEMENT: usize = 2;

/// The most lines of what a user needs to know besides a verdict.
const WHY: usize = 4;

/// The most differences that are shown.
const DIFFERENCES: usize = 4;

/// The statements up to which all of a schedule are shown.
const FEW: usize = 10;

/// What is reported.
pub(super) struct Subject<'a> {
    pub(super) report: &'a Report,
    /// The name of the database.
    pub(super) database: &'a str,
    /// The reason why there isn't more.
    pub(super) problem: Option<&'a RaceError>,
}

/// The report in at most 40 lines.
pub(super) fn render(subject: &Subject<'_>, width: usize) -> String {
    let width = width.clamp(WIDTHS.0, WIDTHS.1);
    let report = subject.report;
    let mut head = vec![heading(subject), String::new()];
    head.extend(wrapped(&answer(report), width, "  "));
    let foot = foot(subject, width);
    let witness = gravest(report).map(|(level, finding)| {
        let room = LINES.saturating_sub(head.len() + foot.len() + 1);
        let mut lines = vec![String::new()];
        lines.extend(schedule(report, level, finding, width, room));
        lines
    });
    let lines: Vec<String> = head.into_iter().chain(witness.unwrap_or_default()).chain(foot).collect();
    lines.iter().flat_map(|line| [cut(line.trim_end(), width), "\n".to_owned()]).collect()
}

/// What was found of commands that don't race, in a line.
pub(super) fn line(report: &Report, commands: &[String]) -> String {
    let sum = |of: fn(&LevelReport) -> usize| report.levels.iter().map(of).sum::<usize>();
    let (tried, planned) = (sum(|level| level.tried), sum(|level| level.planned));
    let of = if tried < planned { format!(" of {planned}") } else { String::new() };
    let levels: Vec<&str> = report.levels.iter().map(|level| level.level.as_str()).collect();
    let what = match commands {
        [one, other] if one == other => format!("{one} (twice)"),
        commands => commands.join(" | "),
    };
    format!("No race in {}{of} at {}: {what}\n", plural(tried, "schedule"), list(&levels))
}

fn plural(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

fn heading(Subject { report, database, .. }: &Subject<'_>) -> String {
    let statements: Vec<String> =
        report.commands.iter().map(|command| command.statements.to_string()).collect();
    let seconds: f64 = report.levels.iter().map(|level| level.serial_seconds + level.seconds).sum();
    let schedules = report.levels.iter().map(|level| level.tried).sum();
    format!(
        "{}, {} statements; {} in {seconds:.1} s; {database} on PostgreSQL {}",
        plural(report.commands.len(), "command"),
        statements.join(" and "),
        plural(schedules, "schedule"),
        report.server.split(' ').next().unwrap_or_default()
    )
}

fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The answer: where the commands race, what fails instead, and where nothing is known.
fn answer(report: &Report) -> Vec<String> {
    let who = match report.commands.as_slice() {
        [one, other] if one.command == other.command => "This command, run twice at once,",
        [_, _] => "These two commands",
        _ => "These commands",
    };
    let names = |wanted: &dyn Fn(&LevelReport) -> bool| -> Vec<&str> {
        report.levels.iter().filter(|level| wanted(level)).map(|level| level.level.as_str()).collect()
    };
    let racing = names(&LevelReport::races);
    let mut lines = Vec::new();
    if !racing.is_empty() {
        let verb = if who.starts_with("This ") { "RACES" } else { "RACE" };
        lines.push(format!("{who} {verb} at {}.", list(&racing)));
    }
    for level in report.levels.iter().filter(|level| !level.races()) {
        lines.push(format!("At {} {}", level.level, clean(level)));
    }
    lines.extend(report.levels.first().and_then(asked));
    lines
}

/// A level without a race.
fn clean(level: &LevelReport) -> String {
    if level.silent {
        return "nothing is known: a command sends no statement. Look whether it reaches the application."
            .to_owned();
    }
    if !level.failing.is_empty() {
        return format!("nothing is known: when it runs alone, {}.", level.failing.join("; "));
    }
    if level.planned == 0 {
        return "there is no schedule to try: each command sends its statements at once.".to_owned();
    }
    if level.is_inconclusive() {
        return match level.count(Verdict::NotInterleaved) {
            0 if level.tried == 0 => "no schedule was tried.".to_owned(),
            0 => "every schedule took too long, so nothing is known.".to_owned(),
            _ => "the commands wait for each other within the application (one worker, a pool of one \
                  connection, a lock), so their statements don't mix and nothing is known. Start it with more \
                  workers or threads, or a larger pool."
                .to_owned(),
        };
    }
    let tried = level.tried;
    let known = format!("no race in {}", plural(tried, "schedule"));
    let known = if level.tried >= level.planned { known } else { format!("{known} of {}", level.planned) };
    let unrepeated = level.findings.iter().find(|finding| finding.verdict.is_race());
    if let Some(finding) = unrepeated {
        return format!(
            "schedule {} ended with {} once, and not again when repeated; the commands may race.",
            finding.schedule,
            finding.verdict.name()
        );
    }
    match failures(level) {
        Some(failures) => format!(
            "{known}, but {failures} in {} of them, as if it had not been run.",
            level.count(Verdict::Error)
        ),
        None => format!("{known}."),
    }
}

/// What users see at a level where a command fails, such as `A or B gets exit 1 (40001)`.
fn failures(level: &LevelReport) -> Option<String> {
    const GETS: &str = " gets ";
    let whys = level.findings.iter().filter(|finding| finding.verdict == Verdict::Error);
    let whys: Vec<(&str, &str)> = whys.filter_map(|finding| finding.why.split_once(GETS)).collect();
    let (_, how) = whys.first()?;
    let mut who: Vec<&str> = whys.iter().filter(|(_, other)| other == how).map(|(who, _)| *who).collect();
    who.sort_unstable();
    who.dedup();
    Some(format!("{}{GETS}{how}", who.join(" or ")))
}

/// A sentence on levels that the application asks for itself.
fn asked(level: &LevelReport) -> Option<String> {
    let asked: Vec<&str> = level.asked.iter().map(String::as_str).collect();
    (!asked.is_empty()).then(|| {
        format!("The application asks for {} itself; those transactions keep that level.", list(&asked))
    })
}

/// The finding to show: that of the first level that races, or where a race was seen once, or else of the
/// first one with a failure.
fn gravest(report: &Report) -> Option<(&LevelReport, &Finding)> {
    let all = || report.levels.iter().flat_map(|level| level.findings.iter().map(move |one| (level, one)));
    let racing = all().find(|(_, finding)| finding.verdict.is_race() && finding.repeated);
    let seen = || all().find(|(_, finding)| finding.verdict.is_race());
    racing.or_else(seen).or_else(|| all().find(|(_, finding)| finding.verdict == Verdict::Error))
}

/// Texts in lines of this width, each behind an indentation.
fn wrapped(texts: &[String], width: usize, indent: &str) -> Vec<String> {
    let wrap = |text: &String| fold(text, width - indent.len(), usize::MAX);
    texts.iter().flat_map(wrap).map(|line| format!("{indent}{line}")).collect()
}

/// A text in at most so many lines of this width; what doesn't fit is cut.
fn fold(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = cut(word, width);
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} …"), width);
        }
    }
    lines
}

/// A text of at most this width.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if kept.width() + letter.to_string().width() + 1 > width {
            break;
        }
        kept.push(letter);
    }
    format!("{}…", kept.trim_end())
}

/// A schedule: a column for each command, its answers, and how the tables differ.
fn schedule(
    report: &Report,
    level: &LevelReport,
    finding: &Finding,
    width: usize,
    room: usize,
) -> Vec<String> {
    let commands = report.commands.len().max(1);
    let column = ((width - 5) / commands).saturating_sub(2).max(12);
    let cell = |number: usize, text: &str| {
        let before = " ".repeat(number * (column + 2));
        format!("{before}{}", cut(text, column))
    };
    let title = format!(
        "  {} at {}, schedule {} (first in {}, {} of {})",
        capital(finding.verdict.name()),
        level.level,
        finding.schedule,
        finding.first,
        finding.times,
        level.tried
    );
    let heads: Vec<String> =
        report.commands.iter().map(|one| padded(&format!("{}  {}", one.name, one.command), column)).collect();
    let mut lines = vec![cut(&title, width), format!("     {}", heads.join("  "))];
    let mut tail = Vec::new();
    for answer in &finding.answers {
        tail.extend(indented(&answered(answer), width, STATEMENT));
    }
    if !finding.why.is_empty() && finding.verdict.is_race() {
        tail.extend(indented(&capital(&finding.why), width, WHY));
    }
    for one in finding.differences.iter().take(DIFFERENCES) {
        tail.push(format!("     {}", cut(&difference(one, &finding.nearest), width - 5)));
    }
    let (mut number, mut hidden) = (0, vec![0_usize; commands]);
    let mut shown = Vec::new();
    let mut open: Vec<u64> = Vec::new();
    for step in &finding.steps {
        // The end of a transaction matters if something before it does.
        let is_end = step.ends && open.contains(&step.session);
        open.retain(|session| *session != step.session || !step.ends);
        if !(step.matters || is_end || finding.steps.len() <= FEW) {
            hidden[step.number] += 1;
            continue;
        }
        if !step.ends {
            open.push(step.session);
        }
        shown.extend(more(&mut hidden, &cell));
        number += 1;
        for (at, line) in statement(step, column).iter().enumerate() {
            let number = if at == 0 { format!("{number:>4} ") } else { "     ".to_owned() };
            shown.push(format!("{number}{}", cell(step.number, line)));
        }
    }
    shown.extend(more(&mut hidden, &cell));
    let left = room.saturating_sub(lines.len() + tail.len());
    if shown.len() > left {
        let cut = shown.len() - left.saturating_sub(1);
        shown.truncate(left.saturating_sub(1));
        shown.push(format!("     … {} (--json FILE has all)", plural(cut, "more line")));
    }
    lines.extend(shown);
    lines.extend(tail);
    lines
}

/// A text in at most so many lines below a schedule's title.
fn indented(text: &str, width: usize, most: usize) -> impl Iterator<Item = String> {
    fold(text, width - 5, most).into_iter().map(|line| format!("     {line}"))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let blanks = width.saturating_sub(text.width());
    text + &" ".repeat(blanks)
}

/// Lines for statements that aren't shown.
fn more(hidden: &mut [usize], cell: &dyn Fn(usize, &str) -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, count) in hidden.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
        lines.push(format!("     {}", cell(number, &format!("· {count} more"))));
        *count = 0;
    }
    lines
}

/// A statement and its answer.
fn statement(step: &StepReport, column: usize) -> Vec<String> {
    let result = match (&step.error, &step.row) {
        (Some(error), _) => format!("! {error}"),
        (None, Some(row)) => {
            let named = |(at, value): (usize, &Option<String>)| {
                let value = value.as_deref().unwrap_or("NULL");
                match step.columns.get(at) {
                    Some(name) if row.len() > 1 => format!("{name} {value}"),
                    _ => value.to_owned(),
                }
            };
            format!("→ {}", row.iter().enumerate().take(4).map(named).collect::<Vec<_>>().join(", "))
        }
        (None, None) if step.tag.starts_with("SELECT 0") => "→ no row".to_owned(),
        (None, None) => String::new(),
    };
    let waited = if step.waited { "(waited for a lock)" } else { "" };
    let whole = format!("{} {result} {waited}", step.sql);
    if fold(&whole, column, usize::MAX).len() == 1 {
        return fold(&whole, column, 1);
    }
    let mut lines = fold(&step.sql, column, STATEMENT);
    lines.extend(
        fold(&format!("{result} {waited}"), column.saturating_sub(2), 1)
            .into_iter()
            .map(|line| format!("  {line}")),
    );
    lines
}

/// The answer of a command.
fn answered(answer: &AnswerReport) -> String {
    let AnswerReport { command, status, output, errors, usual, serial } = answer;
    let here = if output.is_empty() { status.clone() } else { format!("{status} {output}") };
    let errors = if errors.is_empty() { String::new() } else { format!(" ({errors})") };
    let serial =
        if *usual { String::new() } else { format!("; one after the other: {}", serial.join(" or ")) };
    format!("{command} answers {}{errors}{serial}", cut(&here, 60))
}

/// A difference between the tables and those after a serial order.
fn difference(one: &Difference, order: &str) -> String {
    let Difference { table, row, column, here, serial } = one;
    if column.is_empty() {
        return format!("{table}: {here} new or changed rows; after {order}: {serial}");
    }
    let row = if row.is_empty() { String::new() } else { format!(" ({row})") };
    format!("{table}.{column}{row} is {here}; after {order} it is {serial}")
}

/// The schedules that were tried, if not all were.
fn tried(level: &LevelReport) -> String {
    if level.tried >= level.planned {
        return String::new();
    }
    let of = |one: &Switches| {
        let word = if one.switches == 1 { "one switch" } else { "two" };
        format!("{} of {} with {word}", one.tried, one.planned)
    };
    let all: Vec<String> = level.switches.iter().map(of).collect();
    match all.as_slice() {
        [] => format!("; {} of {} tried", level.tried, level.planned),
        all => format!("; {} tried", all.join(", ")),
    }
}

/// A line for each level, and where the rest is.
fn foot(Subject { report, problem, .. }: &Subject<'_>, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for level in &report.levels {
        let mark = if level.races() {
            "x"
        } else if level.is_doubtful() || level.is_inconclusive() {
            "?"
        } else if level.count(Verdict::Error) > 0 {
            "!"
        } else {
            "ok"
        };
        let counts: Vec<String> = level
            .verdicts
            .iter()
            .map(|count| format!("{} {}", count.verdict.name(), count.schedules))
            .collect();
        let counts = if counts.is_empty() { "no schedule".to_owned() } else { counts.join(", ") };
        let own = if level.own { " (the application's own)" } else { "" };
        let tried = tried(level);
        lines.push(cut(&format!("  {mark:<2} {:<16} {counts}{tried}{own}", level.level), width));
    }
    let masked: Vec<&str> =
        report.levels.iter().flat_map(|level| &level.not_compared).map(String::as_str).collect();
    let outputs = report.levels.iter().flat_map(|level| &level.outputs_not_compared);
    let mut masked: Vec<String> = masked
        .into_iter()
        .chain(report.ignored.iter().map(String::as_str))
        .map(str::to_owned)
        .chain(outputs.map(|command| format!("the output of {command}")))
        .collect();
    masked.sort_unstable();
    masked.dedup();
    if !masked.is_empty() {
        lines.extend(
            fold(&format!("Not compared: {}", masked.join(", ")), width - 2, 2)
                .iter()
                .map(|line| format!("  {line}")),
        );
    }
    if report.noise > 0 {
        let number = plural(report.noise, "statement");
        lines.push(format!("  Never held, since the application sends them at rest: {number}"));
    }
    if let Some(problem) = problem {
        lines.extend(
            fold(&format!("Incomplete: {problem}"), width - 2, 3).iter().map(|line| format!("  {line}")),
        );
    }
    if let Some((level, finding)) = gravest(report) {
        let short = level.level.parse::<isobench_isolation::Level>().map(isobench_isolation::Level::short);
        let levels = short.map_or_else(|_| String::new(), |short| format!(" --levels {short}"));
        lines.push(format!("  Again: add --schedule {}{levels}. All of it: --json FILE", finding.schedule));
    }
    lines
}
