//! The rules of the recommendation by safety and cost: which level of those without damage, what "can't
//! be told" means, what wasn't seen, what no level protects.

use isobench_report::render;
use isobench_result::{
    Answer, Document, LevelSafety, Tried, TriedStep, VerdictSummary, WrongOutcome, answer, recommended,
    summarise, unsettled,
};

use crate::examples::{self, example};

/// What the rounds of a level commit, and the transactions that go wrong in each.
type Row<'a> = (&'a [u64], u64);

/// Read committed, repeatable read and serializable.
fn document(rows: [Row<'_>; 3]) -> Document {
    let mut document = example("checked");
    let clean = document.cells[2].rounds[0].clone();
    let lossy = document.cells[0].rounds[0].clone();
    for (cell, (committed, wrong)) in document.cells.iter_mut().zip(rows) {
        let source = if wrong > 0 { &lossy } else { &clean };
        let round = |(number, committed): (u32, &u64)| {
            let mut round = source.clone();
            round.round = number;
            round.transactions.committed = *committed;
            round.invariants.clear();
            if let Some(verdict) = &mut round.verdict {
                verdict.anomalies.truncate(usize::from(wrong > 0));
                verdict.anomalous = wrong;
                for anomaly in &mut verdict.anomalies {
                    anomaly.count = wrong;
                }
            }
            round
        };
        cell.rounds = (1..).zip(committed).map(round).collect();
    }
    document.plan.rounds = Some(u32::try_from(rows[0].0.len()).unwrap());
    summarise(&mut document);
    document
}

/// Changes what is known of the histories of every level.
fn known(mut document: Document, change: fn(&mut VerdictSummary)) -> Document {
    for cell in &mut document.cells {
        change(cell.summary.verdict.as_mut().unwrap());
    }
    document
}

fn names(document: &Document) -> Vec<String> {
    recommended(document).into_iter().map(|cell| cell.level.name()).collect()
}

/// The rule, the levels that are recommended, and the text.
fn answered(document: &Document) -> (&'static str, Vec<String>, String) {
    let Answer { rule, headline, .. } = answer(document);
    (rule, names(document), headline.join(" "))
}

fn reasons(document: &Document) -> String {
    answer(document).reasons.into_iter().map(|line| line.text).collect::<Vec<_>>().join("\n")
}

/// A condition of the user's that doesn't hold at some levels.
fn violated(mut document: Document, at: &[usize]) -> Document {
    let mut condition = example("checked").cells[0].rounds[2].invariants.last().unwrap().clone();
    condition.own = true;
    for (index, cell) in document.cells.iter_mut().enumerate() {
        for round in &mut cell.rounds {
            condition.held = Some(!at.contains(&index));
            condition.violations = Some(u64::from(at.contains(&index)));
            condition.promised = index == 2;
            round.invariants = vec![condition.clone()];
        }
    }
    summarise(&mut document);
    document
}

const STEADY: &[u64] = &[1000, 1010, 990, 1005, 995, 1000];
const HALF: &[u64] = &[500, 506, 494, 503, 498, 500];
const WILD: &[u64] = &[900, 300, 1500, 500, 1200, 400];

/// (a) Of the levels without damage the cheapest.
#[test]
fn the_cheapest_of_the_clean_levels_is_recommended() {
    let (rule, levels, text) = answered(&document([(STEADY, 100), (STEADY, 0), (HALF, 0)]));
    assert_eq!((rule, levels), ("cheapest", vec!["repeatable read".to_owned()]));
    assert!(text.contains("Serializable costs 50 %"), "{text}");
    assert!(!text.contains("no measurable difference"), "{text}");
}

/// (b) Shown alike within 5 %: the stronger one costs nothing.
#[test]
fn of_levels_shown_alike_the_strongest_is_recommended() {
    let document = document([(STEADY, 100), (STEADY, 0), (&[1001, 1009, 992, 1004, 996, 999], 0)]);
    let (rule, levels, text) = answered(&document);
    assert_eq!((rule, levels), ("stronger for nothing", vec!["serializable".to_owned()]));
    assert!(text.contains("it costs no more than repeatable read (within 5 %: "), "{text}");
    assert!(!unsettled(&document));
}

/// (b) A difference that is too small to matter is no reason for the weaker level, and is said.
#[test]
fn a_small_difference_is_said_and_decides_nothing() {
    for (rates, said) in [
        (
            &[970, 985, 956, 978, 960, 972],
            "and it costs 3 % (2 to 4 %) against repeatable read, too small to matter",
        ),
        (
            &[1030, 950, 970, 1010, 930, 960],
            "and its cost against repeatable read is too small to matter (−3 %; −7 % to +2 %)",
        ),
    ] {
        let (rule, levels, text) = answered(&document([(STEADY, 100), (STEADY, 0), (rates, 0)]));
        assert_eq!((rule, levels), ("stronger for nothing", vec!["serializable".to_owned()]), "{text}");
        assert!(text.contains(said), "{text}");
    }
}

/// (b) What can't be told apart isn't the same: both are named, with the numbers.
#[test]
fn levels_that_cannot_be_told_apart_are_both_named() {
    let document = document([(STEADY, 100), (STEADY, 0), (WILD, 0)]);
    let (rule, levels, text) = answered(&document);
    assert_eq!(rule, "not settled");
    assert_eq!(levels, ["repeatable read", "serializable"]);
    assert!(text.starts_with("Use repeatable read or serializable: no anomaly found in"), "{text}");
    let looks = "Repeatable read seems cheaper (repeatable read 1.00 × read committed, serializable 0.68 ×), but more \
                 rounds are needed to be sure";
    assert!(text.contains(looks), "{text}");
    assert!(unsettled(&document));
}

/// (c) Read committed without damage is enough, whatever can't be told of the others.
#[test]
fn read_committed_without_damage_is_enough() {
    for (others, piece, open) in [
        ([HALF, HALF], "repeatable read costs 50 %", false),
        ([STEADY, HALF], "repeatable read costs the same as read committed within 5 % (+0 %)", false),
        ([WILD, WILD], "repeatable read needs more rounds to compare with read committed", true),
    ] {
        let document = document([(STEADY, 0), (others[0], 0), (others[1], 0)]);
        let (rule, levels, text) = answered(&document);
        assert_eq!((rule, levels), ("enough", vec!["read committed".to_owned()]), "{text}");
        assert!(
            text.starts_with("Read committed was right in all tests here: no anomaly found in"),
            "{text}"
        );
        assert!(text.contains("prevented nothing more here"), "{text}");
        assert!(text.contains(piece), "{text}");
        assert_eq!(unsettled(&document), open, "{text}");
        assert_eq!(text.contains("to settle the cost"), open, "{text}");
    }
}

/// (c) All levels alike and clean: the strongest.
#[test]
fn where_all_levels_cost_the_same_the_strongest_is_recommended() {
    let (rule, levels, text) = answered(&document([(STEADY, 0), (STEADY, 0), (STEADY, 0)]));
    assert_eq!((rule, levels), ("stronger for nothing", vec!["serializable".to_owned()]));
    assert!(text.contains("costs no more than read committed (within 5 %"), "{text}");
}

/// (d) One round or two say nothing of how sure they are.
#[test]
fn few_rounds_have_no_interval_and_no_equality() {
    for rounds in 1..=2 {
        let document =
            document([(&[1000, 10][..rounds], 10), (&[900, 800][..rounds], 0), (&[400, 2][..rounds], 0)]);
        let (rule, levels, text) = answered(&document);
        assert_eq!((rule, levels), ("cheapest", vec!["repeatable read".to_owned()]), "{text}");
        assert!(text.contains("in too few rounds for an interval"), "{text}");
        assert!(!unsettled(&document));
        let shown = render(&document, 100);
        for absurd in [" to +", "within 5 %", "Precision: diff", "≈"] {
            assert!(!shown.contains(absurd), "{absurd}: {shown}");
        }
    }
    let close = document([(&[1000], 10), (&[900], 0), (&[890], 0)]);
    let (rule, levels, text) = answered(&close);
    assert_eq!((rule, levels.len()), ("not settled", 2), "{text}");
    assert!(text.contains("from too few rounds to be sure"), "{text}");
    let clean = document([(&[1000], 0), (&[1300], 0), (&[400], 0)]);
    assert_eq!(answered(&clean).1, ["read committed"], "a round says nothing against what is enough");
}

/// A level weaker than one that did damage was lucky.
#[test]
fn a_level_weaker_than_a_damaged_one_is_not_recommended() {
    let document = document([(STEADY, 0), (STEADY, 10), (HALF, 0)]);
    assert_eq!(answered(&document).1, ["serializable"]);
    let why = "Read committed: no anomaly was found, but repeatable read, which is stronger, had some, and nothing shows \
               that they can't happen here.";
    assert!(reasons(&document).contains(why), "{}", reasons(&document));
}

/// Unless it is shown that the stronger one only goes wrong because its snapshots are older than its locks.
#[test]
fn a_level_that_locks_before_it_reads_is_recommended() {
    let of = |rows: [Row<'_>; 3], waits: bool, scripts: &[&str], untried: &[&str]| {
        let mut document = document(rows);
        let steps = vec![TriedStep {
            transaction: 2,
            sql: "SELECT pg_advisory_xact_lock(1);".to_owned(),
            line: None,
            answer: vec![if waits { "waits" } else { "(1 row)" }.to_owned()],
        }];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let outcome =
            WrongOutcome { damage: true, scripts: names(scripts), steps, ..WrongOutcome::default() };
        for (index, cell) in document.cells.iter_mut().enumerate() {
            let found = if index == 1 { vec![outcome.clone()] } else { Vec::new() };
            for anomaly in cell.rounds.iter_mut().filter_map(|round| round.verdict.as_mut()) {
                for found in &mut anomaly.anomalies {
                    found.statements = vec![vec!["add.sql:4: SELECT 1".to_owned()]];
                }
            }
            cell.tried =
                Some(Tried { interleavings: 40, found, untried: names(untried), ..Tried::default() });
        }
        document
    };
    let rows = [(STEADY, 0), (STEADY, 10), (HALF, 0)];
    let locked = of(rows, true, &["add.sql", "add.sql"], &[]);
    let (rule, levels, text) = answered(&locked);
    assert_eq!((rule, levels), ("cheapest", vec!["read committed".to_owned()]), "{text}");
    let why = "Repeatable read is worse than read committed here: after it has waited for a lock, a transaction \
               still reads its old snapshot.";
    assert!(text.contains(why), "{text}");
    assert!(!reasons(&locked).contains("nothing shows"), "{}", reasons(&locked));
    let triples = of(rows, true, &["add.sql", "add.sql"], &["add.sql × add.sql × other.sql"]);
    assert_eq!(answered(&triples).1, ["read committed"], "three at a time needn't have been tried");
    for (what, lucky) in [
        ("nothing waited", of(rows, false, &["add.sql", "add.sql"], &[])),
        ("the history has anomalies of another script", of(rows, true, &["other.sql", "other.sql"], &[])),
        ("not every pair was tried", of(rows, true, &["add.sql", "add.sql"], &["add.sql × other.sql"])),
        (
            "what goes wrong above wasn't tried",
            of(rows, true, &["add.sql", "add.sql", "add.sql"], &["add.sql × add.sql × add.sql"]),
        ),
        (
            "serializable is wrong, too",
            of([rows[0], rows[1], (HALF, 10)], true, &["add.sql", "add.sql"], &[]),
        ),
    ] {
        assert_ne!(answered(&lucky).1, ["read committed"], "{what}");
    }
}

/// Nothing that tells the levels apart, and statements that could matter weren't seen.
#[test]
fn what_was_not_seen_is_not_called_safe() {
    let unseen = |verdict: &mut VerdictSummary| {
        verdict.unseen = vec!["reserve.sql:4 decides an INSERT".to_owned()];
    };
    let clean = known(document([(STEADY, 0), (HALF, 0), (HALF, 0)]), unseen);
    let (rule, levels, text) = answered(&clean);
    assert_eq!((rule, levels.len()), ("not seen", 0), "{text}");
    let first = "No level can be called safe here: reserve.sql:4 decides an INSERT and wasn't tracked.";
    assert!(text.starts_with(first), "{text}");
    // A history tells the levels apart.
    let told = known(document([(STEADY, 9), (STEADY, 0), (HALF, 0)]), unseen);
    let (rule, levels, text) = answered(&told);
    assert_eq!((rule, levels), ("cheapest", vec!["repeatable read".to_owned()]), "{text}");
    let seen = "Not covered by this: reserve.sql:4 decides an INSERT and wasn't tracked.";
    assert!(text.ends_with(seen), "{text}");
    // A condition does.
    let told = known(violated(document([(STEADY, 0), (STEADY, 0), (HALF, 0)]), &[0, 1]), unseen);
    let (rule, levels, text) = answered(&told);
    assert_eq!((rule, levels), ("cheapest", vec!["serializable".to_owned()]), "{text}");
    assert!(text.starts_with("Use serializable: the condition held, and it costs 50 %"), "{text}");
    let missed = "Read committed: the history looks serializable, so it missed what the tables show: reserve.sql:4 \
                  decides an INSERT and wasn't tracked.";
    assert!(reasons(&told).contains(missed), "{}", reasons(&told));
}

/// Trying scripts against each other shows what the history doesn't, and covers what it can't see.
#[test]
fn what_trying_shows_counts() {
    let trying = |wrong: [bool; 3]| {
        let mut document = known(document([(STEADY, 0), (STEADY, 0), (HALF, 0)]), |verdict| {
            verdict.unseen = vec!["reserve.sql:4 decides an INSERT".to_owned()];
        });
        for (cell, wrong) in document.cells.iter_mut().zip(wrong) {
            let scripts = vec!["a.sql".to_owned(), "b.sql".to_owned()];
            let outcome = WrongOutcome { damage: true, scripts, ..WrongOutcome::default() };
            let found = if wrong { vec![outcome] } else { Vec::new() };
            cell.tried = Some(Tried { interleavings: 40, complete: true, found, ..Tried::default() });
        }
        document
    };
    let (rule, levels, text) = answered(&trying([true, true, false]));
    assert_eq!((rule, levels), ("cheapest", vec!["serializable".to_owned()]), "{text}");
    let shown = "Read committed is unsafe, as trying b.sql within a.sql showed: the data end as no serial order \
                 leaves them.";
    assert!(text.contains(shown), "{text}");
    let (rule, levels, text) = answered(&trying([false, false, false]));
    assert_eq!((rule, levels), ("enough", vec!["read committed".to_owned()]), "{text}");
    assert!(text.starts_with("Read committed was right in all tests here: no anomaly found in "), "{text}");
    assert!(text.contains(" transactions and 40 interleavings."), "{text}");
    let (rule, levels, text) = answered(&trying([true, true, true]));
    assert_eq!((rule, levels.len()), ("none safe", 0), "{text}");
}

/// Where no history can be recorded, trying tells the levels apart.
#[test]
fn what_trying_shows_counts_without_a_history() {
    let trying = |wrong: [bool; 3], untried: &[&str]| {
        let mut document = document([(STEADY, 0), (STEADY, 0), (HALF, 0)]);
        for (cell, wrong) in document.cells.iter_mut().zip(wrong) {
            cell.rounds.iter_mut().for_each(|round| round.verdict = None);
            let outcome = WrongOutcome { damage: true, ..WrongOutcome::default() };
            let found = if wrong { vec![outcome] } else { Vec::new() };
            let untried = untried.iter().map(|name| (*name).to_owned()).collect();
            cell.tried = Some(Tried { interleavings: 40, found, untried, ..Tried::default() });
        }
        summarise(&mut document);
        document
    };
    let (rule, levels, text) = answered(&trying([true, true, false], &["a.sql × a.sql"]));
    assert_eq!((rule, levels), ("cheapest", vec!["serializable".to_owned()]), "{text}");
    assert!(text.starts_with("Use serializable: nothing was found in 40 interleavings"), "{text}");
    let (rule, levels, text) = answered(&trying([false, false, false], &[]));
    assert_eq!((rule, levels), ("enough", vec!["read committed".to_owned()]), "{text}");
    let (rule, levels, text) = answered(&trying([false, false, false], &["a.sql × a.sql"]));
    assert_eq!((rule, levels.len()), ("unchecked", 0), "{text}");
}

/// Nothing protects what is read in one transaction and written in another.
#[test]
fn a_value_carried_between_transactions_is_never_safe() {
    let carried = known(document([(STEADY, 0), (STEADY, 0), (STEADY, 0)]), |verdict| {
        verdict.carried = vec!["edit.sql:4 writes what edit.sql:3 read in another transaction".to_owned()];
    });
    let (rule, levels, text) = answered(&carried);
    assert_eq!((rule, levels.len()), ("carried", 0));
    assert!(
        text.contains("edit.sql:4 writes what edit.sql:3 read in another transaction, which no level"),
        "{text}"
    );
    assert!(text.contains("one transaction block"), "{text}");
}

/// A condition of the user's that breaks even at serializable has three possible causes.
#[test]
fn a_condition_that_no_level_keeps_may_rest_on_what_none_isolates() {
    let (rule, levels, text) =
        answered(&violated(document([(STEADY, 0), (STEADY, 0), (HALF, 0)]), &[0, 1, 2]));
    assert_eq!((rule, levels.len()), ("condition", 0));
    assert!(text.contains("values kept between transactions, sequences, locks released early"), "{text}");
}

/// What transactions read and didn't use is no damage.
#[test]
fn harmless_reads_are_no_reason_for_a_stronger_level() {
    let mut document = document([(STEADY, 0), (HALF, 0), (HALF, 0)]);
    document.cells[0].summary.verdict.as_mut().unwrap().harmless = 17;
    assert_eq!(answered(&document).1, ["read committed"]);
    let said = "17 transactions at read committed read a row that another one then changed, but didn't use what was \
                read: no damage, and no reason for a stronger level.";
    assert!(reasons(&document).contains(said), "{}", reasons(&document));
}

/// Where no transaction met another one nothing could show.
#[test]
fn where_nothing_was_shared_that_is_said() {
    let document = known(document([(STEADY, 0), (HALF, 0), (HALF, 0)]), |it| it.nothing_shared = true);
    let (_, levels, text) = answered(&document);
    assert_eq!(levels, ["read committed"]);
    let found = "no transaction read or overwrote what another one wrote";
    assert!(text.starts_with(&format!("Read committed was right in all tests here: {found}.")), "{text}");
    assert!(reasons(&document).contains("so no anomaly was possible."), "{}", reasons(&document));
}

/// What the answer rests on is true of every row.
#[test]
fn the_basis_is_that_of_every_row() {
    let basis = |document: &Document| answer(document).basis.unwrap();
    let clean = basis(&document([(STEADY, 0), (HALF, 0), (HALF, 0)]));
    assert!(clean.starts_with("Based on 6 rounds and "), "{clean}");
    assert!(!clean.contains("Anomalies are proven"), "{clean}");
    let mut uneven = document([(STEADY, 9), (HALF, 0), (HALF, 0)]);
    uneven.cells[0].rounds.truncate(1);
    uneven.cells[0].rounds[0].complete = false;
    summarise(&mut uneven);
    let uneven = basis(&uneven);
    assert!(uneven.starts_with("Based on 0 to 6 complete rounds of each row"), "{uneven}");
    assert!(uneven.contains("Anomalies are proven"), "{uneven}");
}

/// A summarised document's answer is the one that reports show.
#[test]
fn every_document_has_its_answer() {
    for (kind, document) in examples::all() {
        let given = document.answer.as_ref().unwrap();
        assert_eq!(given.headline, answer(&document).text(), "{kind}");
        assert!(document.complete || given.recommended.is_empty(), "{kind}");
        if given.combinations.is_empty() {
            assert_eq!(given.recommended, names(&document), "{kind}");
        }
    }
}

/// The answer is in the document for programs, too.
#[test]
fn the_document_has_the_answer() {
    let document = document([(STEADY, 9), (STEADY, 0), (WILD, 0)]);
    let given = document.answer.as_ref().unwrap();
    assert_eq!(given.recommended, ["repeatable read", "serializable"]);
    assert_eq!(given.rule, "not settled");
    assert_eq!(given.headline, answer(&document).text());
    let safety: Vec<_> = given.levels.iter().map(|level| (level.level.as_str(), level.safety)).collect();
    let safe = LevelSafety::Safe;
    let expected =
        [("read committed", LevelSafety::Unsafe), ("repeatable read", safe), ("serializable", safe)];
    assert_eq!(safety, expected);
    assert_eq!(given.levels[0].witness.len(), 2);
    let json: serde_json::Value = serde_json::from_str(&document.to_json()).unwrap();
    assert_eq!(json["answer"]["recommended"][0], "repeatable read");
    assert_eq!(json["answer"]["levels"][0]["safety"], "unsafe");
    assert!(json["answer"]["levels"][0]["place"].is_null());
}
