//! The answer of a comparison in a few sentences: which level is the cheapest that kept its promise, by how much, and why.
//!
//! Not here: the sentences about each level (`text/sentences`), the table.

use std::collections::BTreeMap;

use crate::document::{Cell, Document, RatioToFirst, WaitShare};
use crate::numbers::{percent, short};
use crate::summarise::{counted_ledger, counted_rounds, groups};

/// What a reader wants to know first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// One or two sentences.
    pub headline: String,
    /// Why, a sentence each: what the other levels cost and what they spend it on, and what isn't known.
    pub reasons: Vec<String>,
}

/// Answers from a summarised document. Where several numbers of clients (or other factors) were compared, there is an answer
/// for each.
pub fn answer(document: &Document) -> Answer {
    let groups: Vec<Vec<&Cell>> = groups(document)
        .into_iter()
        .map(|group| group.into_iter().filter(|cell| !cell.calibration).collect::<Vec<_>>())
        .filter(|group: &Vec<&Cell>| group.iter().any(|cell| cell.summary.tps.mean.is_some()))
        .collect();
    match groups.as_slice() {
        [] => Answer { headline: "Nothing was measured.".to_owned(), reasons: Vec::new() },
        [group] => of_group(document, group),
        several => of_several(document, several),
    }
}

fn of_several(document: &Document, groups: &[Vec<&Cell>]) -> Answer {
    let mut answer = Answer::default();
    let winners: Vec<Option<String>> =
        groups.iter().map(|group| cheapest(group).map(|cell| cell.level.name())).collect();
    let same = winners.windows(2).all(|pair| pair[0] == pair[1]);
    let unbroken = groups.iter().filter_map(|group| cheapest(group)).all(is_unbroken);
    let checked = if unbroken { "" } else { ", as far as could be checked," };
    answer.headline = match (&winners[0], same) {
        (Some(level), true) => {
            format!(
                "{} is the cheapest level that kept its promise{checked} in all {} combinations.",
                capital(level),
                groups.len()
            )
        }
        (None, true) => "No level kept its promise in any combination.".to_owned(),
        _ => format!(
            "Which level is the cheapest that kept its promise{checked} depends on the combination, of which there are {}.",
            groups.len()
        ),
    };
    for group in groups {
        let part = of_group(document, group);
        answer.reasons.push(format!("{}: {}", factors(document, group[0]), part.headline));
    }
    answer.reasons.extend(caveats(document));
    answer
}

/// How a factor of a cell is written.
type Shown<'a> = &'a dyn Fn(&Cell) -> String;

/// The factors of a cell that vary in the document.
fn factors(document: &Document, cell: &Cell) -> String {
    let varies = |get: Shown| document.cells.iter().any(|other| get(other) != get(cell));
    let mut parts = Vec::new();
    let shown: [(&str, Shown); 6] = [
        ("workload ", &|cell| cell.workload.clone()),
        ("", &|cell| format!("{} clients", cell.clients)),
        ("scale ", &|cell| cell.scale.to_string()),
        ("", &|cell| cell.protocol.clone()),
        ("backoff ", &|cell| cell.backoff.clone()),
        ("", &|cell| {
            cell.rate
                .map_or_else(|| "no rate".to_owned(), |rate| format!("{} per second wanted", short(rate)))
        }),
    ];
    for (word, get) in shown {
        if varies(get) {
            parts.push(format!("{word}{}", get(cell)));
        }
    }
    capital(&parts.join(", "))
}

fn of_group(document: &Document, group: &[&Cell]) -> Answer {
    let mut reasons = Vec::new();
    let headline = match (cheapest(group), group) {
        (None, _) => "No level kept its promise.".to_owned(),
        (Some(_), [cell]) => alone(cell),
        (Some(best), _) => among(best, group, &mut reasons),
    };
    let reference = cheapest(group);
    for cell in group {
        if reference.is_some_and(|best| std::ptr::eq(best, *cell)) {
            continue;
        }
        reasons.extend(cost(cell, reference));
    }
    reasons.extend(group.iter().filter_map(|cell| failed(cell)));
    if groups(document).len() <= 2 {
        reasons.extend(caveats(document));
    }
    Answer { headline, reasons }
}

fn alone(cell: &Cell) -> String {
    format!(
        "{} commits {} transactions per second{}; {}.",
        capital(&cell.level.name()),
        tps(cell),
        within(cell),
        kept_words(cell)
    )
}

/// The headline of several levels.
fn among(best: &Cell, group: &[&Cell], reasons: &mut Vec<String>) -> String {
    let mut text = format!(
        "{} is the cheapest level that kept {}: {} committed transactions per second{}.",
        capital(&best.level.name()),
        if is_unbroken(best) { "its promise" } else { "its promise as far as could be checked" },
        tps(best),
        within(best)
    );
    let equals: Vec<String> = group
        .iter()
        .filter(|cell| !std::ptr::eq(**cell, best) && eligible(cell) && alike(cell, best))
        .map(|cell| cell.level.name())
        .collect();
    if !equals.is_empty() {
        text = format!("{text} The difference to {} is no more than noise.", equals.join(" and "));
    }
    let clean = group
        .iter()
        .filter(|cell| eligible(cell) && is_clean(cell))
        .max_by(|a, b| rate(a).total_cmp(&rate(b)));
    match clean {
        Some(clean) if !std::ptr::eq(*clean, best) => {
            text = format!(
                "{text} But it let anomalies through; the cheapest level in which none was found is {}, {}.",
                clean.level.name(),
                times(clean, best)
            );
        }
        None if best.summary.verdict.as_ref().is_some_and(|verdict| verdict.anomalies > 0) => {
            reasons.push("Every level let anomalies through that it doesn't promise to prevent.".to_owned());
        }
        _ => {}
    }
    text
}

/// True if recorded histories were checked against what the level promises, and don't contradict it. Otherwise the promise
/// is unproved, at best.
pub fn is_unbroken(cell: &Cell) -> bool {
    cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(true))
}

/// A judged cell in whose histories nothing was found, and whose tables were right.
fn is_clean(cell: &Cell) -> bool {
    cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.anomalies == 0)
        && cell.summary.violations == 0
}

/// The level with the most committed work among those that kept their promise, as far as that is known.
pub fn cheapest<'a>(group: &[&'a Cell]) -> Option<&'a Cell> {
    group.iter().copied().filter(|cell| eligible(cell)).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn rate(cell: &Cell) -> f64 {
    cell.summary.tps.mean.unwrap_or(0.0)
}

/// A level that runs as asked and broke nothing that it promises.
fn eligible(cell: &Cell) -> bool {
    let broken = cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false));
    !broken && !cell.level.differs() && cell.summary.invariants_held != Some(false) && rate(cell) > 0.0
}

/// True if the rounds don't tell two levels apart. Only ratios to the first level are known, so others count as apart if one of
/// them is told apart from the first.
fn alike(cell: &Cell, other: &Cell) -> bool {
    let told = |cell: &Cell| cell.summary.ratio.as_ref().is_some_and(|ratio| ratio.significant);
    let known = |cell: &Cell| cell.summary.ratio.as_ref().is_some_and(|ratio| ratio.low.is_some());
    let first = |cell: &Cell| cell.summary.ratio.as_ref().is_some_and(|ratio| ratio.to == cell.level.name());
    match (first(cell), first(other)) {
        (true, _) => known(other) && !told(other),
        (_, true) => known(cell) && !told(cell),
        _ => known(cell) && known(other) && !told(cell) && !told(other),
    }
}

fn tps(cell: &Cell) -> String {
    cell.summary.tps.mean.map_or_else(|| "no".to_owned(), short)
}

fn within(cell: &Cell) -> String {
    match (cell.summary.tps.low, cell.summary.tps.high) {
        (Some(low), Some(high)) => format!(" ({} to {})", short(low), short(high)),
        _ => String::new(),
    }
}

/// How much a level commits compared with another one of its group: the measured ratio where there is one.
fn times(cell: &Cell, other: &Cell) -> String {
    match cell.summary.ratio.as_ref().filter(|ratio| ratio.to == other.level.name()) {
        Some(ratio) => {
            format!("with {} times as much committed work ({})", short(ratio.mean), certainty(ratio))
        }
        None if rate(other) > 0.0 => {
            format!("with {} times as much committed work", short(rate(cell) / rate(other)))
        }
        None => "with committed work that has nothing to be compared with".to_owned(),
    }
}

fn certainty(ratio: &RatioToFirst) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            let noise = if ratio.significant { "more than noise" } else { "no more than noise" };
            format!("{} to {}, {noise}", short(low), short(high))
        }
        _ => "whether that is noise isn't known".to_owned(),
    }
}

fn kept_words(cell: &Cell) -> String {
    match cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept) {
        Some(true) => "its promise is unbroken".to_owned(),
        Some(false) => "its promise is BROKEN".to_owned(),
        None => "what it gave is unproved".to_owned(),
    }
}

/// What a level costs, and what it spends it on, beside the level that the answer names.
fn cost(cell: &Cell, best: Option<&Cell>) -> Option<String> {
    let ratio = cell.summary.ratio.as_ref().filter(|ratio| ratio.to != cell.level.name());
    let mut text = capital(&cell.level.name());
    match ratio {
        Some(ratio) => {
            text = format!(
                "{text} commits {} times as much as {} ({})",
                short(ratio.mean),
                ratio.to,
                certainty(ratio)
            );
        }
        None => {
            text = format!(
                "{text} commits {} transactions per second{}",
                cell.summary.tps.mean.map(short)?,
                within(cell)
            );
        }
    }
    let mut why = Vec::new();
    if cell.summary.conflict_ratio > 0.0 {
        let mostly = main_conflict(cell).map_or_else(String::new, |main| format!(", mostly {main}"));
        why.push(format!(
            "{} of its attempts ended in a conflict{mostly}, and {} of its clients' busy time was thrown away",
            percent(cell.summary.conflict_ratio),
            percent(cell.summary.wasted_share)
        ));
    }
    why.extend(main_wait(cell, best));
    if why.is_empty() {
        return Some(text + ".");
    }
    Some(format!("{text}: {}.", why.join("; ")))
}

/// The most frequent conflict, if it makes up half of them: reason and command.
fn main_conflict(cell: &Cell) -> Option<String> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for conflict in counted_rounds(cell).into_iter().flat_map(|round| &round.conflicts) {
        let known = counts.entry((&conflict.reason, &conflict.command)).or_default();
        *known = known.saturating_add(conflict.count);
    }
    let all = counted_ledger(cell).conflicts;
    let ((reason, command), count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (all > 0 && count >= all.div_ceil(2)).then(|| format!("\"{reason}\" at command {}", named(command)))
}

/// A command's number, and the begin of its text: `8 ("UPDATE accounts SET…")`.
fn named(command: &str) -> String {
    match command.split_once(": ") {
        Some((number, text)) => format!("{number} (\"{}\")", abridged(text)),
        None => abridged(command),
    }
}

/// A text of not many characters, cut between words if there are any.
fn abridged(text: &str) -> String {
    const LONGEST: usize = 40;
    let Some((end, _)) = text.char_indices().nth(LONGEST) else { return text.to_owned() };
    let cut = &text[..end];
    let whole = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    format!("{}…", whole.trim_end())
}

/// What the sessions waited for most, clients and idleness aside, if it is a tenth of their time. A wait that the level of the
/// answer has as well explains no difference: that needs one that takes markedly more.
fn main_wait(cell: &Cell, best: Option<&Cell>) -> Option<String> {
    const MARKED: f64 = 0.05;
    let real = |kind: &str| !matches!(kind, "CPU" | "idle" | "Client" | "");
    let of_best = |wait: &WaitShare| {
        let same = |other: &&WaitShare| (&other.kind, &other.event) == (&wait.kind, &wait.event);
        best?.summary.waits.iter().find(same).map(|same| same.share)
    };
    let more = |wait: &WaitShare| wait.share - of_best(wait).unwrap_or(0.0);
    let wait = cell
        .summary
        .waits
        .iter()
        .filter(|wait| real(&wait.kind) && wait.share >= 0.1 && more(wait) >= MARKED)
        .max_by(|one, other| more(one).total_cmp(&more(other)))?;
    let beside = match (best, of_best(wait)) {
        (Some(best), Some(share)) => format!(" ({}: {})", best.level.name(), percent(share)),
        _ => String::new(),
    };
    Some(format!(
        "its sessions waited for {}/{} in {} of the samples{beside}",
        wait.kind,
        wait.event,
        percent(wait.share)
    ))
}

/// Why a level isn't eligible.
fn failed(cell: &Cell) -> Option<String> {
    let name = capital(&cell.level.name());
    if cell.level.differs() {
        return Some(format!("{name} doesn't count: the server runs {} instead.", cell.level.effective));
    }
    if cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false)) {
        return Some(format!("{name} BROKE its promise."));
    }
    if cell.summary.invariants_held == Some(false) {
        return Some(format!("{name} doesn't count: the database was WRONG afterwards."));
    }
    None
}

/// What the answer doesn't know.
fn caveats(document: &Document) -> Vec<String> {
    let mut caveats = Vec::new();
    let measured = || document.cells.iter().filter(|cell| !cell.rounds.is_empty());
    if !document.complete {
        let why = document.incomplete_reason.as_deref().unwrap_or("it ended before its time");
        caveats.push(format!("The comparison is INCOMPLETE: {why}."));
    }
    if measured().all(|cell| cell.summary.verdict.is_none()) {
        caveats.push(
            "Unproved: no history was recorded, so nothing is known about anomalies; a checked workload tells more \
             (isobench workloads)."
                .to_owned(),
        );
    }
    let flagged: Vec<String> =
        measured().filter(|cell| !cell.summary.flags.is_empty()).map(|cell| cell.level.name()).collect();
    if !flagged.is_empty() {
        caveats.push(format!("Read the flags of {} before trusting the numbers.", list(&flagged)));
    }
    caveats
}

fn list(names: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names {
        if !distinct.contains(&name.as_str()) {
            distinct.push(name);
        }
    }
    distinct.join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
