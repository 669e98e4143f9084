//! The plan as the file that `isobench compare --plan` reads.
//!
//! Written from the document alone, so what a plan of the document doesn't keep (`--setup`, options
//! of the tables and of the server) is missing; the file's comment says so. Not here: the plan in
//! words (`method`).

use serde::Serialize;

use crate::document::{Document, PlannedScript};

/// The keys of a plan file, which are the names of the command line's options.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct PlanFile {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workload: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    strategies: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vary: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    clients: Vec<u32>,
    jobs: u32,
    scale: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<u64>,
    warmup: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_warmup: Option<f64>,
    rounds: u32,
    calibrate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolve: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_limit: Option<f64>,
    max_tries: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    backoff: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    protocol: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rate: Vec<f64>,
    sweep: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    strict_levels: bool,
}

/// What stands above the keys.
const COMMENT: &str = "\
# Repeats the comparison: isobench compare --plan plan.toml
# Options of the server and of its tables are no part of a plan.
# Scripts that aren't built in have to lie beside this file.
";

/// The file's text.
pub fn text(document: &Document) -> String {
    let plan = &document.plan;
    let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
    let file = PlanFile {
        levels: plan.levels.iter().map(|level| level.short()).collect(),
        workload: workload(document),
        strategies: plan.strategies.iter().map(|strategy| strategy.name.clone()).collect(),
        vary: plan
            .vary
            .iter()
            .map(|parameter| format!("{}={}", parameter.name, parameter.values.join(",")))
            .collect(),
        clients: plan.clients.clone(),
        jobs: plan.jobs,
        scale: plan.scale,
        time: finite(plan.time_s),
        transactions: plan.transactions.filter(|_| plan.time_s.is_none()),
        warmup: finite(Some(plan.warmup_s)).unwrap_or(0.0),
        max_warmup: finite(Some(plan.max_warmup_s)).filter(|most| *most > plan.warmup_s),
        rounds: plan.rounds,
        calibrate: plan.calibrate,
        resolve: finite(plan.resolve).map(percentage),
        time_limit: finite(plan.time_limit_s),
        max_tries: plan.max_tries.unwrap_or(0),
        backoff: plan.backoff.clone(),
        protocol: plan.protocol.clone(),
        rate: plan.rates.iter().copied().filter(|rate| rate.is_finite()).collect(),
        sweep: plan.sweep,
        latency_limit: finite(plan.latency_limit_ms),
        think_time: finite(plan.think_time_ms),
        // TOML's integers have a sign.
        seed: plan.seed.filter(|seed| i64::try_from(*seed).is_ok()),
        strict_levels: plan.strict_levels,
    };
    match toml::to_string(&file) {
        Ok(text) => format!("{COMMENT}{text}"),
        Err(error) => format!("{COMMENT}# It can't be written: {error}\n"),
    }
}

/// A share as `--resolve` takes it.
fn percentage(share: f64) -> String {
    format!("{}%", (share * 1e8).round() / 1e6)
}

/// The scripts with their weights; or the checked workload, which is named by its cells only.
fn workload(document: &Document) -> Vec<String> {
    let scripts = &document.plan.workload;
    let weighed = |script: &PlannedScript| format!("{}@{}", script.name, script.weight);
    let mix = scripts.iter().map(weighed).collect::<Vec<_>>().join("+");
    match (document.cells.first(), scripts.as_slice()) {
        (Some(cell), [only]) if cell.workload == only.name => vec![only.name.clone()],
        (Some(cell), _) if cell.workload != mix => vec![cell.workload.clone()],
        _ => scripts.iter().map(weighed).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Cell, CellLevel, Client, Plan, PlannedStrategy, Server, VariedParameter};
    use isobench_isolation::EffectiveLevel;

    #[test]
    fn a_checked_workload_is_named_as_on_the_command_line() {
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.plan.workload =
            vec![PlannedScript { name: "write".to_owned(), weight: 1, text: String::new() }];
        assert_eq!(workload(&document), ["write@1"]);
        document.cells.push(Cell::new("registers:keys=5", CellLevel::new(None, EffectiveLevel::Unknown)));
        assert_eq!(workload(&document), ["registers:keys=5"]);
    }

    #[test]
    fn a_plan_is_toml_with_the_options_names() {
        let plan = Plan {
            workload: vec![PlannedScript { name: "a \"b\".sql".to_owned(), weight: 3, text: String::new() }],
            seed: Some(u64::MAX),
            resolve: Some(0.07),
            strategies: vec![PlannedStrategy { name: "for-update".to_owned(), ..PlannedStrategy::default() }],
            vary: vec![VariedParameter {
                name: "rows".to_owned(),
                values: vec!["10".to_owned(), "100".to_owned()],
            }],
            transactions: Some(1000),
            ..Plan::default()
        };
        let text = text(&Document::new(Server::default(), Client::default(), plan));
        let read: toml::Table = text.parse().unwrap();
        assert_eq!(read["workload"][0].as_str(), Some("a \"b\".sql@3"));
        assert_eq!(read["resolve"].as_str(), Some("7%"));
        assert_eq!(read["strategies"][0].as_str(), Some("for-update"));
        assert_eq!(read["vary"][0].as_str(), Some("rows=10,100"));
        assert_eq!(read["transactions"].as_integer(), Some(1000));
        assert!(read.contains_key("max-tries") && !read.contains_key("seed"), "{text}");
    }
}
