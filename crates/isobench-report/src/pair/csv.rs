//! A pair for spreadsheets and scripts: a line for each cell that both results have.

use super::{Figures, Pair, PairedCell};
use crate::csv::{assignments, line, number};

/// A figure of each side: the end of its title, and its value.
type SideColumn = (&'static str, fn(&Figures) -> String);

static FIGURES: [SideColumn; 12] = [
    ("rounds", |figures| figures.rounds.to_string()),
    ("tps", |figures| number(figures.tps.mean)),
    ("tps_low", |figures| number(figures.tps.low)),
    ("tps_high", |figures| number(figures.tps.high)),
    ("conflict_ratio", |figures| number(figures.conflict_ratio)),
    ("wasted_share", |figures| number(figures.wasted_share)),
    ("latency_p50_ms", |figures| number(figures.p50_ms)),
    ("latency_p95_ms", |figures| number(figures.p95_ms)),
    ("latency_p99_ms", |figures| number(figures.p99_ms)),
    ("server_cpu_us", |figures| number(figures.server_cpu_us)),
    ("client_cpu_us", |figures| number(figures.client_cpu_us)),
    ("promise_kept", |figures| figures.promise_kept.map_or_else(String::new, |kept| kept.to_string())),
];

impl Pair {
    /// Renders a line of comma-separated values for each cell that both have, titles first.
    pub fn to_csv(&self) -> String {
        let factors =
            ["workload", "scale", "clients", "protocol", "backoff", "rate", "strategy", "varied", "level"];
        let ratio = ["ratio", "ratio_low", "ratio_high", "significant"];
        let sides = ["a", "b"].into_iter();
        let figures = sides.flat_map(|side| FIGURES.iter().map(move |(title, _)| format!("{side}_{title}")));
        let titles = factors.map(str::to_owned).into_iter().chain(ratio.map(str::to_owned)).chain(figures);
        let mut text = line(titles);
        for cell in &self.cells {
            text += &line(fields(cell).into_iter());
        }
        text
    }
}

fn fields(cell: &PairedCell) -> Vec<String> {
    let factors = &cell.factors;
    let ratio = cell.ratio;
    let mut fields = vec![
        factors.workload.clone(),
        factors.scale.to_string(),
        factors.clients.to_string(),
        factors.protocol.clone(),
        factors.backoff.clone(),
        number(factors.rate),
        factors.strategy.clone(),
        assignments(&factors.varied),
        factors.level.clone(),
        number(ratio.map(|ratio| ratio.mean)),
        number(ratio.and_then(|ratio| ratio.low)),
        number(ratio.and_then(|ratio| ratio.high)),
        ratio.map_or_else(String::new, |ratio| ratio.significant.to_string()),
    ];
    fields.extend([&cell.a, &cell.b].into_iter().flat_map(|side| FIGURES.iter().map(|(_, show)| show(side))));
    fields
}
