//! What a comparison is going to measure, and how long that takes, in a line: printed before anything
//! is started.
//!
//! Pure. Not here: the time left while it is measured (`display/estimate.rs`).

use std::time::Duration;

use isobench_comparison::{Design, Sources};
use isobench_result::numbers::counted;
use isobench_result::words::enumerated;

use crate::display::spell;

/// Describes what a plan measures on a server: the workloads, the levels, the clients, and its length.
pub fn outline(design: &Design, place: &str) -> String {
    let plan = &design.plan;
    let workloads: Vec<String> = design.workloads.iter().map(Sources::name).collect();
    let levels = plan.levels().iter().map(ToString::to_string);
    let allocations = plan.allocations().iter().map(|one| format!("\"{}\"", one.said()));
    let levels: Vec<String> = levels.chain(allocations).collect();
    let clients: Vec<String> = plan.clients().iter().map(ToString::to_string).collect();
    format!(
        "measuring {} at {} with {} client{} on {place}: {}",
        enumerated(&workloads),
        enumerated(&levels),
        enumerated(&clients),
        if clients == ["1"] { "" } else { "s" },
        length(design),
    )
}

/// Number and length of the rounds.
fn length(design: &Design) -> String {
    let plan = &design.plan;
    let cells = counted(design.cells().len() as u64, "cell");
    let rounds = counted(plan.rounds().into(), "round");
    let Some(of_round) = design.time_of_round() else {
        let each = counted(plan.transactions.unwrap_or_default(), "transaction");
        return format!("{cells} in {rounds}, {each} of each client");
    };
    let time = of_round.saturating_mul(plan.rounds()) + design.trying.unwrap_or_default();
    let length = match (plan.resolve, design.time_limit) {
        (Some(wanted), Some(limit)) => {
            format!("{cells} in rounds until ratios are known to {wanted}, for at most {}", spell(limit))
        }
        (_, limit) => {
            let least = limit.map_or(time, |limit| limit.min(time));
            format!("{cells} in {rounds}, about {}", spell(rounded(least)))
        }
    };
    let more = match design.settling {
        Some(settling) => format!(", and up to {} more if these settle nothing", spell(settling.extra)),
        None if plan.sweeps() => ", then a search for the highest rate of each".to_owned(),
        None => String::new(),
    };
    length + &more
}

/// At least a second, since nothing takes none.
fn rounded(time: Duration) -> Duration {
    time.max(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};
    use isobench_comparison::Resolved;
    use isobench_database::InitOptions;
    use isobench_plan::Plan;

    use super::*;

    fn of(line: &str) -> String {
        let words = std::iter::once("test").chain(line.split_whitespace());
        let matches = Plan::augment_args(Command::new("test")).try_get_matches_from(words).expect("options");
        let plan = Plan::from_arg_matches(&matches).expect("a plan");
        let resolved = Resolved::of(&plan, None, Plan::default(), &InitOptions::default()).expect("a plan");
        outline(resolved.design(), "x")
    }

    #[test]
    fn what_is_measured_is_said_in_a_line() {
        for (line, expected) in [
            (
                "-w orders",
                "measuring orders at read committed, repeatable read and serializable with 8 clients on x: 3 cells in \
                 8 rounds, about 53s, and up to 30s more if these settle nothing",
            ),
            (
                "-w tpcb-like --levels rc -c 1 --rounds 1 --time 0.1 --warmup 0",
                "measuring tpcb-like at read committed with 1 client on x: 1 cell in 1 round, about 1s",
            ),
            (
                "-w tpcb-like --levels rc,ser -c 1,4 --rounds 2 -t 100",
                "measuring tpcb-like at read committed and serializable with 1 and 4 clients on x: 4 cells in 2 rounds, \
                 100 transactions of each client",
            ),
            (
                "-w tpcb-like --levels rc,ser --resolve 2% --time-limit 300",
                "measuring tpcb-like at read committed and serializable with 8 clients on x: 2 cells in rounds until \
                 ratios are known to 2%, for at most 5m",
            ),
            (
                "-w tpcb-like --levels rc,ser --time-limit 20",
                "measuring tpcb-like at read committed and serializable with 8 clients on x: 2 cells in 8 rounds, about \
                 20s, and up to 30s more if these settle nothing",
            ),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
