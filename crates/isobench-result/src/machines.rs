//! The machines that measured together: what each of them did, over all cells and rounds.
//!
//! Not here: the figures of a round (`document/series`), and the flag of a slow machine
//! (`summarise/flags`).

use std::collections::BTreeMap;

use crate::document::{Document, MachineRound};
use crate::view::{Entry, Heading, Table};

/// The legend of the table's columns, a sentence each.
pub const LEGEND: [&str; 3] = [
    "Commits: committed transactions per second of one client of the machine; mean: the mean latency of all \
     committed there. Machines with the same clients differ by their speed and their distance to the server.",
    "Busiest: the share of the time in which the busiest worker there wasn't waiting for the server.",
    "Clock ±: the most by which times of the machine may be wrong against rank 0's. The recorded history has its \
     transactions begin earlier and end later by that, so a verdict never rests on the clocks. Started: how long \
     after the common instant its clients began at most.",
];

/// The rows that a terminal shows; of more machines, those whose clients commit least.
pub const MOST_SHOWN: usize = 8;

/// What one machine did in all rounds.
#[derive(Debug, Default)]
struct Sum {
    rank: u32,
    name: String,
    clients: u32,
    committed: u64,
    /// Seconds × clients.
    client_s: f64,
    latency_ms: f64,
    busiest: f64,
    within_ms: f64,
    late_ms: f64,
}

impl Sum {
    fn add(&mut self, round: &MachineRound) {
        self.rank = round.rank;
        self.name.clone_from(&round.address);
        self.clients = self.clients.max(round.clients);
        self.committed = self.committed.saturating_add(round.committed);
        let seconds = round.tps.filter(|tps| *tps > 0.0).map_or(0.0, |tps| round.committed as f64 / tps);
        self.client_s += seconds * f64::from(round.clients);
        self.latency_ms += round.latency_mean_ms.unwrap_or(0.0) * round.committed as f64;
        self.busiest = self.busiest.max(round.load.busiest);
        self.within_ms = self.within_ms.max(round.clock_within_ms);
        self.late_ms = self.late_ms.max(round.late_ms);
    }

    fn of_a_client(&self) -> Option<f64> {
        (self.client_s > 0.0).then(|| self.committed as f64 / self.client_s)
    }
}

/// The table: a row for each machine, at most so many; `None` if there was one machine.
pub fn table(document: &Document, most: usize) -> Option<Table> {
    let mut by_rank: BTreeMap<u32, Sum> = BTreeMap::new();
    let rounds = document.cells.iter().flat_map(|cell| &cell.rounds);
    for machine in rounds.flat_map(|round| &round.machines) {
        by_rank.entry(machine.rank).or_default().add(machine);
    }
    let mut sums: Vec<Sum> = by_rank.into_values().collect();
    if sums.is_empty() {
        return None;
    }
    if sums.len() > most {
        let least = |sum: &Sum| sum.of_a_client().unwrap_or(0.0);
        sums.sort_by(|one, other| least(one).total_cmp(&least(other)));
        sums.truncate(most);
        sums.sort_by_key(|sum| sum.rank);
    }
    let columns = [
        ("machine", "", false),
        ("clients", "", true),
        ("commits", "per s, each", true),
        ("mean", "ms", true),
        ("busiest", "", true),
        ("clock ±", "ms", true),
        ("started", "ms late", true),
    ];
    let columns: Vec<Heading> = columns.map(|(title, unit, right)| Heading::new(title, unit, right)).into();
    let row = |sum: &Sum| {
        let latency = (sum.committed > 0).then(|| sum.latency_ms / sum.committed as f64);
        vec![
            format!("{} {}", sum.rank, sum.name).into(),
            Entry::Count(Some(sum.clients.into())),
            Entry::Number(sum.of_a_client()),
            Entry::Number(latency),
            Entry::Share(Some(sum.busiest)),
            Entry::Number(Some(sum.within_ms)),
            Entry::Number(Some(sum.late_ms)),
        ]
    };
    Some(Table::new(columns, sums.iter().map(row)))
}
