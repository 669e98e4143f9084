//! The statements that are sent as written because the columns that show their rows would change
//! what the server does, as `EXPLAIN` shows before anything is measured.
//!
//! Not here: how plans are compared (`isobench_observation`), and the run that gives variables their
//! values (`trial.rs`).

use std::collections::BTreeMap;

use isobench_observation::{Dark, Forms, Plans};
use isobench_runner::RunWorkload;
use isobench_script::{CommandKind, Piece, Script, Slot, Sql, Symbols, Variables};

use crate::failure::{Failure, Outcome};
use crate::site::Site;

/// The reasons to send statements as written, and what their plans scan, by their texts as they are where
/// cells don't take turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsWritten {
    reasons: BTreeMap<String, Dark>,
    scans: BTreeMap<String, Vec<String>>,
}

impl AsWritten {
    /// No statement.
    pub const fn none() -> AsWritten {
        AsWritten { reasons: BTreeMap::new(), scans: BTreeMap::new() }
    }

    /// The reason for a statement's text in this place.
    pub fn reason(&self, site: &Site, text: &str) -> Option<Dark> {
        self.reasons.get(site.as_alone(text).as_ref()).cloned()
    }

    /// Adds a reason; the first one counts. Returns false if there was one.
    pub fn add(&mut self, site: &Site, text: &str, reason: Dark) -> bool {
        let text = site.as_alone(text).into_owned();
        if self.reasons.contains_key(&text) {
            return false;
        }
        self.reasons.insert(text, reason);
        true
    }

    /// The tables that a statement's plan scans as a whole.
    pub fn scans(&self, site: &Site, text: &str) -> Vec<String> {
        self.scans.get(site.as_alone(text).as_ref()).cloned().unwrap_or_default()
    }

    /// Adds what a statement's plan scans as a whole.
    fn add_scans(&mut self, site: &Site, text: &str, scans: &[String]) {
        if !scans.is_empty() {
            self.scans.entry(site.as_alone(text).into_owned()).or_insert_with(|| scans.to_vec());
        }
    }

    /// Statements of which another machine has the reasons.
    pub fn of_another(texts: &[String]) -> AsWritten {
        let reasons = texts.iter().map(|text| (text.clone(), Dark::Unexplained)).collect();
        AsWritten { reasons, scans: BTreeMap::new() }
    }

    /// The texts.
    pub fn texts(&self) -> Vec<String> {
        self.reasons.keys().cloned().collect()
    }

    /// The first statement with its reason, as a sentence; `None` if there is none.
    pub fn first(&self) -> Option<String> {
        self.reasons.iter().next().map(|(text, reason)| format!("{text}: {reason}"))
    }
}

/// The variables as they were when commands were sent in a trial, by script and line.
#[derive(Debug, Default)]
pub struct Values(BTreeMap<(String, u32), BTreeMap<String, String>>);

impl Values {
    /// Keeps the variables of a command.
    pub fn note(&mut self, script: &str, line: u32, variables: &Variables, symbols: &Symbols) {
        let value = |name: &str| Some((name.to_owned(), text(variables, symbols.lookup(name)?)?));
        let values = symbols.names().filter_map(value).collect();
        self.0.insert((script.to_owned(), line), values);
    }

    fn get(&self, script: &Script, command: usize, name: &str) -> Option<String> {
        let line = script.commands.get(command)?.line;
        self.0.get(&(script.name.clone(), line))?.get(name).cloned()
    }
}

fn text(variables: &Variables, slot: Slot) -> Option<String> {
    let mut text = Vec::new();
    variables.write_text(slot, &mut text).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// Explains both forms of each statement in a session like those of the scripts, whose statements
/// `workload` holds as written, and adds those to be sent as written. Settings that a script makes
/// are made before its statements.
///
/// # Errors
/// The server is gone.
pub fn compare_plans(
    site: &Site,
    workload: &RunWorkload,
    forms: &[Forms],
    values: &Values,
    as_written: &mut AsWritten,
) -> Outcome {
    if forms.is_empty() {
        return Ok(());
    }
    let mut connection = site.open().map_err(Failure::setup)?;
    let mut query = |sql: &str| {
        connection.query(sql).map(|result| result.rows).map_err(|error| {
            error.server().map_or_else(|| error.to_string(), |server| server.message.clone())
        })
    };
    for (place, weighted) in workload.mix.scripts().iter().enumerate() {
        let script = &weighted.script;
        let mut plans = Plans::start(&mut query).map_err(Failure::setup)?;
        for (command, parsed) in script.commands.iter().enumerate() {
            let CommandKind::Sql(sql) = &parsed.kind else { continue };
            let value = |slot: Slot| {
                let noted = values.get(script, command, workload.symbols.name(slot));
                noted.or_else(|| text(&workload.variables, slot))
            };
            if sets(sql) {
                plans.set(&substituted(sql, &value));
            }
            for own in forms.iter().filter(|own| (own.script, own.command) == (place, command)) {
                if let Some(reason) = plans.compare(own, &value).map_err(Failure::setup)? {
                    as_written.add(site, &own.text, reason);
                }
                as_written.add_scans(site, &own.text, plans.scans());
            }
        }
        plans.end().map_err(Failure::setup)?;
    }
    connection.close();
    Ok(())
}

/// True for a command that makes a setting.
fn sets(sql: &Sql) -> bool {
    let first = sql.parameterized.split_ascii_whitespace().next().unwrap_or_default();
    sql.statements.len() == 1 && ["set", "reset"].iter().any(|word| first.eq_ignore_ascii_case(word))
}

fn substituted(sql: &Sql, value: &dyn Fn(Slot) -> Option<String>) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable { slot, written } => value(*slot).unwrap_or_else(|| written.clone()),
    };
    sql.pieces.iter().map(piece).collect()
}
