//! The method: the plan, the order, how each interval is computed, and what it takes to repeat the
//! measurement.
//!
//! Only methods that this document's numbers rest on are named.

use isobench_result::document::{
    Document, Interval, IntervalSource, Plan, PlannedScript, PlannedStrategy, Workload,
};
use isobench_result::numbers::{count, counted, given, percent, short};
use isobench_result::phrases::length;
use maud::{Markup, html};

use super::part::{code, measured, pairs};
use crate::text::sentences::round_trips;

/// The comment above the plan's keys.
const PLAN_COMMENT: &str = "\
# Repeats the comparison: isobench compare --plan plan.toml
# Options of the server and of its tables are no part of a plan.
# Scripts that aren't built in have to lie beside this file.
";

/// The section's body.
#[expect(clippy::unnecessary_wraps, reason = "sections stand in one table, and others may be left out")]
pub fn body(document: &Document) -> Option<Markup> {
    let methods: Vec<&Method> = METHODS.iter().filter(|method| (method.used)(document)).collect();
    let command = command(&document.command);
    Some(html! {
        h3 { "The plan" }
        (pairs(&plan(document)))
        (strategies(document))
        (order(document))
        @if !methods.is_empty() {
            h3 { "The intervals" }
            dl class="methods" {
                @for method in methods {
                    dt { (method.name) }
                    dd { (method.text) }
                }
            }
        }
        h3 { "To repeat it" }
        @if !command.is_empty() {
            (code("command", "The command that measured", "command.sh", &format!("{command}\n")))
        }
        @let file = format!("{PLAN_COMMENT}{}", isobench_plan::write(&document.plan));
        (code("plan", "The same as a plan: isobench compare --plan plan.toml", "plan.toml", &file))
        @let scripts = scripts(&document.workload);
        @if scripts.iter().any(|(_, script)| !script.text.is_empty()) {
            details {
                summary { "The scripts" }
                @for (index, (label, script)) in scripts.iter().enumerate() {
                    (code(&format!("script-{index}"), label, &script.name, &script.text))
                }
            }
        }
    })
}

fn weighed(script: &PlannedScript) -> String {
    let own = script.workload.is_empty() || script.workload == script.name;
    let workload = if own { String::new() } else { format!("{}: ", script.workload) };
    format!("{workload}{}, weight {}", script.name, count(script.weight.into()))
}

/// All scripts with their names and weights, those of every strategy.
fn scripts(workload: &Workload) -> Vec<(String, &PlannedScript)> {
    if workload.strategies.iter().all(|strategy| strategy.scripts.is_empty()) {
        return workload.scripts.iter().map(|script| (weighed(script), script)).collect();
    }
    let of = |strategy: &'_ PlannedStrategy| strategy.name.clone();
    let scripts = workload
        .strategies
        .iter()
        .flat_map(|strategy| strategy.scripts.iter().map(move |script| (of(strategy), script)));
    scripts.map(|(strategy, script)| (format!("{strategy}: {}", weighed(script)), script)).collect()
}

/// The command line as a shell takes it.
fn command(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_alphanumeric() || "-_=+./:,@%".contains(letter))
    };
    let quoted = |word: &String| {
        if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The ways in which the workers waited for their connections, in the order of the cells.
fn event_loops(document: &Document) -> Option<String> {
    let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
    let mut all: Vec<String> = Vec::new();
    for event_loop in rounds.filter_map(|round| round.event_loop.as_ref()) {
        let shown = event_loop.to_string();
        if !all.contains(&shown) {
            all.push(shown);
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn plan(document: &Document) -> Vec<(String, String)> {
    let plan = &document.plan;
    let list = |values: Vec<String>| values.join(", ");
    let mut rows: Vec<(&str, Option<String>)> = vec![
        ("levels", Some(list(plan.levels().iter().map(ToString::to_string).collect()))),
        ("workload", Some(list(document.workload.scripts.iter().map(weighed).collect()))),
        ("strategies", Some(list(plan.strategies().to_vec()))),
        ("parameters", Some(parameters(plan))),
        ("clients", Some(list(plan.clients().iter().map(|clients| count((*clients).into())).collect()))),
        ("workers", Some(count(plan.jobs().into()))),
        ("event loop", event_loops(document)),
        ("scale", Some(count(plan.scale().into()))),
        ("length", length(document)),
        ("warm-up", Some(warmup(plan))),
        ("attempts", Some(tries(plan))),
        ("backoff", Some(list(plan.backoff().to_vec()))),
        ("protocol", Some(plan.protocol().to_owned())),
        ("seed", plan.seed.map(|seed| seed.to_string())),
    ];
    let rates = || plan.rates().iter().map(|rate| short(*rate)).collect();
    rows.push((
        "rate",
        (!plan.rates().is_empty()).then(|| format!("{} per second, started on schedule", list(rates()))),
    ));
    rows.push(("latency limit", plan.latency_limit.map(|limit| format!("{} ms", given(limit)))));
    rows.push(("think time", plan.think_time.map(|pause| format!("{} ms", given(pause)))));
    rows.push(("precision wanted", plan.resolve.map(|share| percent(share.0))));
    rows.push((
        "settling",
        plan.settle.map(|extra| format!("for at most {} s after the planned rounds", given(extra))),
    ));
    rows.push(("time limit", plan.time_limit.map(|limit| format!("{} s", given(limit)))));
    let yes = |asked: Option<bool>, text: &str| (asked == Some(true)).then(|| text.to_owned());
    rows.push(("connections", yes(plan.connect, "a new one for each transaction")));
    rows.push((
        "strict levels",
        yes(plan.strict_levels, "a level that the server doesn't run was to be refused"),
    ));
    rows.push(("stop", yes(plan.stop_on_broken, "the first broken promise was to end the comparison")));
    rows.push(("calibration", yes(plan.calibrate, "the first level was measured twice in every round")));
    rows.push(("sweep", yes(plan.sweep, "the highest rate that keeps the latency limit was searched for")));
    rows.push(("server's statistics", yes(Some(plan.watches_server()), "sampled while measuring")));
    rows.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|value| !value.is_empty())?)))
        .collect()
}

/// "rows 1000, 10000; foreign-keys on".
fn parameters(plan: &Plan) -> String {
    let one = |parameter: &isobench_plan::Vary| format!("{} {}", parameter.name, parameter.values.join(", "));
    plan.vary().iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The strategies, with the number of times each waits for the server.
fn strategies(document: &Document) -> Markup {
    let strategies = &document.workload.strategies;
    html! {
        @if !strategies.is_empty() {
            h3 { "The strategies" }
            dl class="methods" {
                @for strategy in strategies {
                    dt { (strategy.name) }
                    dd { (strategy.summary) }
                }
            }
            @if let Some(sentence) = round_trips(document) { p { (sentence) } }
        }
    }
}

fn warmup(plan: &Plan) -> String {
    if plan.warmup() <= 0.0 {
        return "none".to_owned();
    }
    if plan.max_warmup() > plan.warmup() {
        return format!(
            "{} s, and again until the rate is steady, {} s at most",
            given(plan.warmup()),
            given(plan.max_warmup())
        );
    }
    format!("{} s", given(plan.warmup()))
}

fn tries(plan: &Plan) -> String {
    plan.max_tries().map_or_else(
        || "as many as it takes within the time".to_owned(),
        |tries| format!("at most {} per transaction", counted(tries.into(), "attempt")),
    )
}

/// The order of the cells in the first rounds.
fn order(document: &Document) -> Markup {
    const SHOWN: u32 = 3;
    let mut lines: Vec<String> = Vec::new();
    for number in 1..=SHOWN {
        let mut places: Vec<(u32, String)> = Vec::new();
        for cell in measured(document) {
            for round in cell.rounds.iter().filter(|round| round.round == number) {
                places.extend(round.order.map(|order| (order, super::part::cell_name(document, cell))));
            }
        }
        places.sort();
        if places.len() > 1 {
            let names: Vec<String> = places.into_iter().map(|(_, name)| name).collect();
            lines.push(format!("Round {number}: {}.", names.join(" → ")));
        }
    }
    html! {
        @if !lines.is_empty() {
            h3 { "The order" }
            p {
                "Every round measures every level once, each "
                (document.starting_state().phrase())
                ", in an order that the seed shuffles anew, so that a machine that gets slower or \
                 faster favours no level. The first rounds:"
            }
            ul { @for line in &lines { li { (line) } } }
        }
    }
}

/// A method that numbers rest on, and what it assumes.
struct Method {
    name: &'static str,
    used: fn(&Document) -> bool,
    text: &'static str,
}

fn any_interval(document: &Document, source: IntervalSource) -> bool {
    let from = |interval: &Interval| interval.low.is_some() && interval.source == source;
    document.cells.iter().any(|cell| from(&cell.summary.tps))
}

static METHODS: [Method; 10] = [
    Method {
        name: "Mean of rounds: Student's t",
        used: |document| any_interval(document, IntervalSource::Rounds),
        text: "The 95 % interval of committed per s is mean ± t·s/√n over the n rounds. It assumes \
               that rounds are independent and scatter roughly normally. It estimates what more rounds \
               of the same kind on the same machine would give.",
    },
    Method {
        name: "Mean within a round: batch means",
        used: |document| any_interval(document, IntervalSource::Batches),
        text: "There is one round only, and its successive moments depend on each other, so the \
               interval comes from the means of 20 batches, widened by their remaining correlation \
               (Student's t, 19 degrees of freedom). It assumes a steady series several times \
               longer than its correlation lasts, and knows nothing of how much another round \
               would differ.",
    },
    Method {
        name: "Ratio to the first level: paired log ratios",
        used: |document| {
            document
                .cells
                .iter()
                .filter_map(|cell| cell.summary.ratio.as_ref())
                .any(|ratio| ratio.low.is_some())
        },
        text: "Each round's rate is divided by that of the first level in the same round; shown \
               are the geometric mean of these ratios and the 95 % interval by Student's t of \
               their logarithms. What both share, such as a machine that slows down, cancels out. \
               It assumes independent rounds.",
    },
    Method {
        name: "Ratio to the first strategy: paired log ratios",
        used: |document| {
            let ratios = document.cells.iter().filter_map(|cell| cell.summary.strategy_ratio.as_ref());
            ratios.into_iter().any(|ratio| ratio.low.is_some())
        },
        text: "The same, with the first strategy at the same level in place of the first level. A \
               strategy that needs fewer round trips to the server is faster for that alone.",
    },
    Method {
        name: "Ratio to the first setting: paired log ratios",
        used: |document| {
            let ratios = document.cells.iter().filter_map(|cell| cell.summary.setting_ratio.as_ref());
            ratios.into_iter().any(|ratio| ratio.low.is_some())
        },
        text: "The same, with the first settings (or the server's first version) at the same level and \
               with the same strategy in place of the first level.",
    },
    Method {
        name: "Turns: cells that are compared share the moment",
        used: |document| {
            document.cells.iter().flat_map(|cell| &cell.rounds).any(|round| round.turns.is_some())
        },
        text: "In a round each level works for a fraction of a second, then the next, in balanced and \
               shuffled order (Williams 1949), while the clients of all others are idle. A cell's \
               clock stops between its slices; attempts under way at the end of one are finished, and \
               retries wait for the next. Every slice lasts until its last attempt has ended; the time \
               for which clients waited for it is in each round's data (idle_share).",
    },
    Method {
        name: "Noise of the machine: an A/A cell",
        used: |document| {
            document
                .cells
                .iter()
                .filter_map(|cell| cell.summary.ratio.as_ref())
                .any(|ratio| ratio.noise.is_some())
        },
        text: "The first level was measured twice in every round. How far the two differ is what \
               equal things differ by here, and a ratio within that is called noise, whatever its \
               own interval says.",
    },
    Method {
        name: "Percentiles: Student's t over the rounds",
        used: |document| {
            let known = |cell: &isobench_result::document::Cell| {
                cell.summary.percentiles.iter().any(|percentile| percentile.low.is_some())
            };
            document.cells.iter().any(known)
        },
        text: "Percentiles come from the merged histograms of all rounds, never from averages of \
               percentiles, and only where the sample is large enough. Their 95 % intervals come \
               from the percentiles of the single rounds, by Student's t of their logarithms. It \
               assumes independent rounds, and no shape of the distribution of latencies.",
    },
    Method {
        name: "Warm-up: change points",
        used: |document| document.plan.max_warmup() > document.plan.warmup(),
        text: "The warm-up lasts until its rate has stopped changing. The series of the rate is \
               split where the means of the two parts explain most of its variance; if they differ \
               by more than noise, and by 5 % at least, that is a change, and the second part is \
               split in the same way (Hawkins 1977). About one steady series in twenty is warmed \
               up longer than needed.",
    },
    Method {
        name: "Anomalies: cycles of dependencies",
        used: |document| document.cells.iter().any(|cell| cell.summary.verdict.is_some()),
        text: "Every read and write of the recorded attempts is put into a graph of dependencies \
               (Adya 1999). Whether a level is contradicted is decided exactly; how often, up to a \
               bound of effort. Finding nothing isn't a proof.",
    },
];

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_command_is_quoted_where_a_shell_needs_it() {
        let words =
            ["isobench", "compare", "--resolve", "2%", "-w", "my script.sql", "it's", ""].map(str::to_owned);
        assert_eq!(command(&words), "isobench compare --resolve 2% -w 'my script.sql' 'it'\\''s' ''");
    }
}
