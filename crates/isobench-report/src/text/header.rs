//! The lines above the table: server, client, plan.
//!
//! Not here: factors that vary; they are in the table.

use std::collections::BTreeMap;

use super::layout::wrap;
use crate::document::{Document, Server};
use crate::factors::{FactorId, constant};
use crate::numbers::{counted, short};
use crate::words::length;

/// The lines above the table.
pub fn lines(document: &Document, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if !document.complete {
        let reason =
            document.incomplete_reason.as_deref().unwrap_or("it ended before everything was measured");
        lines.extend(wrap(&format!("INCOMPLETE: {reason}"), width, 2));
    }
    let texts = [
        Some(servers(document)),
        settings(&document.server.settings),
        Some(client(document)),
        Some(plan(document)),
    ];
    lines.extend(texts.into_iter().flatten().flat_map(|text| wrap(&text, width, 2)));
    lines
}

/// The server, or all versions of it that were measured.
fn servers(document: &Document) -> String {
    let Server { product, embedded, host, hot_standby, .. } = &document.server;
    let product = if product.is_empty() { "unknown product" } else { product };
    let started = if *embedded { " (started by isobench)" } else { "" };
    let standby = if *hot_standby { ", a hot standby" } else { "" };
    let host = host.as_ref().map_or_else(String::new, |host| format!(", host {host}"));
    let versions: Vec<&str> = document.servers().map(|server| server.version.as_str()).collect();
    let word = if versions.len() > 1 { "Servers" } else { "Server" };
    format!("{word}: {}{standby}{host}{started}", join(&[product, &join(&versions, ", ")], " "))
}

fn settings(settings: &BTreeMap<String, String>) -> Option<String> {
    let settings: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!settings.is_empty()).then(|| format!("Settings: {}", settings.join(", ")))
}

fn client(document: &Document) -> String {
    let client = &document.client;
    let cores = if client.cores > 0 { counted(client.cores.into(), "core") } else { String::new() };
    let version = join(&["isobench", &client.version], " ");
    format!("Client: {}", join(&[&version, &client.cpu, &cores, &client.os], ", "))
}

fn plan(document: &Document) -> String {
    let plan = &document.plan;
    let mut parts = Vec::new();
    if let Some(first) = document.cells.first() {
        parts.extend(constant(document).iter().filter_map(|factor| match factor.id() {
            // No strategy and no rate are nothing to speak of; rates have words of their own.
            Some(FactorId::Strategy) if first.strategy.is_none() => None,
            Some(FactorId::Rate) => None,
            Some(FactorId::Workload) => Some(first.workload.clone()),
            _ => Some(factor.said(first)),
        }));
    }
    parts.extend(length(plan));
    if plan.warmup() > 0.0 {
        parts.push(format!("{} s warm-up", plan.warmup()));
    }
    parts.push(plan.max_tries().map_or_else(
        || "unlimited attempts".to_owned(),
        |tries| format!("at most {}", counted(tries.into(), "attempt")),
    ));
    if !plan.rates().is_empty() {
        let rates: Vec<String> = plan.rates().iter().map(|rate| short(*rate)).collect();
        parts.push(format!("{} transactions per second wanted", rates.join(", ")));
    }
    parts.extend(plan.latency_limit.map(|limit| format!("latency limit {} ms", short(limit))));
    parts.extend((plan.connect == Some(true)).then(|| "a connection for each transaction".to_owned()));
    parts.extend(plan.think_time.map(|pause| format!("think time {} ms", short(pause))));
    parts.extend(plan.seed.map(|seed| format!("seed {seed}")));
    format!("Measured: {}", parts.join(", "))
}

fn join(parts: &[&str], between: &str) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(between)
}
