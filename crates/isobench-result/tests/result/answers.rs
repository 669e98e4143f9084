//! The answer: the rules of the recommendation, each with an example; and that no answer
//! contradicts its table.

use isobench_isolation::Level;
use isobench_result::{Answer, Cell, Document, Observation, answer, recommended, summarise};

use crate::examples::{self, example};

/// The rule that decides an example, the recommended row, and pieces of the headline.
const KINDS: [(&str, &str, Option<&str>, &[&str]); 20] = [
    ("nothing", "nothing measured", None, &["Nothing was measured."]),
    (
        "interrupted",
        "incomplete",
        None,
        &["No level is recommended, because the comparison is INCOMPLETE: interrupted by Ctrl-C"],
    ),
    ("incomplete", "incomplete", None, &["INCOMPLETE: serializable, 8 clients could not be measured"]),
    (
        "faults",
        "durability",
        None,
        &[
            "Acknowledged commits were LOST that the settings promise to keep: synchronous_commit remote_write",
            "Acknowledged commits were lost, which the settings permit: synchronous_commit off",
            "Durability is unknown: synchronous_commit on",
        ],
    ),
    (
        "level-mismatch",
        "mislabelled",
        None,
        &["No level is recommended: the server ran serializable instead of read committed and repeatable"],
    ),
    (
        "contradicted",
        "contradicted",
        None,
        &["No level is recommended: serializable can't be what ran: in 1 of"],
    ),
    (
        "broken-promise",
        "broken promise",
        None,
        &["serializable BROKE a promise: the recorded history has an anomaly"],
    ),
    (
        "violated",
        "broken promise",
        None,
        &["read committed BROKE a promise: the tables were WRONG afterwards."],
    ),
    (
        "withheld",
        "withheld",
        None,
        &["the verdict on repeatable read is withheld: the history is not complete"],
    ),
    ("single-run", "alone", None, &["only read committed was measured. Nothing was checked."]),
    ("one-client", "one client", None, &["a single client runs one transaction after the other"]),
    (
        "three-levels",
        "unchecked",
        None,
        &[
            "No level is recommended: anomalies weren't checked.",
            "Repeatable read costs 51 %",
            "against read committed; serializable costs 59 %",
        ],
    ),
    ("strategies", "unchecked", None, &["anomalies weren't checked"]),
    (
        "unsafe",
        "none safe",
        None,
        &[
            "none of them was safe here; add serializable.",
            "Read committed lost 630 updates; in all, 1 of every 9 transactions had an anomaly. Repeatable read let \
             write skew through in 1 of every 300 transactions.",
        ],
    ),
    (
        "noise",
        "enough",
        Some("read committed"),
        &[
            "Read committed was right in all tests here: no anomaly found in 6,300 transactions.",
            "The stronger levels prevented nothing more here: repeatable read shows no measurable difference to read \
             committed (−18 % to +21 %)",
            "More rounds are needed to settle the cost; --resolve 10% takes about",
        ],
    ),
    (
        "safe",
        "enough",
        Some("read committed"),
        &[
            "Read committed was right in all tests here: no anomaly found in 6,300 transactions. The stronger levels prevented \
             nothing more here: repeatable read costs 51 % (49 to 53 %) against read committed and retried 66 % of \
             its attempts; serializable costs 59 % against read committed and retried 71 % of its attempts.",
        ],
    ),
    (
        "checked",
        "cheapest",
        Some("serializable"),
        &[
            "Use serializable: no anomaly found in 6,300 transactions, and it costs 59 %",
            "against read committed. Read committed lost 630 updates; in all, 1 of every 9 transactions had an anomaly",
            "Repeatable read let write skew through in 1 of every 300 transactions.",
        ],
    ),
    (
        "checked-strategies",
        "cheapest",
        Some("read committed with for-update"),
        &[
            "Use read committed with for-update: no anomaly found in 6,300 transactions, and it commits 2.53 times \
             as much (2.43 to 2.63) as serializable with retry.",
            "Read committed with retry lost updates in 1 of every 5 transactions.",
        ],
    ),
    ("experiment", "unchecked", None, &["anomalies weren't checked"]),
    ("sweep", "unchecked", None, &["Serializable costs 59 %"]),
];

/// The reasons of an answer in words.
fn reasons(answer: &Answer) -> Vec<&str> {
    answer.reasons.iter().map(|reason| reason.text.as_str()).collect()
}

fn name(cell: &Cell) -> String {
    cell.strategy.as_ref().map_or_else(|| cell.level.name(), |it| format!("{} with {it}", cell.level.name()))
}

#[test]
fn each_rule_has_an_example() {
    for (kind, rule, named, pieces) in KINDS {
        let document = example(kind);
        let found = answer(&document);
        assert_eq!(found.rule, rule, "{kind}: {found:#?}");
        let names: Vec<String> = recommended(&document).into_iter().map(name).collect();
        assert_eq!(names, named.into_iter().collect::<Vec<_>>(), "{kind}");
        for piece in pieces {
            assert!(found.text().contains(piece), "{kind}: {piece}\n{}", found.text());
        }
    }
}

#[test]
fn the_manual_lists_the_rules_in_their_order() {
    let manual = include_str!("../../../../docs/guide/reading-a-report.md");
    let mut listed = manual.lines().filter_map(|line| line.strip_prefix("| *")?.split_once('*'));
    let listed: Vec<&str> = listed.by_ref().map(|(name, _)| name).collect();
    assert_eq!(listed, isobench_result::answer_rules());
    let shown: Vec<&str> = KINDS.iter().map(|(_, rule, ..)| *rule).collect();
    // In tests of their own, here and in rules.rs.
    let others =
        ["nothing committed", "carried", "condition", "not seen", "stronger for nothing", "not settled"];
    assert!(listed.iter().all(|rule| others.contains(rule) || shown.contains(rule)), "{listed:?}");
}

/// What brands a row in the table speaks against recommending it.
fn is_branded(cell: &Cell) -> bool {
    let summary = &cell.summary;
    let verdict = summary.verdict.as_ref();
    cell.level.differs()
        || cell.swallowed() > 0
        || !cell.wrong_outcomes().is_empty()
        || summary.violations > 0
        || summary.invariants_held == Some(false)
        || verdict.is_some_and(|it| it.anomalies > 0 || it.kept == Some(false) || !it.withheld.is_empty())
        || summary.tps.mean.is_none_or(|mean| mean <= 0.0)
}

/// True if a row without any brand commits measurably more than another one in the same rounds.
fn is_measurably_faster(cell: &Cell, than: &Cell) -> bool {
    let ratio = than.summary.ratio.as_ref();
    !is_branded(cell)
        && cell.strategy() == than.strategy()
        && ratio.is_some_and(|ratio| ratio.to == cell.level.name() && ratio.significant && ratio.mean < 1.0)
}

/// PostgreSQL's gaps at serializable are named beside what may be one of them, and beside nothing else.
#[test]
fn a_known_limitation_is_named_beside_what_may_be_one() {
    let mut document = example("broken-promise");
    let named =
        |document: &Document| answer(document).text().contains("PostgreSQL itself is known to permit");
    assert!(named(&document));
    let summary = |document: &mut Document, models: &[&str]| {
        let verdict = document.cells[2].summary.verdict.as_mut().expect("a verdict");
        verdict.models = models.iter().map(|&model| model.to_owned()).collect();
    };
    summary(&mut document, &["repeatable read (PL-2.99)"]);
    assert!(!named(&document), "snapshot isolation is contradicted, too");
    summary(&mut document, &[]);
    assert!(!named(&document));
    let mut document = example("broken-promise");
    document.server.product = "CockroachDB".to_owned();
    assert!(!named(&document));
    assert!(!named(&example("violated")), "the tables are wrong, and no history says how");
}

#[test]
fn damage_is_given_in_numbers_beside_the_answer() {
    let found = answer(&example("unsafe"));
    assert_eq!(
        reasons(&found)[0],
        "Read committed: 729 of 6,300 transactions had an anomaly: 630 lost updates and 99 read skews; afterwards \
         \"every shift has a doctor on call\" didn't hold (12 shifts have none)."
    );
}

#[test]
fn no_answer_contradicts_its_table() {
    for (kind, document) in examples::all() {
        let found = recommended(&document);
        assert!(document.complete || found.is_empty(), "{kind}");
        for best in found {
            assert!(!is_branded(best), "{kind}: {}", name(best));
            let others = document.cells.iter().filter(|other| other.clients == best.clients);
            let faster = others.filter(|other| is_measurably_faster(other, best));
            assert_eq!(faster.map(name).collect::<Vec<_>>(), [""; 0], "{kind}: {}", name(best));
        }
    }
}

#[test]
fn where_nothing_commits_nothing_is_recommended() {
    let mut document = example("checked");
    for cell in &mut document.cells {
        cell.summary.tps.mean = Some(0.0);
    }
    let found = answer(&document);
    assert_eq!((found.rule, recommended(&document).len()), ("nothing committed", 0), "{found:?}");
}

/// However fast a branded row is.
#[test]
fn speed_doesnt_make_up_for_damage() {
    let mut document = example("checked-strategies");
    for cell in document.cells.iter_mut().filter(|cell| is_branded(cell)) {
        for round in &mut cell.rounds {
            round.transactions.committed *= 1000;
        }
    }
    summarise(&mut document);
    let found = answer(&document);
    assert!(found.text().starts_with("Use read committed with for-update"), "{found:?}");
    assert!(reasons(&found).join(" ").contains("swallow LOST WORK"), "{found:?}");
}

#[test]
fn conditions_alone_tell_levels_apart_where_one_is_violated() {
    let mut document = example("three-levels");
    for round in &mut document.cells[0].rounds {
        round.invariants[0].held = Some(false);
        round.invariants[0].violations = Some(3);
        round.invariants[0].promised = false;
    }
    summarise(&mut document);
    let found = answer(&document).text();
    assert!(
        found.starts_with("Use repeatable read: every condition on the tables held, and it costs"),
        "{found}"
    );
    assert!(found.contains("Read committed left the tables wrong: \"sums agree\" didn't hold"), "{found}");
}

/// Tests that found nothing prove nothing.
#[test]
fn a_level_is_called_enough_only_if_it_is_proved() {
    let said = |proved: &[Level]| {
        let mut document = example("safe");
        let workload = document.cells[0].workload.clone();
        let proved = proved.to_vec();
        document.observations = vec![Observation { workload, proved, ..Observation::default() }];
        summarise(&mut document);
        answer(&document).text()
    };
    let proved = said(&[Level::ReadCommitted, Level::Serializable]);
    assert!(proved.starts_with("Read committed is enough here: no anomaly found"), "{proved}");
    let tested = said(&[Level::Serializable]);
    assert!(tested.starts_with("Read committed was right in all tests here: no anomaly found"), "{tested}");
}

/// An answer for each combination of the other factors.
#[test]
fn combinations_are_answered_each_for_itself() {
    let twice = |one: &Document, other: &Document| {
        let mut document = one.clone();
        let more = other.cells.iter().map(|cell| Cell { clients: 64, ..cell.clone() });
        document.cells.extend(more);
        document.plan.clients = Some(vec![8, 64]);
        summarise(&mut document);
        document
    };
    let (safe, checked) = (example("safe"), example("checked"));
    let found = answer(&twice(&checked, &checked));
    assert_eq!(found.text(), "Use serializable, in all 2 combinations.");
    let found = answer(&twice(&safe, &checked));
    assert_eq!(found.text(), "Which level to use differs between the 2 combinations.");
    let said = reasons(&found).join("\n");
    assert!(said.contains("8 clients: Read committed was right in all tests here"), "{said}");
    assert!(said.contains("64 clients: Use serializable"), "{said}");
    let found = answer(&example("many-factors"));
    assert_eq!(found.text(), "No level is recommended in any of the 4 combinations.");
}
