//! What was seen of the transactions and what wasn't, taken together for every rendering.
//!
//! Not here: how it is said and laid out (`text/seen`, `html/seen`).

use crate::document::{Cell, Document, Observation, ObservedStatement};
use crate::numbers::{count, counted};
use crate::words::{capital, distinct, enumerated};
use isobench_isolation::Level;
use isobench_plan::Observe;

/// Something that wasn't seen, and the statements that it is true of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dark {
    /// What it is, without a full stop: "rows of stock that a subquery reads".
    pub what: String,
    /// The statements' places, each once: "orders.sql:12".
    pub places: Vec<String>,
}

/// What stays dark of observed statements, by what it is, in the order of the statements.
pub fn dark<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> Vec<Dark> {
    let mut found: Vec<Dark> = Vec::new();
    for statement in observations.into_iter().flat_map(|observation| &observation.statements) {
        for what in statement.dark.iter().map(|sentence| plain(sentence)) {
            let place = place(statement);
            match found.iter_mut().find(|dark| dark.what == what) {
                Some(known) if known.places.contains(&place) => {}
                Some(known) => known.places.push(place),
                None => found.push(Dark { what: what.to_owned(), places: vec![place] }),
            }
        }
    }
    found
}

/// A sentence about what isn't seen, where that it isn't seen has been said.
pub fn plain(sentence: &str) -> &str {
    sentence.strip_prefix("not observed: ").unwrap_or(sentence).trim_end_matches('.')
}

/// The place of a statement: "orders.sql:12".
pub fn place(statement: &ObservedStatement) -> String {
    format!("{}:{}", statement.script, statement.line)
}

/// The workload of an observation, with its strategy; `None` if the document has a single one.
pub fn name(document: &Document, observation: &Observation) -> Option<String> {
    (document.observations.len() > 1).then(|| match &observation.strategy {
        Some(strategy) => format!("{} with {strategy}", observation.workload),
        None => observation.workload.clone(),
    })
}

/// The reason why rows weren't observed, on one line; `None` if they were.
pub fn prevented(observation: &Observation) -> Option<String> {
    let why = observation.prevented.as_deref()?;
    Some(why.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned())
}

/// Why no history shows what transactions did, and how to get one, in a clause.
pub fn way_out(document: &Document) -> String {
    const POSTGRESQL: &str = "PostgreSQL";
    let product = document.server.product.as_str();
    let prevented = document.observations.iter().find_map(prevented);
    let paced = !document.plan.rates().is_empty() || document.plan.think_time.is_some();
    match prevented {
        Some(why) => format!(
            "the statements failed with the added columns ({why}); lines --@ in the scripts can say what they read \
             and write"
        ),
        None if !product.is_empty() && product != POSTGRESQL => format!(
            "rows of {product} don't show who wrote them; a checked workload (isobench workloads), or lines --@ in \
             the scripts, say what they read and write"
        ),
        None if document.plan.observe.is_none() => "the result was made by an isobench that saw only what lines --@ \
                                                    of scripts say; measured again, statements show their rows"
            .to_owned(),
        None if crate::durability::is_settled(document) => {
            "rows aren't tracked in runs with --fault, where a transaction's number may occur twice; lines --@ in the \
             scripts can say what they read and write"
                .to_owned()
        }
        None if document.plan.observe() == Observe::Annotations => {
            "no lines --@ of the scripts say what they read and write; on PostgreSQL --observe rows needs none"
                .to_owned()
        }
        None if paced => "a paced run is never changed to show its rows; leave out --rate and --think-time once, or \
                          use a checked workload (isobench workloads)"
            .to_owned(),
        None => "either --no-verdict was given, or no statement's rows can be tracked; isobench observe lists what \
                 can be"
            .to_owned(),
    }
}

/// Why rows without a verdict prove little, and how to get one, as sentences; `None` if all have one.
pub fn unproved(document: &Document) -> Option<String> {
    let unproved = |cell: &&Cell| cell.summary.verdict.is_none() && !cell.rounds.is_empty();
    let cell = document.cells.iter().find(unproved)?;
    let name = cell.workload.to_lowercase().replace(['-', ' ', '_'], "");
    let why = if name.contains("tpcb") {
        "no history was checked, and the TPC-B-like script can't lose updates even at read committed, because it adds \
         in SQL (balance = balance + :delta), so that its invariants say nothing about the level"
    } else {
        "no history was checked, and invariants, if any, say little about the level"
    };
    let several = document.cells.iter().any(|other| other.workload != cell.workload);
    let whose = if several { format!("{}: ", cell.workload) } else { String::new() };
    Some(format!("{whose}{why}. {}.", capital(&way_out(document))))
}

/// What checks of histories couldn't see, a sentence each, without full stops. Sentences of several
/// rounds that differ in their numbers only are one, with the largest numbers.
pub fn blind<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
    let verdicts = cells.into_iter().flat_map(|cell| &cell.rounds).filter_map(|round| round.verdict.as_ref());
    let sentences = verdicts.flat_map(|verdict| &verdict.blind);
    let mut kinds: Vec<Blind<'_>> = Vec::new();
    for sentence in sentences.map(|sentence| sentence.trim_end_matches('.')) {
        let (form, largest) = form(sentence);
        match kinds.iter_mut().find(|kind| kind.form == form) {
            None => kinds.push(Blind { form, largest, sentence, rounds: 1, same: true }),
            Some(kind) => {
                kind.rounds += 1;
                kind.same &= kind.sentence == sentence;
                if largest > kind.largest {
                    (kind.largest, kind.sentence) = (largest, sentence);
                }
            }
        }
    }
    let said = |kind: &Blind<'_>| {
        if kind.same {
            kind.sentence.to_owned()
        } else {
            format!("{} (the worst of {} rounds)", kind.sentence, kind.rounds)
        }
    };
    kinds.iter().map(said).collect()
}

/// What snapshots say of transactions that read unseen, a sentence for each cell, without full stops.
pub fn cleared(document: &Document) -> Vec<String> {
    let several = document.cells.len() > 1;
    let said = |cell: &Cell| {
        let cleared = cell.summary.verdict.as_ref()?.cleared.as_ref().filter(|cleared| cleared.dark > 0)?;
        let of =
            if several { format!("{}: ", crate::durability::name(document, cell)) } else { String::new() };
        let dark = counted(cleared.dark, "transaction");
        let open = cleared.dark.saturating_sub(cleared.cleared);
        Some(match (&cleared.why_not, open) {
            (Some(why), _) => {
                format!("{of}{dark} ran such statements, and their snapshots clear none: {why}")
            }
            (None, 0) => format!(
                "{of}{dark} ran such statements, and none of them can have shown an anomaly: by their snapshots no \
                 concurrent write that they could have missed closes a cycle"
            ),
            (None, open) => format!(
                "{of}{dark} ran such statements; by their snapshots {} can have shown no anomaly, and {} may have, \
                 which accuses no level",
                count(cleared.cleared),
                count(open)
            ),
        })
    };
    document.cells.iter().filter_map(said).collect()
}

/// Says for which levels it is proved that what wasn't seen can't matter; without a full stop, `None` where
/// all was seen or nothing is proved.
pub fn proved(document: &Document) -> Option<String> {
    let matters = |statement: &&ObservedStatement| {
        statement.matters.is_some() || statement.matters_if_unsearched.is_some()
    };
    let of = |observation: &Observation| {
        let places: Vec<String> = observation.statements.iter().filter(matters).map(place).collect();
        let levels: Vec<String> = observation.proved.iter().map(Level::to_string).collect();
        let said = || {
            format!(
                "at {} the scripts are proved to be safe if nothing else writes their tables, so what wasn't seen of \
                 {} can't matter there",
                enumerated(&levels),
                enumerated(&places)
            )
        };
        (!places.is_empty() && !levels.is_empty()).then(said)
    };
    let said = distinct(document.observations.iter().filter_map(of));
    (!said.is_empty()).then(|| said.join("; "))
}

/// Sentences that differ in their numbers only.
struct Blind<'a> {
    form: Vec<&'a str>,
    largest: u64,
    sentence: &'a str,
    rounds: u64,
    same: bool,
}

/// A sentence without the digits in it, and the first number.
fn form(sentence: &str) -> (Vec<&str>, u64) {
    let digit = |letter: char| letter.is_ascii_digit() || letter == ',';
    let first = sentence
        .split(|letter| !digit(letter))
        .find(|word| word.contains(|letter: char| letter.is_ascii_digit()))
        .and_then(|word| word.replace(',', "").parse().ok());
    let words = sentence.split_whitespace().filter(|word| !word.chars().all(digit));
    (words.collect(), first.unwrap_or(0))
}

/// The statements of both sides of a step, each once.
pub fn of_step(statements: &[String]) -> Vec<&str> {
    distinct(statements.iter().map(|statement| statement.trim_end_matches(';')))
}

/// A text of this many letters at most.
pub fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_isolation::EffectiveLevel;
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;
    use crate::document::{
        CellLevel, ClearedTransactions, Client, Plan, Round, Server, Verdict, VerdictSummary,
    };

    fn statement(line: u32, dark: &[&str]) -> ObservedStatement {
        ObservedStatement {
            script: "a.sql".to_owned(),
            line,
            dark: dark.iter().map(|&sentence| sentence.to_owned()).collect(),
            ..ObservedStatement::default()
        }
    }

    #[test]
    fn what_is_dark_is_said_once_with_its_places() {
        let unclear = "not observed: the statement isn't understood";
        let observation = Observation {
            statements: vec![
                statement(1, &["what LOCK reads"]),
                statement(2, &[unclear]),
                statement(2, &[unclear]),
                statement(5, &["what LOCK reads", unclear]),
            ],
            ..Observation::default()
        };
        let expected = |what: &str, places: [&str; 2]| Dark {
            what: what.to_owned(),
            places: places.map(str::to_owned).into(),
        };
        assert_eq!(
            dark([&observation]),
            [
                expected("what LOCK reads", ["a.sql:1", "a.sql:5"]),
                expected("the statement isn't understood", ["a.sql:2", "a.sql:5"]),
            ]
        );
    }

    #[test]
    fn blind_spots_of_several_rounds_are_one_sentence() {
        let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
        for pairs in ["9", "1,234", "1,100"] {
            let blind = vec![
                format!("The order of {pairs} pairs of versions of the same row is unknown."),
                "The history has no instants".to_owned(),
            ];
            let (ledger, latencies) = (Ledger::default(), LatencyHistogram::new());
            let round = Round::from_ledger(1, &ledger, &latencies, Duration::from_secs(1), Vec::new());
            cell.rounds.push(Round { verdict: Some(Verdict { blind, ..Verdict::default() }), ..round });
        }
        assert_eq!(
            blind([&cell]),
            [
                "The order of 1,234 pairs of versions of the same row is unknown (the worst of 3 rounds)",
                "The history has no instants",
            ]
        );
    }

    #[test]
    fn what_snapshots_clear_is_said_and_accuses_nothing() {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        let mut add = |dark, cleared, why_not: Option<&str>| {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            let why_not = why_not.map(str::to_owned);
            let cleared = Some(ClearedTransactions { dark, cleared, why_not });
            cell.summary.verdict = Some(VerdictSummary { cleared, ..VerdictSummary::default() });
            document.cells.push(cell);
        };
        add(0, 0, None);
        add(1200, 1200, None);
        add(3, 2, None);
        add(3, 0, Some("the log wasn't read"));
        let said = cleared(&document);
        let parts = [
            "1,200 transactions ran such statements, and none of them can",
            "2 can have shown no anomaly, and 1 may have",
            "their snapshots clear none: the log wasn't read",
        ];
        assert_eq!(said.len(), parts.len());
        assert!(said.iter().zip(parts).all(|(said, part)| said.contains(part)), "{said:?}");
    }

    #[test]
    fn the_way_to_a_verdict_fits_the_reason() {
        let rows = Plan { observe: Some(Observe::Rows), ..Plan::default() };
        let annotations = Plan { observe: Some(Observe::Annotations), ..Plan::default() };
        let paced = Plan { rate: Some(vec![100.0]), ..rows.clone() };
        let thinking = Plan { think_time: Some(5.0), ..rows.clone() };
        let failed =
            Observation { prevented: Some("a.sql:1\n  ERROR: no".to_owned()), ..Observation::default() };
        for (product, plan, failed, way) in [
            ("PostgreSQL", &rows, None, "isobench observe"),
            ("PostgreSQL", &annotations, None, "--observe rows"),
            ("PostgreSQL", &paced, None, "leave out --rate"),
            ("PostgreSQL", &thinking, None, "leave out --rate"),
            ("PostgreSQL", &Plan::default(), None, "measured again"),
            ("CockroachDB", &rows, None, "rows of CockroachDB don't show"),
            ("PostgreSQL", &rows, Some(failed), "(a.sql:1 ERROR: no); lines --@"),
        ] {
            let server = Server { product: product.to_owned(), ..Server::default() };
            let mut document = Document::new(server, Client::default(), plan.clone());
            document.observations.extend(failed);
            let said = way_out(&document);
            assert!(said.contains(way) && !said.ends_with('.'), "{said}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü x", 4), "äöü…");
    }
}
