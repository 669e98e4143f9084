//! The answer of a comparison in a few sentences: which level, with which strategy, is the cheapest
//! that kept its promise, by how much, and why.
//!
//! Not here: the sentences about each level (`text/sentences`), the table.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::document::{Cell, Document, WaitShare};
use crate::factors::{FactorId, strategies_vary, varying};
use crate::numbers::{counted, percent, short};
use crate::summarise::{choices, counted_ledger, counted_rounds, grouped, kept_share};
use crate::view::Line;
use crate::words::{capital, certainty, distinct, enumerated};

/// The answer to the question of a comparison, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// A few sentences, of which the first is the answer itself.
    pub headline: Vec<String>,
    /// The reasons, a sentence each: what the other levels cost and what they spend it on, and what
    /// isn't known.
    pub reasons: Vec<Line>,
}

impl Answer {
    /// The headline as one text.
    pub fn text(&self) -> String {
        self.headline.join(" ")
    }
}

/// Answers from a summarised document. Where several numbers of clients (or other factors) were
/// compared, there is an answer for each.
pub fn answer(document: &Document) -> Answer {
    let groups: Vec<Vec<&Cell>> = choices(document)
        .into_iter()
        .map(|group| group.into_iter().filter(|cell| !cell.calibration).collect::<Vec<_>>())
        .filter(|group: &Vec<&Cell>| group.iter().any(|cell| cell.summary.tps.mean.is_some()))
        .collect();
    if !document.complete {
        return of_part(document, &groups.concat());
    }
    match groups.as_slice() {
        [] => Answer { headline: vec!["Nothing was measured.".to_owned()], reasons: Vec::new() },
        [group] => of_group(document, group),
        several => of_several(document, several),
    }
}

/// Of a comparison that ended early there is no winner: what is missing might have won.
fn of_part(document: &Document, measured: &[&Cell]) -> Answer {
    let nothing = if measured.is_empty() { "Nothing was measured" } else { "No level can be named" };
    let headline =
        format!("{nothing}, because the comparison is INCOMPLETE: {}.", incomplete_reason(document));
    let failed = measured.iter().filter_map(|cell| failed(document, cell));
    Answer {
        headline: vec![headline],
        reasons: lost(document, measured).into_iter().chain(failed).chain(caveats(document)).collect(),
    }
}

/// An answer to more combinations would be a table, which is below.
const MOST: usize = 12;

fn of_several(document: &Document, groups: &[Vec<&Cell>]) -> Answer {
    let mut answer = Answer::default();
    let winners: Vec<Option<String>> =
        groups.iter().map(|group| cheapest(group).map(|cell| name(document, cell))).collect();
    let same = winners.windows(2).all(|pair| pair[0] == pair[1]);
    // Who is fastest changes by chance where the differences are noise.
    let as_cheap = |group: &[&Cell], wanted: &str| {
        let Some(best) = cheapest(group) else { return false };
        let same = |cell: &&Cell| std::ptr::eq(*cell, best) || equals(cell, best);
        group.iter().copied().any(|cell| name(document, cell) == wanted && same(&cell))
    };
    let everywhere: Vec<String> = groups[0]
        .iter()
        .map(|cell| name(document, cell))
        .filter(|name| groups.iter().all(|group| as_cheap(group, name)))
        .collect();
    let unbroken = groups.iter().filter_map(|group| cheapest(group)).all(is_unbroken);
    let checked = if unbroken { "" } else { ", as far as could be checked," };
    let headline = match (&winners[0], same) {
        (Some(level), true) => {
            format!(
                "{} is the cheapest {} that kept its promise{checked} in all {} combinations.",
                capital(level),
                choice(document),
                groups.len()
            )
        }
        (None, true) => {
            answer.headline.push(no_level(&groups.concat()).to_owned());
            "In no combination is there a level to name.".to_owned()
        }
        _ if everywhere.len() == 1 => format!(
            "{} is the cheapest {} that kept its promise{checked} in all {} combinations, noise aside.",
            capital(&everywhere[0]),
            choice(document),
            groups.len()
        ),
        _ if !everywhere.is_empty() => format!(
            "{} are the cheapest that kept their promise{checked} in all {} combinations; they \
             differ by no more than noise.",
            capital(&enumerated(&everywhere)),
            groups.len()
        ),
        _ => format!(
            "Which {} is the cheapest that kept its promise{checked} depends on the combination, \
             of which there are {}.",
            choice(document),
            groups.len()
        ),
    };
    answer.headline.push(headline);
    for group in groups.iter().take(MOST) {
        let part = of_group(document, group);
        let factors = capital(&factors(document, group[0]));
        answer.reasons.push(Line::plain(format!("{factors}: {}", part.text())));
    }
    if groups.len() > MOST {
        let more = counted((groups.len() - MOST) as u64, "more combination");
        answer.reasons.push(Line::plain(format!("The table has {more}.")));
    }
    answer.reasons.extend(lost(document, &groups.concat()));
    answer.reasons.extend(caveats(document));
    answer
}

/// The factors of a cell that vary in the document, besides those among which the answer chooses: 8
/// clients, backoff none.
pub fn factors(document: &Document, cell: &Cell) -> String {
    let varying = varying(document);
    let said = varying
        .iter()
        .filter(|factor| factor.id() != Some(FactorId::Strategy))
        .map(|factor| factor.said(cell));
    said.collect::<Vec<_>>().join(", ")
}

/// The level of a cell, and its strategy where the document has several.
fn name(document: &Document, cell: &Cell) -> String {
    let level = cell.level.name();
    if strategies_vary(document) { format!("{level}, {}", cell.strategy()) } else { level }
}

/// The name of what the answer chooses.
fn choice(document: &Document) -> &'static str {
    if strategies_vary(document) { "level and strategy" } else { "level" }
}

fn of_group(document: &Document, group: &[&Cell]) -> Answer {
    let mut reasons = Vec::new();
    let headline = match (cheapest(group), group) {
        (None, _) => vec![no_level(group).to_owned()],
        (Some(_), [cell]) => vec![alone(document, cell)],
        (Some(best), _) => among(document, best, group, &mut reasons),
    };
    let reference = cheapest(group);
    for cell in group {
        if reference.is_some_and(|best| std::ptr::eq(best, *cell)) {
            continue;
        }
        // Of many cells only the levels with the first strategy; what strategies do is said below.
        let compared = cell.summary.strategy_ratio.as_ref();
        if compared.is_none_or(|ratio| ratio.to == cell.strategy()) {
            reasons.extend(cost(document, cell, reference).map(Line::plain));
        }
    }
    reasons.extend(strategies(group).into_iter().map(Line::plain));
    reasons.extend(lost(document, group));
    reasons.extend(group.iter().filter_map(|cell| failed(document, cell)));
    if choices(document).len() <= 2 {
        reasons.extend(caveats(document));
    }
    Answer { headline, reasons }
}

/// The reason why there is no level to name. A reason that is given for all levels holds for each.
fn no_level(group: &[&Cell]) -> &'static str {
    let all = |property: fn(&Cell) -> bool| group.iter().all(|cell| property(cell));
    if all(breaks_promise) {
        "No level kept its promise."
    } else if all(|cell| cell.level.differs()) {
        "No level can be named: none ran as it was asked for."
    } else if all(|cell| rate(cell) <= 0.0) {
        "No level can be named: nothing was committed."
    } else {
        "No level can be named: what speaks against each is said below."
    }
}

fn alone(document: &Document, cell: &Cell) -> String {
    format!(
        "{} commits {} transactions per second{}; {}.",
        capital(&name(document, cell)),
        tps(cell),
        within(cell),
        kept_words(cell)
    )
}

/// The headline of several levels.
fn among(document: &Document, best: &Cell, group: &[&Cell], reasons: &mut Vec<Line>) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} is the cheapest {} that kept {}: {} committed transactions per second{}.",
        capital(&name(document, best)),
        choice(document),
        if is_unbroken(best) { "its promise" } else { "its promise as far as could be checked" },
        tps(best),
        within(best)
    )];
    let equals: Vec<String> =
        group.iter().filter(|cell| equals(cell, best)).map(|cell| name(document, cell)).collect();
    if !equals.is_empty() {
        sentences.push(format!("The difference to {} is no more than noise.", enumerated(&equals)));
    }
    let clean = group
        .iter()
        .filter(|cell| eligible(cell) && is_clean(cell))
        .max_by(|a, b| rate(a).total_cmp(&rate(b)));
    match clean {
        Some(clean) if !std::ptr::eq(*clean, best) => {
            sentences.push(format!(
                "But it let anomalies through; the cheapest {} in which none was found is {}, {}.",
                choice(document),
                name(document, clean),
                times(clean, best)
            ));
        }
        None if every_level_let_through(best, group) => {
            reasons
                .push(Line::plain("Every level let anomalies through that it doesn't promise to prevent."));
        }
        _ => {}
    }
    sentences
}

/// True if anomalies were found at the best level and no level is without, as far as verdicts show.
fn every_level_let_through(best: &Cell, group: &[&Cell]) -> bool {
    let found = best.summary.verdict.as_ref().is_some_and(|verdict| verdict.anomalies > 0);
    found && group.iter().all(|cell| withheld(cell).is_none())
}

/// True if recorded histories were checked against what the level promises, and don't contradict
/// it. Otherwise the promise is unproved, at best.
pub fn is_unbroken(cell: &Cell) -> bool {
    cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(true))
}

/// The reason why a cell has no verdict, if that isn't because nothing was recorded.
fn withheld(cell: &Cell) -> Option<&str> {
    let verdict = cell.summary.verdict.as_ref().filter(|verdict| verdict.kept != Some(false))?;
    verdict.withheld.first().map(String::as_str)
}

/// A judged cell in whose histories nothing was found, and whose tables were right.
fn is_clean(cell: &Cell) -> bool {
    cell.summary.verdict.as_ref().is_some_and(|it| it.anomalies == 0 && it.withheld.is_empty())
        && cell.summary.violations == 0
}

/// The level, and strategy, with the most committed work among those that kept their promise, as
/// far as that is known.
pub fn cheapest<'a>(group: &[&'a Cell]) -> Option<&'a Cell> {
    group.iter().copied().filter(|cell| eligible(cell)).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn rate(cell: &Cell) -> f64 {
    cell.summary.tps.mean.unwrap_or(0.0)
}

/// A level that runs as asked and broke nothing that it promises, with a strategy that loses no
/// work.
fn eligible(cell: &Cell) -> bool {
    !breaks_promise(cell) && cell.swallowed() == 0 && !cell.level.differs() && rate(cell) > 0.0
}

/// True if a history, or an invariant of the tables, shows what the level excludes.
fn breaks_promise(cell: &Cell) -> bool {
    let broken = cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false));
    broken || cell.summary.invariants_held == Some(false)
}

/// True if another cell than the best kept its promise, too, and its difference may be noise.
fn equals(cell: &Cell, best: &Cell) -> bool {
    !std::ptr::eq(cell, best) && eligible(cell) && alike(cell, best)
}

/// True if the difference of two levels, or two strategies, may be noise. Only ratios to the first
/// one are known, so two others differ if one of them differs from the first; and nothing is known
/// of two that differ in both.
fn alike(cell: &Cell, other: &Cell) -> bool {
    let by_level = cell.strategy() == other.strategy();
    if !by_level && cell.level.requested != other.level.requested {
        return false;
    }
    let ratio = |cell: &'_ Cell| {
        if by_level { cell.summary.ratio.clone() } else { cell.summary.strategy_ratio.clone() }
    };
    let name = |cell: &Cell| if by_level { cell.level.name() } else { cell.strategy().to_owned() };
    let differs = |cell: &Cell| ratio(cell).is_some_and(|ratio| ratio.significant);
    let known = |cell: &Cell| ratio(cell).is_some_and(|ratio| ratio.low.is_some());
    let first = |cell: &Cell| ratio(cell).is_some_and(|ratio| ratio.to == name(cell));
    match (first(cell), first(other)) {
        (true, _) => known(other) && !differs(other),
        (_, true) => known(cell) && !differs(cell),
        _ => known(cell) && known(other) && !differs(cell) && !differs(other),
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

/// A level's committed work compared with that of another one of its group: the measured ratio
/// where there is one.
fn times(cell: &Cell, other: &Cell) -> String {
    let compared = cell.summary.ratio.as_ref();
    match compared.filter(|ratio| ratio.to == other.level.name() && cell.strategy() == other.strategy()) {
        Some(ratio) => {
            format!("with {} times as much committed work ({})", short(ratio.mean), certainty(ratio))
        }
        None if rate(other) > 0.0 => {
            format!("with {} times as much committed work", short(rate(cell) / rate(other)))
        }
        None => "with committed work that has nothing to be compared with".to_owned(),
    }
}

fn kept_words(cell: &Cell) -> String {
    match cell.summary.verdict.as_ref().and_then(|verdict| verdict.kept) {
        Some(true) => "its promise is unbroken".to_owned(),
        Some(false) => "its promise is BROKEN".to_owned(),
        None if withheld(cell).is_some() => "its verdict is withheld".to_owned(),
        None => "what it gave is unproved".to_owned(),
    }
}

/// For each level the strategy that commits the most, if it isn't the first.
fn strategies(group: &[&Cell]) -> Vec<String> {
    let compared = group.iter().copied().filter(|cell| cell.summary.strategy_ratio.is_some());
    let levels = grouped(compared, |one, other| one.level.requested == other.level.requested);
    let said = |cells: &Vec<&Cell>| {
        let best = cheapest(cells)?;
        let ratio = best.summary.strategy_ratio.as_ref()?;
        let level = capital(&best.level.name());
        if ratio.to == best.strategy() {
            return Some(format!("{level}: no strategy commits more than {}.", ratio.to));
        }
        Some(format!(
            "{level}: {} commits the most, {} times as much as {} ({}).",
            best.strategy(),
            short(ratio.mean),
            ratio.to,
            certainty(ratio)
        ))
    };
    levels.iter().filter_map(said).collect()
}

/// The share of the acknowledged transactions that did no work.
fn lost(document: &Document, cells: &[&Cell]) -> Vec<Line> {
    let said = |cell: &&Cell| {
        let kept = kept_share(cell).filter(|kept| *kept < 1.0)?;
        Some(Line::grave(format!(
            "{} LOST WORK, so it isn't eligible: of {} transactions per second that the server \
             acknowledged {} committed work; the others swallowed their error.",
            capital(&name(document, cell)),
            short(cell.summary.acknowledged_tps?.mean?),
            percent(kept)
        )))
    };
    cells.iter().filter_map(said).collect()
}

/// The cost of a level, and what it spends it on, beside the level that the answer names.
fn cost(document: &Document, cell: &Cell, best: Option<&Cell>) -> Option<String> {
    let ratio = cell.summary.ratio.as_ref().filter(|ratio| ratio.to != cell.level.name());
    let mut text = capital(&name(document, cell));
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
            "{} of its attempts ended in a conflict{mostly}, and {} of its clients' busy time was wasted",
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

/// A command's number, and the start of its text: `8 ("UPDATE accounts SET…")`.
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

/// The most frequent wait of the sessions, clients and idleness aside, if it takes a tenth of their
/// time. A wait that the level of the answer has as well explains nothing: it must take markedly
/// more.
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

/// The reason why a level isn't eligible.
fn failed(document: &Document, cell: &Cell) -> Option<Line> {
    let name = capital(&name(document, cell));
    if cell.level.differs() {
        let instead = format!("{name} isn't eligible: the server runs {} instead.", cell.level.effective);
        return Some(Line::plain(instead));
    }
    if cell.summary.verdict.as_ref().is_some_and(|verdict| verdict.kept == Some(false)) {
        return Some(Line::grave(format!("{name} BROKE its promise.")));
    }
    if let Some(reason) = withheld(cell) {
        return Some(Line::plain(format!("The verdict on {} is withheld: {reason}.", cell.level.name())));
    }
    if cell.summary.invariants_held == Some(false) {
        return Some(Line::grave(format!("{name} isn't eligible: the database was WRONG afterwards.")));
    }
    (rate(cell) <= 0.0 && !cell.rounds.is_empty()).then(|| Line::plain(format!("{name} committed nothing.")))
}

/// The reason why a comparison ended early.
fn incomplete_reason(document: &Document) -> Cow<'_, str> {
    let reason = document.incomplete_reason.as_deref().unwrap_or("it ended before its time");
    // The whole of it is above the answer.
    let line = reason.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => Cow::Owned(format!("{}…", &line[..end])),
        None => Cow::Borrowed(line),
    }
}

/// The most characters of a reason in a headline.
const LONGEST_REASON: usize = 300;

/// The limits of the answer.
fn caveats(document: &Document) -> Vec<Line> {
    let mut caveats = Vec::new();
    let measured = || document.cells.iter().filter(|cell| !cell.rounds.is_empty());
    if measured().all(|cell| cell.summary.verdict.is_none()) {
        caveats.push(Line::plain(
            "Unproved: no history was recorded, so nothing is known about anomalies; a checked workload tells more \
             (isobench workloads).",
        ));
    }
    let flagged: Vec<String> =
        measured().filter(|cell| !cell.summary.flags.is_empty()).map(|cell| name(document, cell)).collect();
    if !flagged.is_empty() {
        let names = distinct(flagged).join(", ");
        caveats.push(Line::plain(format!("Read the flags of {names} before trusting the numbers.")));
    }
    caveats
}
