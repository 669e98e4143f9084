//! A level for each script of a cell: how transactions ask for it, and what the server makes of that.
//!
//! Where any cell of a comparison has levels for each script, the transactions of all cells ask for
//! theirs, so that all send the same bytes but for the level's name. Not here: the scripts' text
//! (`isobench_script`), and what is promised to such a mixture (`isobench_database`).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use isobench_database::Product;
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, EffectiveLevel, Level};
use isobench_pgwire::Connection;
use isobench_result::{Round, ScriptLevel};
use isobench_runner::{Protocol, ScriptRecord};
use isobench_script::{Mix, Weighted};

use crate::evidence;
use crate::failure::{Failure, Outcome};
use crate::sessions::agree;

/// Changes scripts so that each of their transactions asks for the modes of its script, and works in this
/// schema, if one is given.
///
/// # Errors
/// A script's transactions can't; the message has the line, and what to do.
pub fn ask(mix: &mut Mix, allocation: &Allocation, schema: Option<&str>, protocol: Protocol) -> Outcome {
    let path = |name: &str| format!("SET LOCAL search_path = \"{}\"", name.replace('"', "\"\""));
    let path = schema.map(path);
    let option = if path.is_some() { "--vary: endpoint" } else { "--allocation" };
    for script in mix.scripts_mut() {
        let modes = allocation.of(&script.name).sql();
        let changed = script.in_modes(&modes, path.as_deref(), protocol == Protocol::Simple);
        *script = changed
            .map_err(|error| Failure::setup(format!("{option}: {}:{}: {error}", script.name, error.line)))?;
    }
    Ok(())
}

/// The modes of each script of a mix, in its order.
pub fn of_scripts(mix: &Mix, allocation: &Allocation) -> Vec<Mode> {
    mix.scripts().iter().map(|weighted| allocation.of(&weighted.script.name)).collect()
}

/// What the server says of transactions that ask for the modes of each script, in both ways in which
/// scripts ask: with BEGIN, and in front of a statement in the same message.
///
/// # Errors
/// The server is gone, or refuses them.
pub fn read_back(
    connection: &mut Connection,
    product: &Product,
    mix: &Mix,
    allocation: &Allocation,
) -> Outcome<Vec<ScriptLevel>> {
    let mut known: BTreeMap<Mode, EffectiveLevel> = BTreeMap::new();
    for mode in of_scripts(mix, allocation) {
        if let Entry::Vacant(entry) = known.entry(mode) {
            entry.insert(asked(connection, product, mode).map_err(Failure::setup)?);
        }
    }
    Ok(levels(mix, allocation, |mode| known.get(&mode).cloned().unwrap_or(EffectiveLevel::Unknown)))
}

/// The level of each script of a mix, in its order, of which `effective` is in effect.
pub fn levels(
    mix: &Mix,
    allocation: &Allocation,
    effective: impl Fn(Mode) -> EffectiveLevel,
) -> Vec<ScriptLevel> {
    let level = |weighted: &Weighted| {
        let script = &weighted.script.name;
        let mode = allocation.of(script);
        ScriptLevel::new(script.clone(), mode, effective(mode))
    };
    mix.scripts().iter().map(level).collect()
}

/// What the server says of a transaction that asks for these modes.
///
/// # Errors
/// The server is gone, or refuses them.
pub(crate) fn asked(
    connection: &mut Connection,
    product: &Product,
    mode: Mode,
) -> Result<EffectiveLevel, isobench_pgwire::Error> {
    let (modes, question) = (mode.sql(), product.level_question());
    let ways = [format!("BEGIN {modes}; {question}; COMMIT"), format!("SET TRANSACTION {modes}; {question}")];
    let answer = |way: &String| -> Result<EffectiveLevel, isobench_pgwire::Error> {
        Ok(EffectiveLevel::from_setting(&connection.value(way)?.unwrap_or_default()))
    };
    let answers: Vec<EffectiveLevel> = ways.iter().map(answer).collect::<Result<_, _>>()?;
    Ok(agree(&answers))
}

/// Notes in a round what contradicts the levels of its scripts: answers of their transactions, and what
/// none of the levels can have. Returns what the cell ran at: the allocation's name, or another name if
/// something contradicts it. `opened` is what the server said of them before, `run` what their
/// transactions said, in the same order; `alone` is true if nothing else used the server.
pub fn weigh(
    allocation: &Allocation,
    opened: &[ScriptLevel],
    run: &[ScriptRecord],
    product: &Product,
    alone: bool,
    round: &mut Round,
) -> EffectiveLevel {
    let mut found: Vec<String> = Vec::new();
    for (level, record) in opened.iter().zip(run) {
        let answers = record.levels.keys().map(|name| EffectiveLevel::from_setting(name));
        let said = agree(&std::iter::once(level.effective.clone()).chain(answers).collect::<Vec<_>>());
        if said.differs_from(level.requested) {
            found.push(format!(
                "transactions of {} said they ran at {said}, and {} was asked for",
                level.script, level.requested
            ));
        }
    }
    let levels: Vec<Level> = opened.iter().map(|level| level.requested).collect();
    found.extend(evidence::impossible(product, &levels, round, alone));
    round.contradictions = found;
    EffectiveLevel::Other(if round.contradictions.is_empty() {
        allocation.to_string()
    } else {
        "other levels".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isobench_database::products::POSTGRESQL;
    use isobench_result::Conflict;
    use isobench_stats::{LatencyHistogram, Ledger};

    use super::*;

    fn weighed(answers: &[&str], reason: &str) -> (EffectiveLevel, Vec<String>) {
        let allocation: Allocation = "report=rr,*=rc".parse().unwrap();
        let level = |script: &str, level| {
            ScriptLevel::new(script.to_owned(), Mode::of(level), EffectiveLevel::Standard(level))
        };
        let opened = [level("report", Level::RepeatableRead), level("sale", Level::ReadCommitted)];
        let record = |answer: &&str| ScriptRecord {
            levels: [((*answer).to_owned(), 3)].into(),
            ..ScriptRecord::default()
        };
        let run: Vec<ScriptRecord> = answers.iter().map(record).collect();
        let conflict = Conflict {
            sqlstate: "40001".to_owned(),
            command: "END;".to_owned(),
            script: None,
            line: None,
            reason: reason.to_owned(),
            object: None,
            count: 5,
        };
        let (ledger, latency) = (Ledger::default(), LatencyHistogram::new());
        let mut round = Round::from_ledger(1, &ledger, &latency, Duration::from_secs(1), vec![conflict]);
        let effective = weigh(&allocation, &opened, &run, &POSTGRESQL, true, &mut round);
        (effective, round.contradictions)
    }

    #[test]
    fn a_script_that_ran_at_another_level_contradicts_the_row() {
        let update = "concurrent update";
        let (effective, found) = weighed(&["repeatable read", "read committed"], update);
        assert_eq!((effective.to_string().as_str(), found.len()), ("report: rr; else rc", 0));
        let (effective, found) = weighed(&["repeatable read", "serializable"], update);
        assert_eq!(effective.to_string(), "other levels");
        assert!(found[0].starts_with("transactions of sale said they ran at mixed ("), "{found:?}");
    }

    #[test]
    fn a_conflict_that_no_level_of_the_row_can_have_contradicts_it() {
        let reason = "read/write dependencies: identification as a pivot";
        let (effective, found) = weighed(&["repeatable read", "read committed"], reason);
        assert_eq!(effective.to_string(), "other levels");
        assert!(found[0].contains("none of the levels can have"), "{found:?}");
    }
}
