//! The answer with all details: the table of transactions first, then prices, changes, and evidence.
//!
//! Not here: the answer on one screen (`brief`).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use isobench_isolation::Level;
use isobench_program::Templates;
use isobench_report::{witness, wrap};
use isobench_result::Tried;
use isobench_result::numbers::counted;
use isobench_result::view::tried::{witnesses, wrong_outcomes};

use crate::advice::{Advice, Candidate, Measured, Passed, Status, Transaction};
use crate::change_set::ChangeSet;
use crate::idioms::IDIOMS;
use crate::reason::{Dependency, Reason, reason};
use crate::shown::{Executed, Shown};

/// The most dependencies that are listed.
const MOST_DEPENDENCIES: usize = 3;

/// The most schedules that weren't shown, of those that are listed.
const MOST_UNSHOWN: usize = 3;

/// What is said before the transactions that can do it.
pub(crate) const WAIT_FOR_EACH_OTHER: &str =
    "Transactions can wait for each other here, and the server ends one of them (SQLSTATE 40P01):";

/// The most pairs of transactions that can wait for each other, of those that are listed.
const MOST_DEADLOCKS: usize = 4;

/// The fewest columns for the reasons of levels.
const LEAST_WHY: usize = 44;

/// The width of what isn't part of the answer.
const USUAL: usize = 100;

/// The most sets of changes that are listed.
const MOST_SETS: usize = 6;

/// The answer with all details, in lines of at most this width where words permit it.
pub fn details(advice: &Advice, width: usize) -> String {
    let mut text = String::new();
    paragraph(&mut text, &closed_world(advice), width);
    text.push('\n');
    if let Some(sentence) = incomplete(advice) {
        paragraph(&mut text, &sentence, width);
        text.push('\n');
    }
    let mut evidence = Evidence::default();
    if let Some(sentence) = grave(advice, &mut evidence) {
        paragraph(&mut text, &sentence, width);
        text.push('\n');
    }
    transactions(&mut text, advice, &mut evidence, width);
    for sentence in &advice.carried {
        text.push('\n');
        paragraph(&mut text, &format!("{sentence}."), width);
    }
    for sentence in &advice.warnings {
        text.push('\n');
        paragraph(&mut text, &format!("Warning: {sentence}."), width);
    }
    if let Some(measured) = &advice.measured {
        prices(&mut text, measured, width);
    }
    if let Some(sentence) = agreed(advice) {
        paragraph(&mut text, &sentence, width);
    }
    changes(&mut text, advice, width);
    if !advice.hints.is_empty() {
        text.push_str("\nWithout a lock or a higher level, but not tried:\n");
        for hint in &advice.hints {
            for line in wrap(&format!("{hint}."), width.saturating_sub(2), 2) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    deadlocks(&mut text, advice, width);
    for (number, reason) in evidence.reasons().iter().enumerate() {
        let _ = write!(text, "\n[{}] ", number + 1);
        shown_briefly(&mut text, reason, width);
    }
    undecided(&mut text, advice, width);
    text
}

/// What has to be so for the answer to hold.
pub(crate) fn closed_world(advice: &Advice) -> String {
    let mut text = if advice.tables.is_empty() {
        "This holds if nothing else writes the tables that these scripts use, and if they have the rows that scripts \
         look up by key."
            .to_owned()
    } else {
        let tables = advice.tables.join(", ");
        format!(
            "This holds if nothing else writes these tables, and if they have the rows that scripts look up by key: \
             {tables}."
        )
    };
    if !advice.ignored.is_empty() {
        let _ = write!(text, " The order of the {} doesn't count.", advice.ignored.join(" and of the "));
    }
    text
}

/// What is said first if the levels aren't enough, or aren't what theory makes of the statements.
pub(crate) fn grave<'a>(advice: &'a Advice, evidence: &mut Evidence<'a>) -> Option<String> {
    if let Some(reason) = &advice.at_any_level {
        let number = evidence.number(reason);
        return Some(format!("No level is enough: this goes wrong at serializable, too [{number}]."));
    }
    if advice.contradicted {
        let why = if advice.transactions.iter().any(|one| !one.unknown.is_empty()) {
            "Something went wrong at levels that should be enough, though isobench assumes the worst of the statements that \
             it can't analyse: only what the server promises for serializable is left."
        } else {
            "Something went wrong at levels that should be enough: isobench misreads a statement, or its effect lies \
             outside of rows (a sequence, an early unlock). Only what the server promises for serializable is left."
        };
        return Some(why.to_owned());
    }
    let depends = |one: &Dependency| {
        let [first, then] = &one.at;
        format!("{then} on {first} ({})", one.how.unwrap_or("in some way"))
    };
    let those: Vec<String> = advice.unpredicted.iter().take(MOST_DEPENDENCIES).map(depends).collect();
    let more = advice.unpredicted.len().saturating_sub(MOST_DEPENDENCIES);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!those.is_empty()).then(|| {
        format!(
            "isobench misreads a statement, so only what the server promises for serializable is left: the recorded \
             transactions depend on each other in ways that don't follow from the statements, {}{more}.",
            those.join(", ")
        )
    })
}

/// What is said of recorded histories that are as the statements predict, if there are any.
pub(crate) fn agreed(advice: &Advice) -> Option<String> {
    let count = advice.measured.as_ref()?.dependencies;
    (count > 0 && advice.unpredicted.is_empty()).then(|| {
        format!(
            "The {count} dependencies between the recorded transactions all follow from what is known of their \
             statements."
        )
    })
}

/// Reasons with what was shown, each once.
#[derive(Default)]
pub(crate) struct Evidence<'a>(Vec<&'a Reason>);

impl<'a> Evidence<'a> {
    /// The reasons, in the order of their numbers.
    pub(crate) fn reasons(&self) -> &[&'a Reason] {
        &self.0
    }

    /// The number of a reason, from 1. The same schedule at the same level is one.
    pub(crate) fn number(&mut self, reason: &'a Reason) -> usize {
        let same = |other: &&Reason| other.theory == reason.theory && other.shown == reason.shown;
        if let Some(place) = self.0.iter().position(same) {
            return place + 1;
        }
        self.0.push(reason);
        self.0.len()
    }
}

/// What happens at levels that aren't enough.
pub fn broken(templates: &Templates, broken: &Shown) -> String {
    let reason = reason(&templates.programs, broken);
    let mut text = String::new();
    shown_briefly(&mut text, &reason, USUAL);
    if let Executed::Unshown(count) = broken.executed {
        let _ = writeln!(text, "{} didn't show it, which proves nothing.", counted(count, "interleaving"));
    }
    if let Some(why) = &reason.untried {
        let _ = writeln!(text, "It couldn't be executed: {why}.");
    }
    text
}

/// What happens with all scripts together, at levels that aren't enough.
pub fn wrong(tried: &Tried) -> String {
    let mut text = String::new();
    gravest(&mut text, "these levels", tried, USUAL);
    text
}

pub(crate) fn paragraph(text: &mut String, sentence: &str, width: usize) {
    for line in wrap(sentence, width, 0) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// The table of transactions. Reasons with evidence are collected, each once.
fn transactions<'a>(text: &mut String, advice: &'a Advice, evidence: &mut Evidence<'a>, width: usize) {
    let (heading, folder) = in_folder("transaction", advice);
    let names = advice.transactions.iter().map(|one| one.script.chars().count() - folder.chars().count());
    let longest = names.max().unwrap_or_default().max(heading.chars().count());
    let levels = advice.transactions.iter().map(|one| one.level_in_words().len());
    let widest = levels.max().unwrap_or_default().max("level".len());
    // Of long names there would be no room next to them.
    let alone = longest + widest + 4 + LEAST_WHY > width;
    let indent = widest + 4 + if alone { 0 } else { longest };
    if alone {
        let _ = writeln!(text, "{heading}\n  {:widest$}  why", "level");
    } else {
        let _ = writeln!(text, "{heading:longest$}  {:widest$}  why", "level");
    }
    for one in &advice.transactions {
        let why = why(one, evidence);
        if alone {
            let _ = writeln!(text, "{}", &one.script[folder.len()..]);
        }
        let lines = wrap(&why, width.saturating_sub(indent).max(30), 0);
        for (number, line) in lines.iter().enumerate() {
            let (script, level) = if number == 0 {
                (&one.script[folder.len()..], one.level_in_words())
            } else {
                ("", String::new())
            };
            if alone {
                let _ = writeln!(text, "  {level:widest$}  {line}");
            } else {
                let _ = writeln!(text, "{script:longest$}  {level:widest$}  {line}");
            }
        }
    }
}

/// The heading of a column of scripts, with the folder in which all of them are, if they are files; and that
/// folder with its slash, which the column leaves out.
pub(crate) fn in_folder<'a>(heading: &str, advice: &'a Advice) -> (String, &'a str) {
    let folder = |script: &'a str| script.rfind('/').map_or("", |slash| &script[..=slash]);
    let are_files = advice.transactions.iter().all(|one| Path::new(&one.script).extension().is_some());
    let mut folders = advice.transactions.iter().map(|one| folder(&one.script));
    let first = folders.next().unwrap_or("");
    match first.strip_suffix('/') {
        Some(name) if are_files && folders.all(|other| other == first) => {
            (format!("{heading} (in {name})"), first)
        }
        _ => (heading.to_owned(), ""),
    }
}

/// Why a transaction needs its level.
pub(crate) fn why<'a>(one: &'a Transaction, evidence: &mut Evidence<'a>) -> String {
    let sure = match one.status {
        Status::Proved => "proved",
        Status::Promised => "promised by the server",
        Status::Unproved if !one.carries.is_empty() => "no level protects it",
        Status::Unproved => "not enough by theory at any level",
        Status::Unsafe => "no level is enough",
    };
    let mut parts = vec![sure.to_owned()];
    parts.extend(one.carries.iter().cloned());
    if let Some(reason) = &one.at_every_level {
        let number = evidence.number(reason);
        let checks = if one.carries.is_empty() {
            "the server checks foreign keys and unique indexes by the newest data"
        } else {
            "a value is carried from one transaction to another"
        };
        parts.push(match (&reason.shown, &reason.untried) {
            (Some(_), _) => format!("shown at {} [{number}]: {checks}", reason.level),
            (None, Some(why)) => format!("{checks} [{number}]; not tried: {why}"),
            (None, None) => format!("{checks} [{number}]"),
        });
    }
    parts.extend(one.below.as_ref().map(|reason| below(reason, evidence)));
    parts.extend(one.passed.as_ref().map(passed));
    if !one.unknown.is_empty() {
        let lines: Vec<String> = one.unknown.iter().map(|unknown| unknown.line.to_string()).collect();
        let plural = if lines.len() == 1 { "" } else { "s" };
        parts.push(format!("isobench doesn't know what line{plural} {} may do", lines.join(", ")));
    }
    let known = parts.iter().any(|part| one.not_tried.as_ref().is_some_and(|why| part.contains(why)));
    parts.extend(one.not_tried.as_ref().filter(|_| !known).map(|why| format!("not tried: {why}")));
    for higher in &one.higher {
        let number = evidence.number(higher);
        let how = if Some(higher.level) > one.level { "raising it to " } else { "" };
        parts.push(format!("{how}{} would be unsafe [{number}]", higher.level));
    }
    parts.join("; ")
}

/// Why a lower level isn't enough.
fn below<'a>(reason: &'a Reason, evidence: &mut Evidence<'a>) -> String {
    if reason.shown.is_some() {
        return format!("shown unsafe at {} [{}]", reason.level, evidence.number(reason));
    }
    if let Some(seen) = &reason.measured {
        let schedule =
            if reason.theory.is_empty() { String::new() } else { format!(" [{}]", evidence.number(reason)) };
        return format!("unsafe at {}, as was measured{schedule}: {seen}", reason.level);
    }
    let why = reason.untried.as_deref().unwrap_or("it wasn't tried");
    format!("may be unsafe at {} [{}]: {why}", reason.level, evidence.number(reason))
}

/// What a level that isn't proved has passed.
fn passed(passed: &Passed) -> String {
    let interleavings = counted(passed.interleavings, "interleaving");
    let measured = passed.transactions.map(|count| format!(" and {}", counted(count, "transaction")));
    format!("{} passed {interleavings}{}, but isn't proved", passed.level, measured.unwrap_or_default())
}

fn prices(text: &mut String, measured: &Measured, width: usize) {
    let _ = writeln!(text, "\nWhat it costs: committed transactions per second, relative to {}", measured.to);
    let heading = format!("{:<16}  {:>9}  {:>9}  ", "throughput", "conflicts", "anomalies");
    let _ = writeln!(text, "{}", heading.trim_end());
    let mut controls = false;
    for one in in_order(measured) {
        if one.control && !controls {
            controls = true;
            let sentence =
                "One transaction at a lower level than it needs, to see how often that goes wrong here:";
            paragraph(text, sentence, width);
        }
        let ratio = ratio(one);
        let anomalies = one.anomalies.map_or("–".to_owned(), |count| count.to_string());
        let conflicts = format!("{:.1} %", one.conflicts * 100.0);
        let mut before = format!("{ratio:<16}  {conflicts:>9}  {anomalies:>9}  ");
        for line in wrap(&one.name, width.saturating_sub(heading.len()).max(30), 2) {
            let _ = writeln!(text, "{before}{line}");
            before = " ".repeat(heading.len());
        }
    }
    for name in &measured.unmeasured {
        let _ = writeln!(text, "{:<16}  {:>9}  {:>9}  {name}", "–", "–", "–");
    }
    for sentence in measured.without() {
        paragraph(text, &(sentence + "."), width);
    }
}

/// Why the answer isn't all that was to be found, if so.
pub(crate) fn incomplete(advice: &Advice) -> Option<String> {
    let why = advice.incomplete.as_deref()?;
    // The rest of a message of several lines is on standard error.
    let why = why.lines().next().unwrap_or_default().trim_end_matches('.');
    Some(format!("INCOMPLETE: {why}. This is what was found until then."))
}

/// The rows, the controls last.
pub(crate) fn in_order(measured: &Measured) -> impl Iterator<Item = &Candidate> {
    let (controls, rows): (Vec<&Candidate>, Vec<&Candidate>) =
        measured.candidates.iter().partition(|one| one.control);
    rows.into_iter().chain(controls)
}

/// A throughput relative to that of the first row, with its interval.
pub(crate) fn ratio(one: &Candidate) -> String {
    match (one.ratio, one.low, one.high) {
        (Some(ratio), Some(low), Some(high)) if (low, high) != (1.0, 1.0) => {
            format!("{ratio:.2} ({low:.2}–{high:.2})")
        }
        (Some(ratio), ..) => format!("{ratio:.2}"),
        (None, ..) => "–".to_owned(),
    }
}

/// The changes in spite of which nothing wrong was shown, and with which transactions work that run one
/// after another.
pub(crate) fn held(advice: &Advice) -> Vec<&ChangeSet> {
    advice.changes.iter().filter(|set| set.is_proposed()).collect()
}

/// The levels that do with changes.
pub(crate) fn levels_then(set: &ChangeSet) -> String {
    let levels = set.allocation.said();
    match set.unproved {
        Some(count) => format!("{levels}; not proved, nothing wrong shown in {count} interleavings"),
        None => levels,
    }
}

/// The best of changes: see [`ChangeSet::rank`].
pub fn best<'a>(changes: &[&'a ChangeSet]) -> Option<&'a ChangeSet> {
    changes.iter().copied().min_by_key(|set| set.rank())
}

fn changes(text: &mut String, advice: &Advice, width: usize) {
    let held = held(advice);
    let Some(best) = best(&held) else { return };
    let _ = writeln!(text, "\nChanges that allow lower levels:");
    for set in held.iter().take(MOST_SETS) {
        let clauses: BTreeSet<String> = set.changes.iter().map(|change| change.to.to_string()).collect();
        let clauses: Vec<String> = clauses.into_iter().collect();
        let how = if set.setup.is_some() { String::new() } else { format!(" ({})", clauses.join(", ")) };
        let sentence = format!("{}{how}: {}", set.name, levels_then(set));
        for line in wrap(&sentence, width.saturating_sub(2), 2) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let _ = writeln!(text, "\nAs a patch, {}:\n{}", best.name, best.diff.trim_end());
}

/// Transactions that can wait for each other, and how many did.
fn deadlocks(text: &mut String, advice: &Advice, width: usize) {
    let happened = deadlocks_measured(advice);
    if advice.deadlocks.is_empty() && happened.is_none() {
        return;
    }
    text.push('\n');
    paragraph(text, WAIT_FOR_EACH_OTHER, width);
    for sentence in advice.deadlocks.iter().take(MOST_DEADLOCKS) {
        for line in wrap(&format!("{sentence}."), width.saturating_sub(2), 2) {
            let _ = writeln!(text, "  {line}");
        }
    }
    let more = advice.deadlocks.len().saturating_sub(MOST_DEADLOCKS);
    if more > 0 {
        let _ = writeln!(text, "  {more} more: see --json");
    }
    if let Some(sentence) = happened {
        paragraph(text, &sentence, width);
    }
}

/// The rows of the measurement in which there were deadlocks.
pub(crate) fn deadlocks_measured(advice: &Advice) -> Option<String> {
    let rows = advice.measured.iter().flat_map(|measured| &measured.candidates);
    let rows: Vec<String> = rows
        .filter(|row| row.deadlocks > 0)
        .map(|row| format!("{} at {}", row.deadlocks, row.name))
        .collect();
    (!rows.is_empty()).then(|| format!("In the measurement: {}.", rows.join("; ")))
}

/// The levels that have to be asked for.
pub(crate) fn idioms_of(advice: &Advice) -> BTreeSet<Level> {
    let levels = advice.transactions.iter().filter_map(|one| one.level);
    levels.filter(|level| *level != Level::ReadCommitted).collect()
}

/// How frameworks ask for the levels.
pub fn frameworks(advice: &Advice) -> String {
    let mut text = String::new();
    for level in idioms_of(advice) {
        let _ = writeln!(text, "\nHow to ask for {level}:");
        for idiom in IDIOMS {
            let _ = writeln!(text, "  {:10}  {}", idiom.framework, idiom.of(level));
        }
    }
    text
}

/// A heading for what happens.
pub(crate) fn happens(reason: &Reason) -> String {
    match &reason.shown {
        Some(_) => format!("What happens at {}:", reason.at_levels()),
        None => format!("What may happen at {}:", reason.at_levels()),
    }
}

/// What was shown; else what theory says.
pub(crate) fn shown(text: &mut String, reason: &Reason) {
    let Some(tried) = &reason.shown else {
        reason.theory.iter().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
        return;
    };
    in_full(text, &reason.at_levels(), tried);
}

/// What was shown in columns; else what theory says.
fn shown_briefly(text: &mut String, reason: &Reason, width: usize) {
    if let Some(tried) = &reason.shown {
        gravest(text, &reason.at_levels(), tried, width);
    } else {
        let _ = writeln!(text, "{}", happens(reason));
        shown(text, reason);
    }
}

/// The gravest wrong outcome, a column for each transaction.
fn gravest(text: &mut String, level: &str, tried: &Tried, width: usize) {
    if let Some((wrong, levels)) = wrong_outcomes(&[(level.to_owned(), tried)]).first() {
        for line in witness(wrong, levels, &tried.masked, width) {
            let _ = writeln!(text, "{line}");
        }
    }
}

/// The gravest wrong outcome in full.
fn in_full(text: &mut String, level: &str, tried: &Tried) {
    if let Some(witness) = witnesses(&[(level.to_owned(), tried)]).into_iter().next() {
        let _ = writeln!(text, "{}", witness.heading);
        witness.lines.iter().for_each(|line| {
            let _ = writeln!(text, "  {line}");
        });
    }
}

/// The schedules that weren't shown, each once although it may be one of several levels.
pub(crate) fn unshown(advice: &Advice) -> Vec<String> {
    let mut all: Vec<(String, u64)> = Vec::new();
    for one in &advice.unshown {
        let steps = one.theory.join("; ");
        match all.iter_mut().find(|(known, _)| *known == steps) {
            Some((_, most)) => *most = one.interleavings.max(*most),
            None => all.push((steps, one.interleavings)),
        }
    }
    all.into_iter().map(|(steps, count)| format!("{steps}. Not shown in {count} interleavings.")).collect()
}

fn undecided(text: &mut String, advice: &Advice, width: usize) {
    if !advice.unshown.is_empty() {
        text.push('\n');
        let sentence = "Possible by theory, but not shown, so that lower levels aren't proved:";
        paragraph(text, sentence, width);
        let schedules = unshown(advice);
        for sentence in schedules.iter().take(MOST_UNSHOWN) {
            for line in wrap(sentence, width.saturating_sub(2), 2) {
                let _ = writeln!(text, "  {line}");
            }
        }
        let more = schedules.len().saturating_sub(MOST_UNSHOWN);
        if more > 0 {
            let _ = writeln!(text, "  {more} more: see --json or --html");
        }
    }
    let unknown: Vec<(&str, &crate::advice::UnknownStatement)> = advice
        .transactions
        .iter()
        .flat_map(|one| one.unknown.iter().map(|unknown| (one.script.as_str(), unknown)))
        .collect();
    if !unknown.is_empty() {
        text.push('\n');
        paragraph(
            text,
            "isobench can't analyse these statements, so it assumes that they touch every row of every table:",
            width,
        );
        for (script, one) in unknown {
            let sentence = format!("{script}:{}: {}: {}", one.line, one.reason, one.text);
            for line in wrap(&sentence, width.saturating_sub(2), 2) {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
}
