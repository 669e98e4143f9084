//! The advice as a page: the answer, the graph of transactions, prices, changes, what happens at lower
//! levels.
//!
//! Not here: style and script, and how a graph is drawn (`isobench_report::page`).

use std::collections::BTreeMap;

use isobench_report::page::{Arrow, Figure, Node, Part, code, graph, line, picture, sheet, table, warnings};
use isobench_result::view::{Entry, Heading, Table};
use isobench_result::words::distinct;
use maud::{Markup, html};

use crate::advice::{Advice, Measured, Transaction};
use crate::change_set::ChangeSet;
use crate::idioms::{IDIOMS, Idiom};
use crate::reason::{Dependency, Reason};
use crate::text::{
    Evidence, WAIT_FOR_EACH_OTHER, agreed, best, closed_world, deadlocks_measured, grave, happens, held,
    idioms_of, in_order, incomplete, levels_then, ratio, shown, unshown, why,
};

/// The advice as a page that needs nothing but itself.
pub fn page(advice: &Advice) -> String {
    let mut evidence = Evidence::default();
    let answer = answer(advice, &mut evidence);
    let mut parts: Vec<Part> = vec![("answer", "Which level each transaction needs", answer)];
    parts.extend(figure(advice, &evidence).map(|figure| -> Part {
        ("graph", "Which transactions endanger each other", picture(&figure, false))
    }));
    parts.extend(
        advice
            .measured
            .as_ref()
            .map(|measured| -> Part { ("price", "What it costs", prices(advice, measured)) }),
    );
    parts.extend(
        changes(advice).map(|changes| -> Part { ("changes", "With which changes lower levels do", changes) }),
    );
    parts.extend(
        deadlocks(advice).map(|found| -> Part { ("deadlocks", "What can wait for each other", found) }),
    );
    parts.extend(idioms(advice).map(|idioms| -> Part { ("idioms", "How to ask for a level", idioms) }));
    parts.extend(
        happenings(&evidence).map(|found| -> Part { ("evidence", "What happens at lower levels", found) }),
    );
    parts.extend(undecided(advice).map(|found| -> Part { ("undecided", "What isn't decided", found) }));
    sheet("Which level each transaction needs", &[], &parts, "It holds for the statements as they were then.")
}

fn answer<'a>(advice: &'a Advice, evidence: &mut Evidence<'a>) -> Markup {
    // Its evidence has the first number.
    let grave = grave(advice, evidence);
    let columns = Heading::all(&[("transaction", false), ("level", false), ("why", false)]);
    let rows = advice.transactions.iter().map(|one| {
        let why = why(one, evidence);
        vec![Entry::from(one.script.as_str()), Entry::from(one.level_in_words()), Entry::from(why)]
    });
    let caption = "The lowest level that is proved to be enough for each transaction.";
    let table = table(caption, &Table::new(columns, rows));
    html! {
        (warnings(grave.as_slice()))
        (warnings(incomplete(advice).as_slice()))
        p { (closed_world(advice)) }
        (table)
        @for sentence in &advice.carried { p { (sentence) "." } }
        @for sentence in &advice.warnings { p { "Warning: " (sentence) "." } }
    }
}

/// The graph, if there is anything to draw.
fn figure(advice: &Advice, evidence: &Evidence) -> Option<Figure> {
    let place = |script: &str| advice.transactions.iter().position(|one| one.script == script);
    // Scripts of one workload have its name in common.
    let workload = |one: &Transaction| one.script.split_once('/').map(|(workload, _)| workload.to_owned());
    let common = distinct(advice.transactions.iter().map(workload)).len() == 1;
    let name = |one: &Transaction| match one.script.split_once('/') {
        Some((_, name)) if common => name.to_owned(),
        _ => one.script.clone(),
    };
    let node = |one: &Transaction| Node { name: name(one), note: one.level_in_words() };
    let nodes: Vec<Node> = advice.transactions.iter().map(node).collect();
    // The same arrow of several reasons has their numbers.
    let mut arrows: BTreeMap<(usize, usize, bool), Vec<(usize, String)>> = BTreeMap::new();
    let mut csv = "first,then,how,first_statement,then_statement,evidence\n".to_owned();
    for (number, reason) in (1..).zip(evidence.reasons()) {
        for one in &reason.cycle {
            let (Some(from), Some(to)) = (place(&one.first), place(&one.then)) else { continue };
            let strong = one.how == Some("rw");
            arrows.entry((from, to, strong)).or_default().push((number, sentence(one)));
            let fields = [&one.first, &one.then, one.how.unwrap_or(""), &one.at[0], &one.at[1]];
            csv += &line(fields.map(str::to_owned).into_iter().chain([number.to_string()]));
        }
    }
    if arrows.is_empty() {
        return None;
    }
    let words = |meanings: &[(usize, String)]| distinct(meanings.iter().map(|(_, words)| words.clone()));
    let description: Vec<String> = arrows.values().flat_map(|meanings| words(meanings)).collect();
    let arrows: Vec<Arrow> = arrows
        .iter()
        .map(|((from, to, strong), meanings)| Arrow {
            from: *from,
            to: *to,
            label: distinct(meanings.iter().map(|(number, _)| number.to_string())).join(", "),
            words: words(meanings).join("; "),
            strong: *strong,
        })
        .collect();
    let title = "Dependencies that close a cycle at a lower level";
    Some(Figure {
        id: "dependencies",
        title: title.to_owned(),
        caption: "Each arrow leads from a transaction that would have to come first to one that would have to come \
            later. Bold: the later one overwrites what the first one read (an antidependency), of which a cycle has at \
            least one at read committed and two in a row at repeatable read. The numbers are those of the reasons: \
            the arrows of one number form a cycle, so no order is left."
            .to_owned(),
        description: description.join("; ") + ".",
        legend: String::new(),
        svg: graph("dependencies", title, &nodes, &arrows),
        csv,
    })
}

/// A dependency in words.
fn sentence(one: &Dependency) -> String {
    let Dependency { first, then, how, at: [first_at, then_at] } = one;
    match how {
        Some("rw") => format!("{then} ({then_at}) overwrites what {first} ({first_at}) read"),
        Some("wr") => format!("{then} ({then_at}) reads what {first} ({first_at}) wrote"),
        Some(_) => format!("{then} ({then_at}) overwrites what {first} ({first_at}) wrote"),
        None => format!("{then} depends on {first}"),
    }
}

fn prices(advice: &Advice, measured: &Measured) -> Markup {
    let columns =
        Heading::all(&[("levels", false), ("throughput", true), ("conflicts", true), ("anomalies", true)]);
    let rows = in_order(measured).map(|one| {
        let name = if one.control { format!("{} (lower than needed)", one.name) } else { one.name.clone() };
        let anomalies = one.anomalies.map_or("–".to_owned(), |count| count.to_string());
        let conflicts = format!("{:.1} %", one.conflicts * 100.0);
        vec![name.into(), ratio(one).into(), conflicts.into(), anomalies.into()]
    });
    let unmeasured = measured.unmeasured.iter().map(|name| {
        let [throughput, conflicts, anomalies] = [(); 3].map(|()| Entry::from("–"));
        vec![name.as_str().into(), throughput, conflicts, anomalies]
    });
    let rows = rows.chain(unmeasured);
    let caption = format!(
        "Committed transactions per second, relative to {}, paired by round; failed attempts of all attempts; \
         anomalies in the histories of the transactions that were counted.",
        measured.to
    );
    let table = table(&caption, &Table::new(columns, rows));
    html! {
        (table)
        @for sentence in measured.without() { p { (sentence) "." } }
        @if let Some(sentence) = agreed(advice) { p { (sentence) } }
    }
}

fn changes(advice: &Advice) -> Option<Markup> {
    let held = held(advice);
    let columns =
        Heading::all(&[("change", false), ("what is written then", false), ("levels that do then", false)]);
    let lock = |set: &ChangeSet| {
        let mut clauses: Vec<String> = set.changes.iter().map(|change| change.to.to_string()).collect();
        clauses.dedup();
        clauses.join(", ")
    };
    let rows = held
        .iter()
        .map(|set| vec![set.name.as_str().into(), Entry::from(lock(set)), Entry::from(levels_then(set))]);
    let table = table(
        "UPDATEs that are written otherwise, unique indexes, reads that lock their rows, and rows that are locked first, \
         in this order; of each kind the fewest changes first.",
        &Table::new(columns, rows),
    );
    (!held.is_empty() || !advice.hints.is_empty()).then(|| {
        html! {
            @if let Some(best) = best(&held) {
                (table)
                (code("change", &format!("As a patch, {}", best.name), "isobench.patch", &best.diff))
            }
            @if !advice.hints.is_empty() {
                p { "Without a lock or a higher level, but not tried:" }
                ul { @for hint in &advice.hints { li { (hint) "." } } }
            }
        }
    })
}

fn deadlocks(advice: &Advice) -> Option<Markup> {
    let happened = deadlocks_measured(advice);
    (!advice.deadlocks.is_empty() || happened.is_some()).then(|| {
        html! {
            p { (WAIT_FOR_EACH_OTHER) }
            ul { @for sentence in &advice.deadlocks { li { (sentence) "." } } }
            @if let Some(sentence) = &happened { p { (sentence) } }
        }
    })
}

fn idioms(advice: &Advice) -> Option<Markup> {
    let levels = idioms_of(advice);
    let columns = Heading::all(&[("level", false), ("framework", false), ("how", false)]);
    let row = |level, idiom: &Idiom| {
        vec![Entry::from(format!("{level}")), idiom.framework.into(), Entry::from(idiom.of(level))]
    };
    let rows: Vec<_> =
        levels.iter().flat_map(|level| IDIOMS.iter().map(move |idiom| row(*level, idiom))).collect();
    (!rows.is_empty()).then(|| table("In the words of each framework.", &Table::new(columns, rows)))
}

fn happenings(evidence: &Evidence) -> Option<Markup> {
    let one = |(number, reason): (usize, &&Reason)| {
        let mut text = String::new();
        shown(&mut text, reason);
        html! {
            h3 { "[" (number) "] " (happens(reason)) }
            (code(&format!("evidence-{number}"), "Step by step", &format!("evidence-{number}.txt"), text.trim_end()))
        }
    };
    let reasons = evidence.reasons();
    (!reasons.is_empty()).then(|| html! { @for found in (1..).zip(reasons) { (one(found)) } })
}

fn undecided(advice: &Advice) -> Option<Markup> {
    let unknown: Vec<String> = advice
        .transactions
        .iter()
        .flat_map(|one| {
            one.unknown.iter().map(|unknown| {
                format!("{}:{}: {}: {}", one.script, unknown.line, unknown.reason, unknown.text)
            })
        })
        .collect();
    (!advice.unshown.is_empty() || !unknown.is_empty()).then(|| {
        html! {
            @if !advice.unshown.is_empty() {
                p { "Possible by theory, but not shown:" }
                ul { @for one in unshown(advice) { li { (one) } } }
            }
            @if !unknown.is_empty() {
                p { "Taken to read and write anything, so that nothing is proved:" }
                ul { @for one in &unknown { li { (one) } } }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use isobench_isolation::Level;

    use super::*;
    use crate::advice::{FORMAT, Status};

    fn reason(first: &str, then: &str, how: &'static str) -> Reason {
        let dependency = |first: &str, then: &str, how| Dependency {
            first: first.to_owned(),
            then: then.to_owned(),
            how,
            at: [format!("{first}:1"), format!("{then}:2")],
        };
        Reason {
            theory: vec![format!("T1 {first} runs up to its read")],
            cycle: vec![dependency(first, then, Some(how)), dependency(then, first, None)],
            untried: Some("there is no server".to_owned()),
            ..Reason::at(Level::ReadCommitted)
        }
    }

    fn advice(names: [&str; 2]) -> Advice {
        let transaction = |(number, name): (usize, &&str)| Transaction {
            script: (*name).to_owned(),
            level: Some(Level::Serializable),
            passed: None,
            status: Status::Promised,
            at_every_level: None,
            carries: Vec::new(),
            below: Some(reason(name, names[1 - number], "rw")),
            higher: Vec::new(),
            unknown: Vec::new(),
            not_tried: None,
        };
        Advice {
            format: FORMAT,
            version: 2,
            tables: vec!["t<1>".to_owned()],
            ignored: Vec::new(),
            transactions: names.iter().enumerate().map(transaction).collect(),
            carried: Vec::new(),
            at_any_level: None,
            unshown: Vec::new(),
            changes: Vec::new(),
            contradicted: true,
            unpredicted: Vec::new(),
            hints: Vec::new(),
            warnings: Vec::new(),
            deadlocks: Vec::new(),
            measured: None,
            incomplete: None,
        }
    }

    #[test]
    fn the_page_draws_who_endangers_whom() {
        let page = page(&advice(["shop/pay", "shop/<close>"]));
        assert!(!page.contains("<close>") && !page.contains("<1>"), "names are never markup");
        for part in ["id=\"answer\"", "id=\"graph\"", "id=\"evidence\"", "Only what the server promises"] {
            assert!(page.contains(part), "{part}");
        }
        // An arrow is bold in both directions, and the one of any kind is dashed.
        assert_eq!(page.matches("class=\"arrow strong\"").count(), 2);
        assert_eq!(page.matches("class=\"arrow\"").count(), 2);
        assert!(page.contains(">pay</text>"), "the workload is the same for all");
        assert!(page.contains("shop/pay,shop/&lt;close&gt;,rw,shop/pay:1,shop/&lt;close&gt;:2,1\n"));
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_the_reason_comes_first() {
        let mut advice = advice(["a", "b"]);
        assert!(!page(&advice).contains("INCOMPLETE"));
        advice.incomplete = Some("the server is gone\nat a:3".to_owned());
        let unmeasured = vec!["serializable".to_owned()];
        advice.measured = Some(Measured {
            to: "read committed".to_owned(),
            dependencies: 1,
            candidates: Vec::new(),
            unmeasured,
            left_out: Vec::new(),
        });
        let said = "INCOMPLETE: the server is gone. This is what was found until then.";
        let (text, page) = (crate::text::details(&advice, 120), page(&advice));
        assert!(text.contains(said) && page.contains(said), "{text}");
        assert!(text.contains(&format!("{:<16}  {:>9}  {:>9}  serializable\n", "–", "–", "–")), "{text}");
        assert_eq!(page.matches(">–</td>").count(), 3, "{page}");
    }

    #[test]
    fn without_a_reason_there_is_no_graph() {
        let mut advice = advice(["a", "b"]);
        for transaction in &mut advice.transactions {
            transaction.below = None;
        }
        let page = page(&advice);
        assert!(!page.contains("id=\"graph\"") && !page.contains("id=\"evidence\""));
    }
}
