//! Renders a report as text: the verdict first, then the findings with a proof of each, then the
//! limits of the check.
//!
//! Descriptions of single dependencies (`context.rs`, `explain.rs`) and drawings (`graph.rs`) are
//! elsewhere.

use std::fmt::{self, Write as _};

use super::grouped::grouped;
use super::report::{
    Blind, Broken, Cleared, Count, Finding, LevelCount, LostBetween, MixedReport, Report, Witness,
    WrittenBack,
};
use crate::model::{Guarantee, Model, Order};

/// The report as plain text of several paragraphs, ending with a line break.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    for line in verdict(report) {
        text += &line;
        text.push('\n');
    }
    if !report.findings.is_empty() {
        text.push('\n');
        text += &table(report);
        let mixed = report.mixed.iter().flat_map(|mixed| &mixed.broken);
        for broken in mixed.clone() {
            text.push('\n');
            text += &broken_promise(broken);
        }
        let shown: Vec<&Witness> = mixed.map(|broken| &broken.finding.witness).collect();
        for finding in report.findings.iter().filter(|finding| !shown.contains(&&finding.witness)) {
            text.push('\n');
            text += &proof(finding);
            if report.mixed.as_ref().is_some_and(|mixed| is_permitted(mixed, finding)) {
                text += "No transaction's level promises to prevent this.\n";
            }
        }
    }

    if report.harmless > 0 {
        let _ = writeln!(text, "\n{}", harmless(report.harmless));
    }
    if let Some(lost) = &report.lost_between {
        let _ = writeln!(text, "\n{}", between(lost));
        text += &proof(&lost.example);
    }
    if let Some(written) = &report.written_back {
        let _ = writeln!(text, "\n{}", back(written));
        for one in &written.statements {
            let _ = writeln!(text, "- {}: {}", one.columns.join(", "), cut(&one.statement));
        }
    }
    if let Some(cleared) = report.cleared.as_ref().filter(|cleared| cleared.dark > 0) {
        let _ = writeln!(text, "\n{}.", self::cleared(cleared));
    }
    text.push('\n');
    text += &examined(report);
    if !report.blind.is_empty() {
        text += "\nWhat this check could not see:\n";
        for blind in &report.blind {
            let _ = writeln!(text, "- {blind}");
        }
    }
    text
}

/// What snapshots say of transactions that may have read more than they showed, a sentence without its
/// full stop.
fn cleared(cleared: &Cleared) -> String {
    let Cleared { dark, why_not, .. } = cleared;
    let dark = grouped(*dark);
    match (why_not, cleared.open()) {
        (Some(why), _) => {
            format!("What {dark} transactions may have read without showing it is open: {why}")
        }
        (None, 0) => format!(
            "{dark} transactions may have read more than they showed. By their snapshots none of them lies on a cycle, \
             whatever they read"
        ),
        (None, open) => format!(
            "{dark} transactions may have read more than they showed. By their snapshots {} of them lie on no cycle, \
             whatever they read. {} may; nothing is claimed of them",
            grouped(cleared.cleared),
            grouped(open)
        ),
    }
}

/// True if what a mixed history shows breaks no promise, wherever it does. (What needs more than the
/// data isn't promised by any level.)
fn is_permitted(mixed: &MixedReport, finding: &Finding) -> bool {
    !mixed.broken.iter().any(|broken| broken.finding.anomaly == finding.anomaly)
}

/// A broken promise, with its proof.
fn broken_promise(Broken { finding, why }: &Broken) -> String {
    format!("BROKEN PROMISE, {}: {why}.\n{}", count(finding.count), proof(finding))
}

/// The first lines about a mixed history: whether it is serializable as a whole, whether each
/// transaction got what its level promises, and which lie on cycles all the same.
fn mixed_verdict(report: &Report, mixed: &MixedReport, looked: &str) -> Vec<String> {
    let shown: Vec<String> = report.findings.iter().filter(|it| it.order == Order::Data).map(title).collect();
    let whole = if shown.is_empty() {
        format!("Nothing contradicts that this history is serializable as a whole, {looked}.")
    } else {
        format!("NOT SERIALIZABLE as a whole: the history shows {}.", shown.join(", "))
    };
    let levels = by_level(&mixed.levels);
    let promise = if mixed.broken.is_empty() {
        format!("Nothing contradicts what each transaction's own level promises ({levels}).")
    } else {
        let broken: Vec<String> = mixed.broken.iter().map(|broken| title(&broken.finding)).collect();
        format!("PROMISE BROKEN to transactions by their own levels ({levels}): {}.", broken.join(", "))
    };
    let mut lines = vec![whole, promise];
    let permitted = mixed.permitted();
    if permitted > 0 {
        lines.push(format!(
            "{} transaction{} on cycles that no level promises to prevent: {}.",
            grouped(permitted),
            if permitted == 1 { " lies" } else { "s lie" },
            by_level(&mixed.permitted)
        ));
    }
    lines
}

/// The numbers of transactions at each level: "3 at read committed, 2 at serializable".
fn by_level(counts: &[LevelCount]) -> String {
    let one = |count: &LevelCount| {
        let level = count.level.map_or("an unknown level", |level| level.name());
        format!("{} at {level}", grouped(count.transactions))
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A sentence about transactions that read what they didn't use.
fn harmless(count: u64) -> String {
    format!(
        "By the letter {} more transaction{} read a row that another one replaced before the end, and used it \
         nowhere: no harm came of it.",
        grouped(count),
        if count == 1 { "" } else { "s" }
    )
}

/// A sentence about values that were carried between transactions.
fn between(lost: &LostBetween) -> String {
    format!(
        "LOST BETWEEN TRANSACTIONS: {} transaction{} wrote what depends on a row that had changed since an \
         earlier transaction read it. No level protects that. Taken together, as one transaction:",
        grouped(lost.count),
        if lost.count == 1 { "" } else { "s" }
    )
}

/// A sentence about columns that are written back as they were read.
fn back(written: &WrittenBack) -> String {
    let names: Vec<&str> = written.anomalies.iter().map(|anomaly| anomaly.facts().known_as).collect();
    let names = if names.is_empty() {
        String::new()
    } else {
        format!(", and there would be no {}", names.join(", "))
    };
    format!(
        "WRITTEN BACK: if statements set only the columns that they change, {} fewer transaction{} would show \
         an anomaly{names}. These also set columns to what their transactions read in them:",
        grouped(written.transactions),
        if written.transactions == 1 { "" } else { "s" }
    )
}

/// The report in one line, for tables: "snapshot isolation; write skew 12".
pub fn summary(report: &Report) -> String {
    let models: Vec<Model> =
        report.verdict.not_contradicted.iter().map(|guarantee| guarantee.model).collect();
    let implied = |model: &Model| models.iter().any(|other| other != model && other.implies(*model));
    let mut strongest: Vec<&str> = Vec::new();
    for model in models.iter().filter(|model| !implied(model)) {
        if !strongest.contains(&model.name()) {
            strongest.push(model.name());
        }
    }
    let strongest = match strongest.as_slice() {
        _ if !report.verdict.withheld.is_empty() => "withheld".to_owned(),
        [] => "nothing".to_owned(),
        strongest => strongest.join(" and "),
    };
    let found = report.findings.iter().map(|finding| {
        format!("{} {}{}", finding.anomaly.facts().known_as, count(finding.count), with(finding.order))
    });
    let found = found.collect::<Vec<_>>().join(", ");
    if found.is_empty() { format!("{strongest}; nothing found") } else { format!("{strongest}; {found}") }
}

/// The first lines: the promise, whether it was kept, and the guarantees that aren't contradicted.
fn verdict(report: &Report) -> Vec<String> {
    let looked = format!(
        "in {} committed transactions with {} dependencies; this isn't a proof",
        grouped(report.examined.committed + report.examined.proved_committed),
        grouped(report.examined.dependencies())
    );
    if !report.verdict.withheld.is_empty() {
        return withheld(report);
    }
    if let Some(mixed) = &report.mixed {
        let mut lines = mixed_verdict(report, mixed, &looked);
        lines.push(strongest(report));
        return lines;
    }
    let first = match report.verdict.promised {
        Some(promised) if report.verdict.kept == Some(false) => {
            let broken = report.findings.iter().filter(|finding| finding.contradicts(promised));
            let broken: Vec<String> = broken.map(title).collect();
            format!("PROMISE BROKEN: {promised} was promised, but the history shows {}.", broken.join(", "))
        }
        Some(promised) if report.verdict.kept.is_none() => {
            format!("Whether {promised} was kept is unknown: its order was not checked.")
        }
        Some(promised) if !report.findings.is_empty() => {
            format!(
                "The anomalies below are ones that {promised} permits; nothing contradicts {promised} {looked}."
            )
        }
        Some(promised) => format!("Nothing contradicts {promised} {looked}."),
        None if report.findings.is_empty() => format!("Nothing was found {looked}."),
        None => {
            let found: Vec<String> = report.findings.iter().map(title).collect();
            format!("The history shows {}.", found.join(", "))
        }
    };
    vec![first, strongest(report)]
}

/// The line about the guarantees that aren't contradicted.
fn strongest(report: &Report) -> String {
    let left: Vec<String> = report.verdict.not_contradicted.iter().map(Guarantee::to_string).collect();
    if left.is_empty() {
        "It contradicts every model, read uncommitted included.".to_owned()
    } else {
        format!("The strongest guarantees that it does not contradict{}: {}.", open(report), left.join("; "))
    }
}

/// The reservation that the order of versions isn't known, if so.
fn open(report: &Report) -> String {
    let pairs = report.blind.iter().find_map(|blind| match blind {
        Blind::UndecidedOrder(pairs) => Some(*pairs),
        _ => None,
    });
    let open = |count| format!(", with the order of {} of versions left open", pairs_of(count));
    pairs.map_or_else(String::new, open)
}

fn pairs_of(count: u64) -> String {
    format!("{} pair{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// The first lines of a withheld verdict: the reasons, and the status of the findings.
fn withheld(report: &Report) -> Vec<String> {
    let what = match report.verdict.promised {
        Some(promised) => format!("VERDICT WITHHELD: whether {promised} was kept is unknown."),
        None if report.mixed.is_some() => {
            "VERDICT WITHHELD: whether each transaction got what its level promises is unknown.".to_owned()
        }
        None => "VERDICT WITHHELD: nothing follows from this history.".to_owned(),
    };
    let mut lines = vec![what];
    lines.extend(report.verdict.withheld.iter().map(|doubt| format!("- {doubt}.")));
    if !report.findings.is_empty() {
        lines.push(
            "Anomalies if the history is taken literally (they prove nothing about the server):".to_owned(),
        );
    }
    lines
}

/// The common name, and the name in the literature.
fn title(finding: &Finding) -> String {
    let facts = finding.anomaly.facts();
    if facts.known_as == facts.name {
        return format!("{}{}", facts.name, with(finding.order));
    }
    format!("{} ({}){}", facts.known_as, facts.name, with(finding.order))
}

/// The orders needed, if any.
fn with(order: Order) -> &'static str {
    match order {
        Order::Data => "",
        Order::Session => " with session order",
        Order::RealTime => " with real time",
    }
}

fn count(count: Count) -> String {
    let found = grouped(count.found);
    if count.complete { found } else { format!("at least {found}") }
}

fn table(report: &Report) -> String {
    let committed = report.examined.committed + report.examined.proved_committed;
    let mut rows = vec![["anomaly", "count", "per million committed", "needs"].map(ToOwned::to_owned)];
    rows.extend(report.findings.iter().map(|finding| {
        let needs = match finding.order {
            Order::Data => "the data alone",
            Order::Session => "session order",
            Order::RealTime => "real time",
        };
        let share = per_million(finding.count.found, committed);
        [finding_name(finding), count(finding.count), share, needs.to_owned()]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let mut text = String::new();
    for [name, count, share, needs] in &rows {
        let _ = writeln!(text, "{name:first$}  {count:>second$}  {share:>third$}  {needs}");
    }
    text
}

fn finding_name(finding: &Finding) -> String {
    let facts = finding.anomaly.facts();
    if facts.known_as == facts.name {
        facts.name.to_owned()
    } else {
        format!("{}, {}", facts.name, facts.known_as)
    }
}

fn per_million(found: u64, committed: u64) -> String {
    if committed == 0 {
        return "-".to_owned();
    }
    let share = found as f64 * 1e6 / committed as f64;
    if share >= 100.0 { format!("{share:.0}") } else { format!("{share:.2}") }
}

/// The number of steps shown of a long witness.
const SHOWN: usize = 32;

/// The number of letters shown of a long statement.
const LONGEST_STATEMENT: usize = 400;

fn proof(finding: &Finding) -> String {
    let cycle = finding.witness.steps.iter().any(|step| step.dependency.is_some());
    let kind = match (cycle, finding.witness.smallest) {
        (true, true) => "the smallest cycle",
        (true, false) => "one such cycle, possibly not the smallest",
        (false, _) => "the first one",
    };
    let found = if finding.witness.is_inferred() {
        "Every possible order of the versions has one; without one, this would follow:".to_owned()
    } else {
        format!("For example, {kind}:")
    };
    let mut text = format!("{}: {}.\n{found}\n", finding_name(finding), finding.anomaly.facts().meaning);
    let steps = &finding.witness.steps;
    for (number, step) in steps.iter().enumerate().take(SHOWN) {
        let inferred = if finding.witness.is_inferred() { " [inferred]" } else { "" };
        let why = step
            .dependency
            .map_or_else(|| inferred.to_owned(), |dependency| format!(" [{}]", dependency.name()));
        let _ = writeln!(text, "  {}. {}{why}", number + 1, step.why);
        for statement in &step.statements {
            let _ = writeln!(text, "       {}", cut(statement));
        }
    }
    if steps.len() > SHOWN {
        let _ = writeln!(text, "  … and {} more steps", grouped((steps.len() - SHOWN) as u64));
    }
    text
}

/// A statement, without its end if it is very long.
fn cut(statement: &str) -> String {
    let statement = statement.trim_end_matches(';');
    match statement.char_indices().nth(LONGEST_STATEMENT) {
        Some((end, _)) => format!("{}…", &statement[..end]),
        None => statement.to_owned(),
    }
}

fn examined(report: &Report) -> String {
    let examined = &report.examined;
    let mut text = format!(
        "Examined: {} committed transactions, {} aborted, {} of unknown outcome",
        grouped(examined.committed),
        grouped(examined.aborted),
        grouped(examined.unknown)
    );
    if examined.proved_committed > 0 {
        let _ = write!(text, " ({} of them proved to be committed)", grouped(examined.proved_committed));
    }
    let _ = write!(
        text,
        "; {} operations.\nDependencies: {} write-write, {} write-read, {} read-write, {} read-write by predicates.\n",
        grouped(examined.operations),
        grouped(examined.write_write),
        grouped(examined.write_read),
        grouped(examined.read_write),
        grouped(examined.predicate)
    );
    text
}

impl fmt::Display for Blind {
    /// Writes a sentence without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blind::NoPredicates => {
                f.write_str("No transaction read by a predicate, so phantoms could not show")
            }
            Blind::UnknownOutcomes(count) => write!(
                f,
                "The outcome of {} transactions is unknown and nothing proves their commit, so they were left out",
                grouped(*count)
            ),
            Blind::Dropped(count) => write!(
                f,
                "{} executed transactions are missing from the history, so their effects could not be followed",
                grouped(*count)
            ),
            Blind::UndecidedOrder(count) => {
                write!(f, "The order of {} of versions of the same row is unknown", pairs_of(*count))
            }
            Blind::Incomplete { attempts, why } => {
                write!(f, "Not everything was seen of {} transactions ({why})", grouped(*attempts))
            }
            Blind::Searches(count) => write!(
                f,
                "What {} searches missed is unknown, because rows of their tables may have been written \
                 unseen, or because there were too many",
                grouped(*count)
            ),
            Blind::OrdersDiffer(count) => write!(
                f,
                "The server's answers and its log show different orders of the versions of {} rows, of which \
                 nothing is claimed",
                grouped(*count)
            ),
            Blind::UnseenWriters(count) => {
                write!(f, "{} reads of versions whose writers were not seen were left out", grouped(*count))
            }
            Blind::OrderNotInferred(count) => write!(
                f,
                "For {} guarantees, the search for orders of versions was cut short",
                grouped(*count)
            ),
            Blind::AssumedInitial { rows, example } => write!(
                f,
                "In {} rows an unwritten value was read before the first write, and taken for the initial one \
                 ({example}); a history can state initial values",
                grouped(*rows)
            ),
            Blind::NoInstants => f.write_str("The history has no instants, so real time was not checked"),
            Blind::NothingShared => {
                f.write_str("No transaction read or overwrote what another wrote, so no anomaly could show")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};
    use crate::history::text;

    #[test]
    fn thousands_are_separated() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_line_for_tables() {
        let line = |history: &str| summary(&check(&text::parse(history).unwrap(), &Options::default()));
        assert_eq!(line(""), "withheld; nothing found");
        assert_eq!(line("T1: r x = v0"), "serializable; nothing found");
        assert_eq!(line("T1: w x = 1\nT2: w x = 1"), "withheld; written twice 1");
        assert_eq!(
            line("T1: r x = v0, r y = v0, w x = v1\nT2: r x = v0, r y = v0, w y = v1"),
            "snapshot isolation; write skew 1"
        );
        assert_eq!(
            line("T1 client=0: w x = v1\nT2 client=0: r x = v0"),
            "serializable; read skew 1 with session order"
        );
        assert_eq!(line("T1: a x += 1, l x = []"), "nothing; own write not seen 1");
    }

    #[test]
    fn what_was_not_looked_at_is_not_kept() {
        let strict = "strict serializable".parse().ok();
        let report = |history: &str| {
            let options = Options { promised: strict, ..Options::default() };
            check(&text::parse(history).unwrap(), &options)
        };
        let without = report("T1: w x = v1\nT2: r x = v1");
        assert_eq!(without.verdict.kept, None);
        assert!(render(&without).starts_with("Whether strict serializable was kept is unknown"));
        assert_eq!(report("T1 1..2: w x = v1\nT2 3..4: r x = v1").verdict.kept, Some(true));
        assert_eq!(report("T1 1..2: w x = v1\nT2 3..4: r x = v0").verdict.kept, Some(false));
    }

    #[test]
    fn of_a_long_cycle_the_first_steps_are_shown() {
        let mut history = String::new();
        for row in 0..40 {
            let _ = writeln!(history, "T{row}: r x {row} = v1, w x {} = v1", (row + 1) % 40);
        }
        let report = check(&text::parse(&history).unwrap(), &Options::default());
        assert_eq!(report.findings[0].witness.steps.len(), 40);
        let text = render(&report);
        assert!(text.contains("\n  32. ") && text.contains("\n  … and 8 more steps\n"), "{text}");
    }

    #[test]
    fn an_observed_step_shows_its_transactions_and_sql() {
        let long = "x".repeat(500);
        let history = format!(
            "observed searches=0 searches-left=0 reads-left=0 reads-odd=0 orders-agreed=0 orders-differ=0\n\
             statement \"a.sql:1: SELECT n FROM t WHERE id = :id\"\n\
             statement \"a.sql:2: UPDATE t SET n = {long}\"\n\
             T1: r t 1 = init @0, w t 1 = v1/2533 @1\n\
             T2: r t 1 = init @0, w t 1 = v2/2534 @1\n\
             T3: r t 1 = v2/2534 @0"
        );
        let text = render(&check(&text::parse(&history).expect("a history"), &Options::default()));
        assert!(text.contains(" wrote version 1 (by transaction 2533)"), "{text}");
        assert!(!text.contains("(value"), "{text}");
        let (_, step) = text.split_once("\n  1. ").expect("a step");
        let lines: Vec<&str> = step.lines().skip(1).take(2).collect();
        let read = "       a.sql:1: SELECT n FROM t WHERE id = :id";
        assert!(lines.contains(&read), "{text}");
        let written = lines.iter().find(|line| line.contains("UPDATE")).expect("both sides");
        assert!(
            written.starts_with("       a.sql:2: UPDATE t SET n = xx") && written.ends_with("x…"),
            "{text}"
        );
        assert_eq!(written.chars().count(), 7 + LONGEST_STATEMENT + 1);
    }
}
