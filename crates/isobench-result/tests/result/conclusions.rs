//! The conclusions from the rounds: noise, precision, flags. Not here: the answer (`answers.rs`).

use isobench_isolation::Level;
use isobench_plan::Share;
use isobench_result::{
    Answer, ClientLoad, Document, FlagKind, IntervalSource, Observation, Round, Series, WaitShare, Warmup,
    answer, resolution, summarise,
};

use crate::examples::{self, example};

fn summarised(mut document: Document) -> Document {
    summarise(&mut document);
    document
}

/// The reasons of an answer in words.
fn reasons(answer: &Answer) -> Vec<&str> {
    answer.reasons.iter().map(|reason| reason.text.as_str()).collect()
}

#[test]
fn a_wait_explains_what_it_takes_more_than_at_the_level_of_the_answer() {
    let mut document = example("three-levels");
    let wait = |event: &str, share| WaitShare { kind: "Lock".to_owned(), event: event.to_owned(), share };
    document.cells[0].summary.waits = vec![wait("transactionid", 0.5), wait("tuple", 0.125)];
    document.cells[1].summary.waits = vec![wait("transactionid", 0.52), wait("tuple", 0.25)];
    document.cells[2].summary.waits = vec![wait("transactionid", 0.4), wait("tuple", 0.15)];
    let found = answer(&document);
    let reasons = reasons(&found);
    assert!(
        reasons[0].contains("waited for Lock/tuple in 25.0 % of the samples (read committed: 12.5 %)"),
        "{reasons:?}"
    );
    assert!(reasons[1].starts_with("Serializable") && !reasons[1].contains("waited for"), "{reasons:?}");
}

/// Theory knows no conditions of users and no values of sequences.
#[test]
fn what_is_shown_to_be_unsafe_is_not_proved() {
    let document = example("three-levels");
    let levels: Vec<Level> =
        document.cells.iter().filter_map(|cell| cell.level.asked().and_then(|asked| asked.level())).collect();
    let proved_of = |document: Document| summarised(document).observations[0].proved.clone();
    let with = |level: Level| {
        let mut document = document.clone();
        let observed = Observation { workload: document.cells[0].workload.clone(), ..Observation::default() };
        document.observations = vec![Observation { proved: vec![level], ..observed }];
        document
    };
    assert_eq!(proved_of(with(levels[1])), [levels[1]]);
    let mut broken = with(levels[1]);
    let invariant = &mut broken.cells[1].rounds[0].invariants[0];
    (invariant.held, invariant.violations) = (Some(false), Some(3));
    assert_eq!(proved_of(broken), []);
}

/// A doubt in one round leaves unknown what the others mean; a history that is missing takes
/// nothing back.
#[test]
fn a_withheld_verdict_accuses_nobody() {
    let withheld = example("withheld");
    assert!(!withheld.has_broken_promise());
    assert!(withheld.withheld().is_some());
    let verdicts: Vec<_> =
        withheld.cells.iter().map(|cell| cell.summary.verdict.clone().expect("a verdict")).collect();
    assert_eq!(verdicts.iter().map(|verdict| verdict.kept).collect::<Vec<_>>(), [Some(true), None, None]);
    for verdict in &verdicts[1..] {
        assert!(verdict.models.is_empty() && !verdict.withheld.is_empty(), "{verdict:?}");
    }
    let found = answer(&withheld).text();
    assert!(
        found.starts_with("No level is recommended: the verdict on repeatable read is withheld"),
        "{found}"
    );
    let mut cut = example("broken-promise");
    examples::cut(cut.cells[2].rounds[0].verdict.as_mut().expect("a verdict"));
    summarise(&mut cut);
    assert!(cut.has_broken_promise());
    let verdict = cut.cells[2].summary.verdict.clone().expect("a verdict");
    assert_eq!((verdict.kept, verdict.withheld.len()), (Some(false), 1));
}

#[test]
fn strategies_are_compared_at_the_same_level_and_in_the_same_rounds() {
    let mut document = example("strategies");
    let ratio = |document: &Document, level: &str, strategy: &str| {
        let cells = document.cells.iter();
        let mut found = cells.filter(|cell| cell.level.name() == level && cell.strategy() == strategy);
        found.next().expect("the cell exists").summary.strategy_ratio.clone()
    };
    let own = ratio(&document, "serializable", "retry").expect("the first one is compared with itself");
    assert_eq!((own.to.as_str(), own.mean), ("retry", 1.0));
    let other = ratio(&document, "serializable", "for-update").expect("it is compared");
    // 1900 against 900, and in each round 1 % more of a hundred.
    assert!((other.mean - 1900.0 / 900.0 * 1.02).abs() < 0.01 && other.significant, "{other:?}");
    // A strategy that lost its rounds has nothing to be compared by.
    for cell in document.cells.iter_mut().filter(|cell| cell.strategy() == "retry") {
        cell.rounds.clear();
    }
    let document = summarised(document);
    assert_eq!(ratio(&document, "serializable", "for-update"), None);
    assert!(example("three-levels").cells.iter().all(|cell| cell.summary.strategy_ratio.is_none()));
}

#[test]
fn what_equal_cells_differ_by_is_no_difference() {
    let mut document = example("observed");
    // Make repeatable read 2 % slower than read committed, in every round.
    let first = document.cells[0].rounds.clone();
    for (round, reference) in document.cells[2].rounds.iter_mut().zip(&first) {
        round.transactions.committed = reference.transactions.committed * 98 / 100;
    }
    let with_noise = summarised(document.clone());
    let ratio = with_noise.cells[2].summary.ratio.as_ref().expect("a ratio");
    assert!(ratio.high < Some(1.0) && !ratio.significant, "{ratio:?}");
    assert!(ratio.noise > Some(0.02), "{ratio:?}");
    // Without the A/A cell the same rounds tell the two apart.
    document.cells.remove(1);
    let without = summarised(document);
    let ratio = without.cells[1].summary.ratio.as_ref().expect("a ratio");
    assert!(ratio.significant && ratio.noise.is_none(), "{ratio:?}");
}

#[test]
fn the_least_known_ratio_decides_the_precision() {
    let document = example("three-levels");
    let wide = |cell: &isobench_result::Cell| {
        let ratio = cell.summary.ratio.as_ref()?;
        Some((ratio.high? / ratio.low?).sqrt() - 1.0)
    };
    let widest = document.cells.iter().filter_map(wide).fold(0.0, f64::max);
    let known = resolution(&document, 0.01);
    assert!((known.reached.expect("intervals") - widest).abs() < 1e-9, "{known:?} {widest}");
    assert!(known.more_rounds > Some(0));
    // Three rounds are never enough to stop, however wide one may be.
    assert!(resolution(&document, 0.99).more_rounds > Some(0));
}

#[test]
fn ratios_of_a_plan_with_a_resolution_are_those_that_end_it() {
    let mut document = example("three-levels");
    document.plan.rounds = Some(9);
    for cell in &mut document.cells {
        let measured = cell.rounds.clone();
        for again in 1..3 {
            let renumbered =
                measured.iter().map(|round| Round { round: round.round + 3 * again, ..round.clone() });
            cell.rounds.extend(renumbered);
        }
    }
    let half_width = |document: &Document, cell: usize| {
        let ratio = document.cells[cell].summary.ratio.as_ref().expect("a ratio");
        (ratio.high.expect("an end") / ratio.low.expect("an end")).ln() / 2.0
    };
    let planned = summarised(document.clone());
    document.plan.resolve = Some(Share(0.001));
    let resolving = summarised(document);
    let widths = [1, 2].map(|cell| half_width(&resolving, cell));
    for (cell, width) in [1, 2].into_iter().zip(widths) {
        let factor = width / half_width(&planned, cell);
        assert!((factor - 11.0 / 9.0).abs() < 1e-9, "nine rounds: {factor}");
    }
    // It ends when what is shown is narrow enough.
    let reached = widths[0].max(widths[1]).exp_m1();
    assert!((resolution(&resolving, 0.001).reached.expect("intervals") - reached).abs() < 1e-9);
    assert_eq!(resolution(&resolving, reached + 1e-9).more_rounds, Some(0));
    assert!(resolution(&resolving, reached - 1e-9).more_rounds > Some(0));
}

#[test]
fn a_single_round_has_an_interval_from_its_course() {
    let mut document = example("single-round");
    assert_eq!(document.cells[0].summary.tps.low, None);
    for cell in &mut document.cells {
        let round = &mut cell.rounds[0];
        let each = round.transactions.committed / 100;
        let committed: Vec<u64> = (0..100).map(|bin| each + bin * bin * 7919 % 11).collect();
        round.series = Some(Series { bin_s: round.seconds / 100.0, committed, ..Series::default() });
    }
    let document = summarised(document);
    let tps = document.cells[0].summary.tps;
    assert_eq!(tps.source, IntervalSource::Batches);
    assert!(tps.low < tps.mean && tps.mean < tps.high, "{tps:?}");
    assert!(document.cells[0].summary.effective_samples > Some(10.0));
    assert!(
        !document.cells[0].summary.ratio.as_ref().expect("a ratio").significant,
        "one round proves nothing"
    );
}

#[test]
fn flags_are_raised_for_what_most_rounds_show() {
    let flags = |change: &dyn Fn(&mut Document)| {
        let mut document = example("observed");
        change(&mut document);
        let document = summarised(document);
        document.cells[0].summary.flags.iter().map(|flag| flag.kind).collect::<Vec<_>>()
    };
    assert_eq!(flags(&|_| {}), []);
    let busy = |document: &mut Document| {
        for round in &mut document.cells[0].rounds {
            round.client = Some(ClientLoad { busiest: 0.97, share_of_cores: 0.5, ..ClientLoad::default() });
        }
    };
    assert_eq!(flags(&busy), [FlagKind::ClientBound, FlagKind::ClientShare]);
    let idle = |document: &mut Document| {
        busy(document);
        document.cells[0].rounds.iter_mut().for_each(|round| round.transactions.committed = 0);
    };
    let of_load = [FlagKind::ClientBound, FlagKind::ClientShare];
    assert!(flags(&idle).iter().all(|kind| !of_load.contains(kind)), "nothing was done");
    let cold = |document: &mut Document| {
        for round in &mut document.cells[0].rounds {
            round.warmup = Some(Warmup { steady: Some(false), ..Warmup::default() });
        }
    };
    assert_eq!(flags(&cold), [FlagKind::NotWarm]);
    let other = |document: &mut Document| {
        let server = document.cells[0].rounds[1].server.as_mut().expect("observed");
        server.comparison[0].agrees = false;
    };
    assert_eq!(flags(&other), [FlagKind::CountsDiffer]);
    let slow = |document: &mut Document| {
        document.cells[0].rate = Some(1e6);
    };
    assert!(flags(&slow).contains(&FlagKind::BehindSchedule));
}

#[test]
fn a_rate_that_falls_is_told() {
    let mut document = example("observed");
    for round in &mut document.cells[0].rounds {
        let series = round.series.as_mut().expect("a series");
        let bins = series.committed.len() as u64;
        series.committed = (0..bins).map(|bin| 1000 - bin * 10 + bin * 7919 % 7).collect();
    }
    let document = summarised(document);
    let flags = &document.cells[0].summary.flags;
    let drift = flags.iter().find(|flag| flag.kind == FlagKind::Drift).expect("a flag");
    assert!(drift.text.contains("the rate fell from start to end"), "{}", drift.text);
}

#[test]
fn there_is_an_answer_to_everything() {
    for (kind, document) in examples::all() {
        let found = answer(&document);
        assert!(found.text().ends_with('.'), "{kind}: {found:?}");
        for sentence in reasons(&found).into_iter().chain([found.text().as_str()]) {
            assert!(!sentence.contains("NaN") && !sentence.contains("inf "), "{kind}: {sentence}");
            assert!(!sentence.contains(".."), "{kind}: {sentence}");
        }
    }
}
