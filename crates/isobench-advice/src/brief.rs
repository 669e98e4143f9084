//! The answer on one screen, in the order in which it is found: levels, the best change, prices, and where the rest is.
//!
//! Not here: the answer with all details (`text`).

use std::fmt::Write as _;

use isobench_isolation::Level;
use isobench_report::{phrase, witness, wrap};
use isobench_result::numbers::{count as grouped, counted};
use isobench_result::view::tried::wrong_outcomes;
use isobench_result::words::{capital, distinct, enumerated};

use crate::advice::{Advice, Candidate, Measured, Passed, Status, Transaction};
use crate::change_set::ChangeSet;
use crate::reason::Reason;
use crate::short::shortened;
use crate::text::{Evidence, best, deadlocks_measured, grave, held, in_order, incomplete, paragraph, ratio};

/// The indentation below the first line.
const INDENT: usize = 2;

/// The width of the labels at the end.
const LABEL: usize = 10;

/// The fewest columns for the reasons of levels.
const LEAST_WHY: usize = 34;

/// The most scripts that a sentence names.
const MOST_NAMED: usize = 4;

/// The most lines of a change.
const MOST_CHANGED: usize = 12;

/// The most sentences of a kind.
const FEW: usize = 2;

/// Where the answer is shown.
#[derive(Debug, Clone, Copy)]
pub struct Screen<'a> {
    /// Lines have at most so many columns, where words permit it.
    pub width: usize,
    /// The terminal shows ✗ and ✓.
    pub unicode: bool,
    /// The server, as "PostgreSQL 15.18".
    pub server: &'a str,
}

/// The levels, why lower ones don't do, and what goes wrong there.
pub fn levels(advice: &Advice, screen: Screen<'_>) -> String {
    let (advice, folder) = &shortened(advice);
    let mut text = String::new();
    let many = counted(advice.transactions.len() as u64, "transaction");
    let on =
        if advice.tables.is_empty() { String::new() } else { format!(" on {}", advice.tables.join(", ")) };
    let of = folder.as_ref().map(|folder| format!(" of {folder}")).unwrap_or_default();
    paragraph(&mut text, &format!("{many}{of}{on}; {}", screen.server), screen.width);
    text.push('\n');
    let mut evidence = Evidence::default();
    if let Some(sentence) = grave(advice, &mut evidence) {
        indented(&mut text, &sentence, screen.width);
    }
    for sentence in recommended(advice) {
        indented(&mut text, &sentence, screen.width);
    }
    for sentence in advice.carried.iter().take(FEW) {
        indented(&mut text, &format!("{sentence}."), screen.width);
    }
    text.push('\n');
    table(&mut text, advice, &mut evidence, screen);
    let reasons = evidence.reasons();
    // The shortest example is the easiest to follow; the others are details.
    let examples = reasons.iter().enumerate().filter(|(_, reason)| reason.shown.is_some());
    let examples = examples.map(|(place, reason)| (place, example(place + 1, reason, screen.width)));
    let shortest = examples.min_by_key(|(_, example)| example.lines().count());
    let first = shortest.as_ref().map(|(place, _)| *place);
    if let Some((_, example)) = shortest {
        text.push_str(&example);
    }
    let others: Vec<String> = (0..reasons.len())
        .filter(|place| Some(*place) != first)
        .map(|place| format!("[{}]", place + 1))
        .collect();
    if !others.is_empty() {
        indented(&mut text, &format!("{}: --details", others.join(" ")), screen.width);
        text.push('\n');
    }
    text
}

/// The best change: with it the lowest levels do. Empty if there is none.
pub fn change(advice: &Advice, width: usize) -> String {
    let (advice, _) = &shortened(advice);
    let mut text = String::new();
    let held = held(advice);
    let Some(best) = best(&held) else { return text };
    let how = match best.unproved {
        Some(count) => format!("not proved, {} right", counted(count, "interleaving")),
        None => "proved".to_owned(),
    };
    let sentence = format!("Or change {}: then {} ({how}).", changed_places(best), lowered(advice, best));
    indented(&mut text, &sentence, width);
    if let Some(first) = best.deadlocks.first() {
        indented(&mut text, &format!("With it transactions can wait for each other: {first}."), width);
    }
    for table in best.locked_tables() {
        let sentence =
            format!("With it, all other transactions that write {table} wait, whatever their rows are.");
        indented(&mut text, &sentence, width);
    }
    let lines: Vec<&str> = best.diff.lines().filter(|line| is_changed(line, best)).collect();
    for line in lines.iter().take(MOST_CHANGED) {
        let _ = writeln!(text, "    {line}");
    }
    let more = held.len() - 1 + usize::from(lines.len() > MOST_CHANGED);
    if more > 0 {
        let what = if held.len() > 1 {
            counted(held.len() as u64 - 1, "other change")
        } else {
            "the rest".to_owned()
        };
        indented(&mut text, &format!("{}: --details", capital(&what)), width);
    }
    text.push('\n');
    text
}

/// What the levels and the best change cost. Empty if nothing was measured.
pub fn prices(advice: &Advice, width: usize) -> String {
    let (advice, _) = &shortened(advice);
    let mut text = String::new();
    let Some(measured) = &advice.measured else { return text };
    let heading = "What it costs: committed transactions per second, and retried attempts";
    indented(&mut text, heading, width);
    let rows: Vec<(String, &Candidate)> =
        in_order(measured).map(|one| (named(advice, measured, one), one)).collect();
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let widest = widest.min(width.saturating_sub(INDENT * 2 + 42).max(20));
    for (name, one) in rows {
        let lines = wrap(&name, widest, 0);
        let (last, before) =
            lines.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
        for line in before {
            let _ = writeln!(text, "    {line}");
        }
        let anomalies = match one.anomalies {
            None => String::new(),
            Some(0) => "  0 anomalies".to_owned(),
            Some(1) => "  1 anomaly".to_owned(),
            Some(count) => format!("  {} anomalies", grouped(count)),
        };
        let conflicts = format!("{:.1} %", one.conflicts * 100.0);
        let pad = " ".repeat(widest.saturating_sub(last.chars().count()));
        let _ = writeln!(text, "    {last}{pad}  {:<16}  {conflicts:>6}{anomalies}", ratio(one));
    }
    for name in &measured.unmeasured {
        indented(&mut text, &format!("  not measured: {name}"), width);
    }
    for sentence in measured.without() {
        indented(&mut text, &format!("  {sentence}"), width);
    }
    text.push('\n');
    text
}

/// How sure the answer is, what else to look at, and where the rest is.
pub fn rest(advice: &Advice, width: usize) -> String {
    let (advice, _) = &shortened(advice);
    let mut text = String::new();
    let mut sure = Vec::new();
    let is = |status: Status| advice.transactions.iter().any(|one| one.status == status);
    let proved =
        if is(Status::Proved) { "Levels are proved for these statements, if" } else { "This holds if" };
    let mut world =
        format!("{proved} nothing else writes these tables, and the rows that scripts look up by key exist.");
    if !advice.ignored.is_empty() {
        let _ = write!(world, " The order of the {} doesn't count.", advice.ignored.join(" and of the "));
    }
    sure.push(world);
    sure.extend(passed(advice));
    let mut doubts: Vec<String> = incomplete(advice).into_iter().collect();
    doubts.extend(advice.carried.get(FEW..).filter(|more| !more.is_empty()).map(|more| {
        let more = counted(more.len() as u64, "more value");
        format!("{more} carried from one transaction to another, which no level protects: --details.")
    }));
    doubts.extend(advice.warnings.iter().take(FEW).map(|warning| format!("{warning}.")));
    doubts.extend(advice.warnings.get(FEW..).filter(|more| !more.is_empty()).map(|more| {
        let more = counted(more.len() as u64, "more warning");
        format!("{more}: --details.")
    }));
    doubts.extend(waits(advice));
    let details = match advice.unshown.len() as u64 {
        0 => "--details".to_owned(),
        unshown => {
            format!("--details ({} that theory names and no run showed)", counted(unshown, "schedule"))
        }
    };
    let more = vec![format!("{details}, --write FILE.toml and --check (CI), --html FILE, --frameworks")];
    let cheaper: Vec<String> =
        advice.hints.iter().take(1).map(|hint| format!("{hint}. That wasn't tried.")).collect();
    for (label, sentences) in [("How sure", sure), ("Warning", doubts), ("Cheaper", cheaper), ("More", more)]
    {
        labelled(&mut text, label, &sentences, width);
    }
    text
}

/// Sentences with a label, each from a new line.
fn labelled(text: &mut String, label: &str, sentences: &[String], width: usize) {
    let mut head = label;
    for sentence in sentences {
        for line in wrap(sentence, width.saturating_sub(INDENT + LABEL), 0) {
            let _ = writeln!(text, "{}{head:LABEL$}{line}", " ".repeat(INDENT));
            head = "";
        }
    }
}

fn indented(text: &mut String, sentence: &str, width: usize) {
    for line in wrap(sentence, width.saturating_sub(INDENT), 0) {
        let _ = writeln!(text, "{}{line}", " ".repeat(INDENT));
    }
}

/// What to do: which scripts to run at which level.
fn recommended(advice: &Advice) -> Vec<String> {
    let at = |wanted: Option<Level>| -> Vec<&str> {
        let those = advice.transactions.iter().filter(|one| one.level == wanted);
        those.map(|one| one.script.as_str()).collect()
    };
    let all = advice.transactions.len();
    let named = |scripts: &[&str]| match scripts.len() {
        1 => scripts[0].to_owned(),
        count if count == all => {
            if count == 2 {
                "both".to_owned()
            } else {
                format!("all {count}")
            }
        }
        count if count > MOST_NAMED => format!("{count} transactions"),
        _ => enumerated(&scripts.iter().map(|script| (*script).to_owned()).collect::<Vec<_>>()),
    };
    let mut sentences = Vec::new();
    let levels = [Level::Serializable, Level::RepeatableRead, Level::ReadCommitted, Level::ReadUncommitted];
    let groups: Vec<(Level, Vec<&str>)> = levels.map(|level| (level, at(Some(level)))).into_iter().collect();
    let raised =
        groups.iter().filter(|(level, scripts)| *level > Level::ReadCommitted && !scripts.is_empty());
    let raised: Vec<String> = raised
        .map(|(level, scripts)| format!("{} at {}", named(scripts), level.to_string().to_uppercase()))
        .collect();
    if !raised.is_empty() {
        sentences.push(format!("Run {}, and retry on SQLSTATE 40001.", enumerated(&raised)));
    }
    for (level, scripts) in
        groups.iter().filter(|(level, scripts)| *level <= Level::ReadCommitted && !scripts.is_empty())
    {
        sentences.push(format!("{} is enough for {}.", level.to_string().to_uppercase(), named(scripts)));
    }
    let none = |is_wrong: bool| -> Vec<&str> {
        let those = advice.transactions.iter().filter(|one| one.level.is_none());
        let is = |one: &&Transaction| one.status == Status::Unsafe || !one.carries.is_empty();
        let those = those.filter(|one| is(one) == is_wrong);
        those.map(|one| one.script.as_str()).collect()
    };
    let (wrong, unproved) = (none(true), none(false));
    // The sentence on all of them stands before.
    if !wrong.is_empty() && advice.at_any_level.is_none() {
        sentences.push(format!("No level is enough for {}.", named(&wrong)));
    }
    if !unproved.is_empty() {
        sentences.push(format!("No level is proved for {}.", named(&unproved)));
    }
    sentences
}

/// The table of transactions. Reasons with evidence are collected, each once.
fn table<'a>(text: &mut String, advice: &'a Advice, evidence: &mut Evidence<'a>, screen: Screen<'_>) {
    let heading = "script";
    let scripts: Vec<&str> = advice.transactions.iter().map(|one| one.script.as_str()).collect();
    let longest =
        scripts.iter().map(|name| name.chars().count()).chain([heading.chars().count()]).max().unwrap_or(0);
    let levels: Vec<String> = advice.transactions.iter().map(Transaction::level_in_words).collect();
    let widest = levels.iter().map(String::len).chain(["needs".len()]).max().unwrap_or(0);
    let sign = if screen.unicode { 1 } else { 2 };
    let before = INDENT + sign + 1;
    // Of long names there would be no room next to them.
    let alone = before + longest + widest + 4 + LEAST_WHY > screen.width;
    let column = if alone { before + 2 + widest + 2 } else { before + longest + 2 + widest + 2 };
    let room = screen.width.saturating_sub(column).max(LEAST_WHY);
    let pad = " ".repeat(before);
    let head = if alone {
        format!("{heading}\n{pad}  {:widest$}", "needs")
    } else {
        format!("{heading:longest$}  {:widest$}", "needs")
    };
    let _ = writeln!(text, "{pad}{head}  why not lower");
    for ((one, script), level) in advice.transactions.iter().zip(scripts).zip(levels) {
        let mark = match (one.level.is_some(), screen.unicode) {
            (true, true) => "✓",
            (true, false) => "ok",
            (false, true) => "✗",
            (false, false) => "x ",
        };
        let lines = wrap(&why(one, evidence), room, 0);
        let first = lines.first().map_or("", String::as_str);
        let row = if alone {
            format!("  {mark} {script}\n{pad}  {level:widest$}  {first}")
        } else {
            format!("  {mark} {script:longest$}  {level:widest$}  {first}")
        };
        let _ = writeln!(text, "{}", row.trim_end());
        for line in lines.iter().skip(1) {
            let _ = writeln!(text, "{}{line}", " ".repeat(column));
        }
    }
    text.push('\n');
}

/// Why a transaction needs its level, in a phrase.
fn why<'a>(one: &'a Transaction, evidence: &mut Evidence<'a>) -> String {
    let mut parts = one.carries.clone();
    if let Some(reason) = &one.at_every_level {
        let number = evidence.number(reason);
        parts.push(match wrong(reason) {
            Some(phrase) => format!("{}: {phrase} [{number}]", reason.level.short()),
            None => format!("foreign keys and unique indexes see the newest data [{number}]"),
        });
    }
    if one.status == Status::Promised {
        parts.push("promised by the server".to_owned());
    }
    if let Some(first) = one.unknown.first() {
        let more = one.unknown.len() - 1;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        parts.push(format!("line {} isn't analysed: {}{more}", first.line, first.reason));
    }
    let mut unproved: Option<Level> = one.passed.as_ref().map(|passed| passed.level);
    if let Some(reason) = &one.below {
        match (wrong(reason), &reason.measured) {
            (Some(phrase), _) => {
                let number = evidence.number(reason);
                parts.push(format!("{}: {phrase} [{number}]", reason.level.short()));
            }
            (None, Some(seen)) => parts.push(format!("{}: {seen}", reason.level.short())),
            (None, None) => unproved = unproved.or(Some(reason.level)),
        }
    }
    parts.extend(
        unproved.filter(|_| one.unknown.is_empty()).map(|level| format!("{} isn't proved", level.short())),
    );
    parts.extend(one.not_tried.as_ref().map(|why| format!("not tried: {why}")));
    for higher in &one.higher {
        parts.push(format!("{} would be unsafe [{}]", higher.level.short(), evidence.number(higher)));
    }
    parts.join("; ")
}

/// What went wrong, in a few words; `None` if it wasn't shown.
fn wrong(reason: &Reason) -> Option<String> {
    let tried = reason.shown.as_ref()?;
    let found = wrong_outcomes(&[(reason.at_levels(), tried)]);
    Some(found.first().map_or_else(|| "wrong".to_owned(), |(wrong, _)| phrase(wrong, &tried.masked)))
}

/// A wrong outcome with its number.
fn example(number: usize, reason: &Reason, width: usize) -> String {
    let mut text = String::new();
    let Some(tried) = &reason.shown else { return text };
    let found = wrong_outcomes(&[(reason.at_levels(), tried)]);
    let Some((wrong, levels)) = found.first() else { return text };
    for (place, line) in
        witness(wrong, levels, &tried.masked, width.saturating_sub(INDENT)).iter().enumerate()
    {
        let before = if place == 0 { format!("[{number}] ") } else { String::new() };
        let _ = writeln!(text, "{}{before}{line}", " ".repeat(INDENT));
    }
    text.push('\n');
    text
}

/// The statements that a set changes: `visit.sql:4`.
fn changed_places(set: &ChangeSet) -> String {
    enumerated(&distinct(set.changes.iter().map(|change| change.at.to_string())))
}

/// The levels that are enough with a change, where they are lower.
fn lowered(advice: &Advice, set: &ChangeSet) -> String {
    let mut groups: Vec<(Level, Vec<String>)> = Vec::new();
    for one in &advice.transactions {
        let level = set.allocation.of(&one.script).level;
        if one.level.is_some_and(|now| now <= level) {
            continue;
        }
        let script = one.script.clone();
        match groups.iter_mut().find(|(known, _)| *known == level) {
            Some((_, scripts)) => scripts.push(script),
            None => groups.push((level, vec![script])),
        }
    }
    groups.sort_by_key(|(level, _)| *level);
    let said = |(level, scripts): &(Level, Vec<String>)| {
        format!("{} is enough for {}", level.to_string().to_uppercase(), enumerated(scripts))
    };
    enumerated(&groups.iter().map(said).collect::<Vec<_>>())
}

/// The lines of a difference that say what to change.
fn is_changed(line: &str, set: &ChangeSet) -> bool {
    // Of a transaction that begins and ends elsewhere the lines in between say which it is.
    let is_wrapped = set.changes.iter().any(|change| change.to.wraps());
    is_wrapped && line.starts_with(' ')
        || line.starts_with("CREATE ")
        || line.starts_with("ALTER TABLE ")
        || line.starts_with(['+', '-']) && !line.starts_with("+++ ") && !line.starts_with("--- ")
}

/// A row of the measurement, by what it is in the answer.
fn named(advice: &Advice, measured: &Measured, one: &Candidate) -> String {
    if one.changes.is_some() {
        return "with the change".to_owned();
    }
    if one.control {
        return format!("lowered: {}", one.name);
    }
    if one.allocation == advice.allocation() {
        return match one.allocation.level() {
            Some(level) => format!("as above: all {level}"),
            None => "as above".to_owned(),
        };
    }
    match one.allocation.level() {
        Some(level) => format!("all {level}"),
        None if advice.passed().as_ref() == Some(&one.allocation) => {
            "levels that passed, but aren't proved".to_owned()
        }
        None if one.name == measured.to => measured.to.clone(),
        None => one.name.clone(),
    }
}

/// What lower levels have passed.
fn passed(advice: &Advice) -> Option<String> {
    let passed = advice.transactions.iter().find_map(|one| one.passed.as_ref())?;
    let Passed { interleavings, transactions, .. } = passed;
    let measured = transactions.map(|count| format!(" and {}", counted(count, "transaction")));
    Some(format!(
        "Lower levels that aren't proved passed {}{}.",
        counted(*interleavings, "interleaving"),
        measured.unwrap_or_default()
    ))
}

/// That transactions can wait for each other.
fn waits(advice: &Advice) -> Option<String> {
    if let Some(happened) = deadlocks_measured(advice) {
        return Some(format!("Deadlocks (SQLSTATE 40P01). {happened}"));
    }
    let first = advice.deadlocks.first()?;
    let more = advice.deadlocks.len() - 1;
    let more = if more > 0 { format!(" {more} more: --details.") } else { String::new() };
    Some(format!("Deadlock (SQLSTATE 40P01) possible: {first}.{more}"))
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Allocation;
    use isobench_isolation::history::Mode;

    use super::*;
    use crate::advice::tests::doctors;
    use crate::advice::{Measured, UnknownStatement};
    use crate::change_set::{Changed, Edit};

    const SCREEN: Screen<'_> = Screen { width: 80, unicode: true, server: "PostgreSQL 18.1" };

    fn row(allocation: Allocation, ratio: f64, changes: Option<&str>) -> Candidate {
        Candidate {
            name: allocation.to_string(),
            allocation,
            changes: changes.map(str::to_owned),
            control: false,
            tps: Some(1000.0 * ratio),
            ratio: Some(ratio),
            low: Some(ratio - 0.1),
            high: Some(ratio + 0.1),
            conflicts: 0.25,
            deadlocks: 0,
            anomalies: Some(if ratio < 1.0 { 0 } else { 1234 }),
        }
    }

    #[test]
    fn levels_come_first_and_say_why_not_lower() {
        let mut advice = doctors();
        let text = levels(&advice, SCREEN);
        let expected = "2 transactions on doctor; PostgreSQL 18.1\n\n  Run leave.sql at SERIALIZABLE, and retry on SQLSTATE 40001.\n  \
                        READ COMMITTED is enough for list.sql.\n\n    script     needs           why not lower\n  \
                        ✓ leave.sql  serializable    rc isn't proved\n  ✓ list.sql   read committed\n\n";
        assert_eq!(text, expected);
        advice.transactions[0].unknown =
            vec![UnknownStatement { line: 3, text: "CALL f()".to_owned(), reason: "a procedure".to_owned() }];
        advice.transactions[1].level = None;
        advice.transactions[1].status = Status::Unproved;
        let text = levels(&advice, Screen { unicode: false, ..SCREEN });
        assert!(
            text.contains("  ok leave.sql  serializable  line 3 isn't analysed: a procedure\n"),
            "{text}"
        );
        assert!(text.contains("  x  list.sql   none proved"), "{text}");
        assert!(text.contains("No level is proved for list.sql.\n"), "{text}");
    }

    #[test]
    fn long_names_stand_on_lines_of_their_own() {
        let mut advice = doctors();
        advice.transactions[0].script = "a_script_with_a_very_long_name_that_fills_the_line.sql".to_owned();
        let text = levels(&advice, SCREEN);
        assert!(text.contains("_line.sql\n      serializable    rc isn't proved\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_best_change_is_its_lines_and_what_they_allow() {
        let mut advice = doctors();
        assert_eq!(change(&advice, 80), "");
        advice.changes = vec![ChangeSet {
            name: "lock leave.sql:3".to_owned(),
            changes: vec![Changed {
                at: "leave.sql:3".into(),
                table: "doctor".to_owned(),
                to: Edit::Lock("FOR SHARE".to_owned()),
            }],
            allocation: Allocation::uniform(Level::ReadCommitted),
            diff: "--- a/leave.sql\n+++ b/leave.sql\n@@ -1,2 +1,2 @@\n BEGIN;\n-SELECT 1;\n+SELECT 1 FOR SHARE;\n".to_owned(),
            setup: None,
            unproved: None,
            refuted: None,
            deadlocks: Vec::new(),
            refused: None,
            scripts: Vec::new(),
        }];
        let text = change(&advice, 80);
        let expected = "  Or change leave.sql:3: then READ COMMITTED is enough for leave.sql (proved).\n    -SELECT \
                        1;\n    +SELECT 1 FOR SHARE;\n\n";
        assert_eq!(text, expected);
        let mut other = advice.changes[0].clone();
        (other.unproved, other.name) = (Some(12), "lock leave.sql:4".to_owned());
        advice.changes.push(other);
        assert!(change(&advice, 80).contains("\n  1 other change: --details\n"));
        advice.changes.remove(0);
        assert!(change(&advice, 120).contains("(not proved, 12 interleavings right)"));
    }

    #[test]
    fn prices_are_named_by_what_they_are_in_the_answer() {
        let mut advice = doctors();
        assert_eq!(prices(&advice, 80), "");
        let own = advice.allocation();
        let lowered = Allocation {
            rest: Mode::of(Level::ReadCommitted),
            scripts: vec![("leave.sql".to_owned(), Mode::of(Level::RepeatableRead))],
        };
        let control = Candidate { control: true, ..row(lowered, 0.9, None) };
        advice.measured = Some(Measured {
            to: "read committed".to_owned(),
            dependencies: 7,
            candidates: vec![
                row(Allocation::uniform(Level::ReadCommitted), 1.0, None),
                row(own, 0.5, None),
                row(Allocation::uniform(Level::ReadCommitted), 0.75, Some("lock leave.sql:3")),
                control,
            ],
            unmeasured: vec!["serializable".to_owned()],
            left_out: vec![crate::LeftOut {
                script: "once.sql".to_owned(),
                why: "ERROR: duplicate key".to_owned(),
            }],
        });
        let text = prices(&advice, 80);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(
            rows,
            [
                "  What it costs: committed transactions per second, and retried attempts",
                "    all read committed           1.00 (0.90–1.10)  25.0 %  1,234 anomalies",
                "    as above                     0.50 (0.40–0.60)  25.0 %  0 anomalies",
                "    with the change              0.75 (0.65–0.85)  25.0 %  0 anomalies",
                "    lowered: leave: rr; else rc  0.90 (0.80–1.00)  25.0 %  0 anomalies",
                "    not measured: serializable",
                "    Measured without once.sql: ERROR: duplicate key",
                "",
            ]
        );
    }

    #[test]
    fn the_end_says_how_sure_it_is_and_where_the_rest_is() {
        let mut advice = doctors();
        advice.hints = vec!["leave.sql:3 could be one statement".to_owned()];
        advice.deadlocks = vec!["leave.sql and leave.sql wait".to_owned(); 3];
        advice.incomplete = Some("interrupted".to_owned());
        advice.note_passed(Ok(9000));
        let text = rest(&advice, 80);
        for line in [
            "  How sure  Levels are proved for these statements, if nothing else writes these",
            "            Lower levels that aren't proved passed 32 interleavings and 9,000",
            "  Warning   INCOMPLETE: interrupted. This is what was found until then.",
            "            Deadlock (SQLSTATE 40P01) possible: leave.sql and leave.sql wait.",
            "  Cheaper   leave.sql:3 could be one statement. That wasn't tried.",
            "  More      --details (1 schedule that theory names",
        ] {
            assert!(text.lines().any(|shown| shown.starts_with(line)), "{line}\n{text}");
        }
    }
}
