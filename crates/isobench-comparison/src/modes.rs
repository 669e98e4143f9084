//! A level for each script of a cell: how transactions ask for it, and what the server makes of that.
//!
//! Where any cell of a comparison has levels for each script, the transactions of all cells ask for
//! theirs, so that all send the same bytes but for the level's name. Not here: the scripts' text
//! (`isobench_script`), and what is promised to such a mixture (`isobench_database`).

use isobench_database::Product;
use isobench_isolation::history::Mode;
use isobench_isolation::{Allocation, EffectiveLevel};
use isobench_pgwire::Connection;
use isobench_result::{Round, ScriptLevel};
use isobench_runner::{Protocol, ScriptRecord};
use isobench_script::Mix;

use crate::failure::{Failure, Outcome};
use crate::sessions::agree;

/// Changes scripts so that each of their transactions asks for the modes of its script.
///
/// # Errors
/// A script's transactions can't; the message has the line, and what to do.
pub fn ask(mix: &mut Mix, allocation: &Allocation, protocol: Protocol) -> Outcome {
    for script in mix.scripts_mut() {
        let modes = allocation.of(&script.name).sql();
        let changed = script.in_modes(&modes, protocol == Protocol::Simple);
        *script = changed.map_err(|error| {
            Failure::setup(format!("--allocation: {}:{}: {error}", script.name, error.line))
        })?;
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
    let mut known: Vec<(Mode, EffectiveLevel)> = Vec::new();
    let mut levels = Vec::new();
    for weighted in mix.scripts() {
        let script = weighted.script.name.clone();
        let mode = allocation.of(&script);
        let effective = match known.iter().find(|(other, _)| *other == mode) {
            Some((_, effective)) => effective.clone(),
            None => {
                let effective = asked(connection, product, mode)?;
                known.push((mode, effective.clone()));
                effective
            }
        };
        levels.push(ScriptLevel::new(script, mode, effective));
    }
    Ok(levels)
}

fn asked(connection: &mut Connection, product: &Product, mode: Mode) -> Outcome<EffectiveLevel> {
    let (modes, question) = (mode.sql(), product.level_question());
    let ways = [format!("BEGIN {modes}; {question}; COMMIT"), format!("SET TRANSACTION {modes}; {question}")];
    let answers: Vec<EffectiveLevel> = ways
        .iter()
        .map(|way| Ok(EffectiveLevel::from_setting(&connection.value(way)?.unwrap_or_default())))
        .collect::<Result<_, isobench_pgwire::Error>>()
        .map_err(Failure::setup)?;
    Ok(agree(&answers))
}

/// Notes in a round what contradicts the levels of its scripts: answers of their transactions, and
/// conflicts that none of the levels can have. Returns what the cell ran at: the allocation's name, or
/// another name if something contradicts it. `opened` is what the server said of them before, `run` what
/// their transactions said, in the same order.
pub fn weigh(
    allocation: &Allocation,
    opened: &[ScriptLevel],
    run: &[ScriptRecord],
    product: &Product,
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
    for conflict in &round.conflicts {
        if opened.iter().all(|level| product.contradicts(level.requested, &conflict.reason)) {
            found.push(format!(
                "{} attempts ended in {} ({}), which none of the levels can have",
                conflict.count, conflict.sqlstate, conflict.reason
            ));
        }
    }
    round.contradictions = found;
    EffectiveLevel::Other(if round.contradictions.is_empty() {
        allocation.to_string()
    } else {
        "other levels".to_owned()
    })
}
