//! The factors of a plan besides the level: what a cell has of each, and how that is said.
//!
//! Most are known beforehand and are in a table; the parameters that a plan varies have the names
//! that it gives them. Not here: which cells belong together (`summarise`).

use std::collections::BTreeMap;

use isobench_plan::{BACKGROUND, FAULT, SERVER_BIN, SERVER_VERSION, SETTING, STANDBY};

use crate::document::{Cell, Document};
use crate::numbers::{count, counted, optional, short};
use crate::view::Heading;
use crate::words::distinct;

/// A factor besides the level.
#[derive(Clone)]
pub enum Factor {
    /// One that every plan has.
    Known(&'static Known),
    /// A parameter that the plan varies.
    Varied {
        /// Its name.
        name: String,
        /// True if all its values are numbers, which are right-aligned.
        numeric: bool,
    },
}

/// The identity of a factor that every plan has. A parameter may have the same title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactorId {
    /// The scripts.
    Workload,
    /// The size of the tables.
    Scale,
    /// The number of clients.
    Clients,
    /// The number of workers.
    Jobs,
    /// The query protocol.
    Protocol,
    /// The retry policy.
    Backoff,
    /// The rate that was asked for.
    Rate,
    /// The strategy.
    Strategy,
}

/// A factor that every plan has.
pub struct Known {
    id: FactorId,
    title: &'static str,
    unit: &'static str,
    right: bool,
    meaning: &'static str,
    /// Its value in a column.
    value: fn(&Cell) -> String,
    /// Its value in a sentence.
    said: fn(&Cell) -> String,
}

static KNOWN: [Known; 8] = [
    Known {
        id: FactorId::Workload,
        title: "workload",
        unit: "",
        right: false,
        meaning: "script or scripts that the clients run",
        value: |cell| cell.workload.clone(),
        said: |cell| format!("workload {}", cell.workload),
    },
    Known {
        id: FactorId::Scale,
        title: "scale",
        unit: "",
        right: true,
        meaning: "size of the tables",
        value: |cell| count(cell.scale.into()),
        said: |cell| format!("scale {}", count(cell.scale.into())),
    },
    Known {
        id: FactorId::Clients,
        title: "clients",
        unit: "",
        right: true,
        meaning: "simulated users, each with a connection",
        value: |cell| count(cell.clients.into()),
        said: |cell| counted(cell.clients.into(), "client"),
    },
    Known {
        id: FactorId::Jobs,
        title: "jobs",
        unit: "",
        right: true,
        meaning: "worker threads that drive the clients",
        value: |cell| count(cell.jobs.into()),
        said: |cell| counted(cell.jobs.into(), "worker"),
    },
    Known {
        id: FactorId::Protocol,
        title: "protocol",
        unit: "",
        right: false,
        meaning: "query protocol",
        value: |cell| cell.protocol.clone(),
        said: |cell| format!("{} protocol", cell.protocol),
    },
    Known {
        id: FactorId::Backoff,
        title: "backoff",
        unit: "",
        right: false,
        meaning: "retry policy: how long a client waits before it tries again",
        value: |cell| cell.backoff.clone(),
        said: |cell| format!("backoff {}", cell.backoff),
    },
    Known {
        id: FactorId::Rate,
        title: "rate",
        unit: "per s",
        right: true,
        meaning: "transactions that were to be begun per second; latency counts from the scheduled start",
        value: |cell| optional(cell.rate),
        said: |cell| {
            let wanted = |rate| format!("{} per second wanted", short(rate));
            cell.rate.map_or_else(|| "no rate".to_owned(), wanted)
        },
    },
    Known {
        id: FactorId::Strategy,
        title: "strategy",
        unit: "",
        right: false,
        meaning: "how the application copes with conflicts",
        value: |cell| cell.strategy().to_owned(),
        said: |cell| cell.strategy().to_owned(),
    },
];

impl Factor {
    /// Its identity; `None` for a parameter.
    pub fn id(&self) -> Option<FactorId> {
        match self {
            Factor::Known(known) => Some(known.id),
            Factor::Varied { .. } => None,
        }
    }

    /// Its name above a column and before a value.
    pub fn title(&self) -> &str {
        match self {
            Factor::Known(known) => known.title,
            Factor::Varied { name, .. } => name.strip_prefix(SETTING).unwrap_or(name),
        }
    }

    /// The unit of its values; empty if they have none.
    pub fn unit(&self) -> &'static str {
        match self {
            Factor::Known(known) => known.unit,
            Factor::Varied { .. } => "",
        }
    }

    /// True if its values are numbers, which are right-aligned.
    pub fn right(&self) -> bool {
        match self {
            Factor::Known(known) => known.right,
            Factor::Varied { numeric, .. } => *numeric,
        }
    }

    /// The heading of its column.
    pub fn heading(&self) -> Heading {
        Heading::new(self.title(), self.unit(), self.right())
    }

    /// Its meaning, without a full stop.
    pub fn meaning(&self) -> &str {
        match self {
            Factor::Known(known) => known.meaning,
            Factor::Varied { name, .. } if name == SERVER_VERSION => "version of the server under test",
            Factor::Varied { name, .. } if name == SERVER_BIN => "folder of the server's programs",
            Factor::Varied { name, .. } if name == BACKGROUND => "what another session does on the server",
            Factor::Varied { name, .. } if name == FAULT => {
                "what happens to the server, and at which second of the measured part"
            }
            Factor::Varied { name, .. } if name == STANDBY => {
                "how standbys follow, and what a commit waits for"
            }
            Factor::Varied { name, .. } if name.starts_with(SETTING) => {
                "a setting of the server or of all sessions, read back"
            }
            Factor::Varied { .. } => "a parameter that the plan varies",
        }
    }

    /// Its value in a cell, for a column of this title.
    pub fn value(&self, cell: &Cell) -> String {
        match self {
            Factor::Known(known) => (known.value)(cell),
            Factor::Varied { name, .. } => cell.varied.get(name).cloned().unwrap_or_default(),
        }
    }

    /// Its value in a cell, for a sentence: "8 clients", "foreign-keys on".
    pub fn said(&self, cell: &Cell) -> String {
        match self {
            Factor::Known(known) => (known.said)(cell),
            Factor::Varied { .. } => self.named(cell).trim_end().to_owned(),
        }
    }

    /// Its title and its value: "clients 8".
    pub fn named(&self, cell: &Cell) -> String {
        format!("{} {}", self.title(), self.value(cell))
    }

    /// True if the cells of a document differ in it.
    fn varies(&self, document: &Document) -> bool {
        let mut values = document.cells.iter().map(|cell| self.value(cell));
        let first = values.next();
        values.any(|value| Some(value) != first)
    }
}

/// All factors of a document, the varied parameters last and in the plan's order.
fn all(document: &Document) -> impl Iterator<Item = Factor> {
    KNOWN.iter().map(Factor::Known).chain(parameters(document))
}

/// The factors in which the cells of a document differ.
pub fn varying(document: &Document) -> Vec<Factor> {
    all(document).filter(|factor| factor.varies(document)).collect()
}

/// The factors that all cells of a document have in common.
pub fn constant(document: &Document) -> Vec<Factor> {
    all(document).filter(|factor| !factor.varies(document)).collect()
}

/// True if the cells of a document differ in their strategies.
pub fn strategies_vary(document: &Document) -> bool {
    let first = document.cells.first().map(Cell::strategy);
    document.cells.iter().any(|cell| Some(cell.strategy()) != first)
}

fn parameters(document: &Document) -> Vec<Factor> {
    let varied = || document.cells.iter().map(|cell| &cell.varied);
    let planned = document.plan.vary().iter().map(|parameter| &parameter.name);
    let names = distinct(planned.chain(varied().flat_map(BTreeMap::keys)));
    let numeric = |name: &String| {
        varied()
            .filter_map(|varied| varied.get(name))
            .all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    };
    let factor = |name: &String| Factor::Varied { name: name.clone(), numeric: numeric(name) };
    names.into_iter().map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{CellLevel, Client, Plan, Server};
    use isobench_isolation::EffectiveLevel;
    use isobench_plan::Vary;

    #[test]
    fn parameters_have_the_names_and_the_order_of_the_plan() {
        let planned = |name: &str| Vary { name: name.to_owned(), values: Vec::new() };
        let plan = Plan { vary: Some(vec![planned("rows"), planned("foreign-keys")]), ..Plan::default() };
        let mut document = Document::new(Server::default(), Client::default(), plan);
        for (keys, rows) in [("off", "1000"), ("on", "1000")] {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            cell.varied =
                [("foreign-keys", keys), ("rows", rows)].map(|(n, v)| (n.to_owned(), v.to_owned())).into();
            document.cells.push(cell);
        }
        let known: Vec<(String, bool)> = all(&document)
            .skip(KNOWN.len())
            .map(|factor| (factor.title().to_owned(), factor.right()))
            .collect();
        assert_eq!(known, [("rows".to_owned(), true), ("foreign-keys".to_owned(), false)]);
        let varying: Vec<String> =
            varying(&document).iter().map(|factor| factor.said(&document.cells[1])).collect();
        assert_eq!(varying, ["foreign-keys on"]);
        assert!(!strategies_vary(&document));
        document.cells[0].strategy = Some("retry".to_owned());
        assert!(!strategies_vary(&document), "retry is what no strategy means");
        document.cells[0].strategy = Some("for-update".to_owned());
        assert!(strategies_vary(&document));
    }

    #[test]
    fn a_parameter_is_no_other_factor_of_the_same_name() {
        let plan = Plan {
            vary: Some(vec![Vary { name: "strategy".to_owned(), values: Vec::new() }]),
            ..Plan::default()
        };
        let mut document = Document::new(Server::default(), Client::default(), plan);
        for value in ["a", "b"] {
            let mut cell = Cell::new("w", CellLevel::new(None, EffectiveLevel::Unknown));
            cell.varied = [("strategy".to_owned(), value.to_owned())].into();
            document.cells.push(cell);
        }
        let varying = varying(&document);
        assert_eq!(varying.iter().map(Factor::title).collect::<Vec<_>>(), ["strategy"]);
        assert_eq!(varying[0].id(), None);
        assert_eq!(crate::answer::factors(&document, &document.cells[1]), "strategy b");
    }
}
