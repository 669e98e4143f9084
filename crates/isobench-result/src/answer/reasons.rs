//! The reasons beside the answer: what the levels cost and what they spend it on, what was lost, and
//! what isn't known.
//!
//! Not here: the recommendation (`rules`).

use std::collections::BTreeMap;

use isobench_isolation::Model;

use super::evidence::{Candidate, Evidence, SafetyEvidence, factors, name};
use super::words;
use crate::document::{Cell, Conflict, Document, WaitShare, WritingBack, WrittenBack};
use crate::numbers::{counted, percent, short};
use crate::rounds::{counted_ledger, counted_rounds, kept_share};
use crate::seen::unproved;
use crate::view::Line;
use crate::words::{capital, distinct};

/// The reasons beside the answer for a group.
pub fn of(evidence: &Evidence<'_>, recommended: &[&Cell]) -> Vec<Line> {
    let document = evidence.document;
    let cells: Vec<&Cell> = evidence.candidates.iter().map(|candidate| candidate.cell).collect();
    let against = recommended.first().or(cells.first()).copied();
    let usual = cells.first().map(|cell| cell.strategy());
    // Of many strategies only the first: what the others do is said in one line for each level.
    let explained = evidence.candidates.iter().filter(|it| Some(it.cell.strategy()) == usual);
    let damaged =
        evidence.with(|safety| *safety == SafetyEvidence::Unsafe).filter_map(words::damage_in_numbers);
    let withheld = evidence.candidates.iter().filter_map(withheld);
    let spent = explained.filter_map(|candidate| spent(candidate, against));
    let missed = evidence.candidates.iter().filter_map(missed);
    let harmless = evidence.candidates.iter().filter_map(harmless);
    let blind = evidence.candidates.iter().filter_map(blind);
    let back = evidence.candidates.iter().filter_map(written_back);
    let overlooked = evidence.candidates.iter().filter_map(|candidate| overlooked(evidence, candidate));
    let reasons = withheld
        .chain(damaged)
        .chain(missed)
        .chain(blind)
        .chain(overlooked)
        .chain(harmless)
        .chain(back)
        .chain(spent);
    let mut reasons: Vec<Line> = reasons.map(Line::plain).collect();
    reasons.extend(strategies(evidence).into_iter().map(Line::plain));
    reasons.extend(lost(document, &cells));
    reasons
}

/// Why a candidate has no verdict.
fn withheld(candidate: &Candidate<'_>) -> Option<String> {
    let SafetyEvidence::Withheld(reason) = candidate.safety else { return None };
    Some(format!("The verdict on {} is withheld: {}.", candidate.name, reason.trim_end_matches('.')))
}

/// That a condition didn't hold, or trying showed a wrong outcome, although the history shows nothing.
fn missed(candidate: &Candidate<'_>) -> Option<String> {
    let violated = matches!(candidate.safety, SafetyEvidence::Unsafe | SafetyEvidence::Broken);
    let verdict = candidate.verdict().filter(|verdict| violated && verdict.withheld.is_empty())?;
    if verdict.anomalies > 0 || !verdict.allows(Model::Serializable) {
        return None;
    }
    let unseen = words::unseen(candidate);
    let why = if unseen.is_empty() { String::new() } else { format!(": {unseen}") };
    let name = capital(&candidate.name);
    let shown = if words::tables(candidate).is_some() { "the tables show" } else { "trying showed" };
    Some(format!("{name}: the history looks serializable, so it missed what {shown}{why}."))
}

/// That no anomaly could show.
fn blind(candidate: &Candidate<'_>) -> Option<String> {
    candidate.verdict().filter(|verdict| verdict.nothing_shared && verdict.kinds.is_empty())?;
    Some(format!(
        "{}: no transaction read or overwrote what another wrote, so no anomaly was possible.",
        capital(&candidate.name)
    ))
}

/// That a level in which nothing was found is weaker than one in which something was.
fn overlooked(evidence: &Evidence<'_>, candidate: &Candidate<'_>) -> Option<String> {
    let clean = matches!(
        candidate.safety,
        SafetyEvidence::Safe(_) | SafetyEvidence::Unseen(_) | SafetyEvidence::Tried(_)
    );
    let worse = evidence.worse(candidate).filter(|_| clean)?;
    Some(format!(
        "{}: no anomaly was found, but {}, which is stronger, had some, and nothing shows that they can't happen here.",
        capital(&candidate.name),
        worse.name
    ))
}

/// What transactions read and didn't use, which is no damage.
fn harmless(candidate: &Candidate<'_>) -> Option<String> {
    let harmless = candidate.verdict()?.harmless;
    if harmless == 0 {
        return None;
    }
    Some(format!(
        "{} at {} read a row that another one then changed, but didn't use what was read: no damage, and no reason \
         for a stronger level.",
        counted(harmless, "transaction"),
        candidate.name
    ))
}

/// That anomalies are due to columns that are written back as they were read.
fn written_back(candidate: &Candidate<'_>) -> Option<String> {
    let verdicts = candidate.cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
    let found: Vec<&WrittenBack> = verdicts.filter_map(|verdict| verdict.written_back.as_ref()).collect();
    let transactions = found.iter().map(|found| found.transactions).fold(0, u64::saturating_add);
    let statements = found.iter().flat_map(|found| &found.statements).map(WritingBack::place);
    let statements = distinct(statements);
    (transactions > 0).then(|| {
        format!(
            "{} at {} would show no anomaly if only columns that change were set; these are also written back \
             as they were read: {}.",
            counted(transactions, "transaction"),
            candidate.name,
            statements.join(", ")
        )
    })
}

/// For each level the strategy that commits the most, of those that lose no work.
fn strategies(evidence: &Evidence<'_>) -> Vec<String> {
    let compared = |candidate: &&Candidate<'_>| {
        candidate.cell.summary.strategy_ratio.is_some()
            && !matches!(
                candidate.safety,
                SafetyEvidence::LostWork | SafetyEvidence::Broken | SafetyEvidence::Mislabelled
            )
    };
    let mut levels: Vec<Vec<&Candidate<'_>>> = Vec::new();
    for candidate in evidence.candidates.iter().filter(compared) {
        match levels.iter_mut().find(|level| level[0].cell.level == candidate.cell.level) {
            Some(level) => level.push(candidate),
            None => levels.push(vec![candidate]),
        }
    }
    let said = |level: &Vec<&Candidate<'_>>| {
        let best = evidence.fastest(level)?.cell;
        let ratio = best.summary.strategy_ratio.as_ref()?;
        let level = capital(&best.level.said());
        if ratio.to == best.strategy() {
            return Some(format!("{level}: no strategy commits more than {}.", ratio.to));
        }
        Some(format!("{level}: {} {}.", best.strategy(), words::cost(ratio, &ratio.to)))
    };
    levels.iter().filter_map(said).collect()
}

/// The level of a cell with everything that rows differ in: "serializable with swallow, 8 clients".
fn place_of(document: &Document, cell: &Cell) -> String {
    let others = Some(factors(document, cell)).filter(|others| !others.is_empty());
    std::iter::once(name(document, cell)).chain(others).collect::<Vec<_>>().join(", ")
}

/// The share of the acknowledged transactions that did no work.
pub fn lost(document: &Document, cells: &[&Cell]) -> Vec<Line> {
    let said = |cell: &&Cell| {
        let kept = kept_share(cell).filter(|kept| *kept < 1.0)?;
        Some(Line::grave(format!(
            "{} LOST WORK, so it can't be recommended: of {} transactions per second that the server acknowledged, \
             {} committed work; the others swallowed their error.",
            capital(&place_of(document, cell)),
            short(cell.summary.acknowledged_tps?.mean?),
            percent(kept)
        )))
    };
    cells.iter().filter_map(said).collect()
}

/// What a level spends its time on, against another one; `None` if there is nothing to say. What it
/// costs is in the table, and in the headline.
fn spent(candidate: &Candidate<'_>, against: Option<&Cell>) -> Option<String> {
    let cell = candidate.cell;
    let mut why = Vec::new();
    if cell.summary.conflict_ratio > 0.0 {
        let mostly = main_conflict(cell).map_or_else(String::new, |main| format!(", mostly {main}"));
        why.push(format!(
            "{} of its attempts ended in a conflict{mostly}, and {} of its clients' busy time was wasted",
            percent(cell.summary.conflict_ratio),
            percent(cell.summary.wasted_share)
        ));
    }
    why.extend(main_wait(cell, against));
    (!why.is_empty()).then(|| format!("{}: {}.", capital(&candidate.name), why.join("; ")))
}

/// The most frequent conflict, if it makes up half of them: reason and place.
fn main_conflict(cell: &Cell) -> Option<String> {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for conflict in counted_rounds(cell).into_iter().flat_map(|round| &round.conflicts) {
        let known = counts.entry((&conflict.reason, place(conflict))).or_default();
        *known = known.saturating_add(conflict.count);
    }
    let all = counted_ledger(cell).conflicts;
    let ((reason, place), count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (all > 0 && count >= all.div_ceil(2)).then(|| format!("\"{reason}\" at {place}"))
}

/// The place of a conflict: script and line, and the start of the command's text: `orders:14
/// ("UPDATE shops SET…")`.
fn place(conflict: &Conflict) -> String {
    let command = format!("\"{}\"", abridged(&conflict.command));
    match (&conflict.script, conflict.line) {
        (Some(script), Some(line)) => format!("{script}:{line} ({command})"),
        _ => command,
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
        (Some(best), Some(share)) => format!(" ({}: {})", best.level.said(), percent(share)),
        _ => String::new(),
    };
    Some(format!(
        "its sessions waited for {}/{} in {} of the samples{beside}",
        wait.kind,
        wait.event,
        percent(wait.share)
    ))
}

/// The limits of the answer.
pub fn caveats(document: &Document) -> Vec<Line> {
    standby(document).into_iter().chain(background(document)).chain(uncertain(document)).collect()
}

/// What another session did meanwhile: how often, and how long it took.
fn background(document: &Document) -> Vec<Line> {
    let mut done: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
    for work in rounds.filter_map(|round| round.background.as_ref()) {
        let (times, seconds) = done.entry(&work.kind).or_default();
        *times = times.saturating_add(work.times);
        *seconds += work.mean_s.unwrap_or(0.0) * work.times as f64;
    }
    let line = |(kind, (times, seconds)): (&str, (u64, f64))| {
        let mean = if times == 0 {
            "never finished".to_owned()
        } else {
            format!("{} s each", short(seconds / times as f64))
        };
        Line::plain(format!("Background work: {kind}, {}, {mean}.", counted(times, "time")))
    };
    done.into_iter().map(line).collect()
}

/// What is to be known if clients read on a standby.
pub fn standby(document: &Document) -> Option<Line> {
    let readers = document.plan.readers();
    let lags: Vec<f64> = document
        .cells
        .iter()
        .flat_map(|cell| &cell.rounds)
        .filter_map(|round| round.standby_lag?.replay_ms_max)
        .collect();
    let lag = lags.into_iter().reduce(f64::max);
    let behind = lag.map_or_else(String::new, |lag| format!(", which was up to {} ms behind", short(lag)));
    (readers > 0).then(|| {
        Line::plain(format!(
            "{} on a standby{behind}, so the verdict covers both servers together. PostgreSQL promises nothing about \
             that: each is consistent, but they may show commits in different orders, whatever synchronous_commit \
             says (long fork).",
            if readers == 1 { "1 further client reads".to_owned() } else { format!("{readers} further clients read") }
        ))
    })
}

fn uncertain(document: &Document) -> Vec<Line> {
    let mut caveats = Vec::new();
    let measured = || document.cells.iter().filter(|cell| !cell.rounds.is_empty());
    caveats.extend(unproved(document).map(|why| Line::plain(format!("Unproved: {why}"))));
    let flagged: Vec<String> =
        measured().filter(|cell| !cell.summary.flags.is_empty()).map(|cell| name(document, cell)).collect();
    if !flagged.is_empty() {
        let names = distinct(flagged).join(", ");
        caveats.push(Line::plain(format!("Read the notes on {names} before trusting these numbers.")));
    }
    caveats
}
