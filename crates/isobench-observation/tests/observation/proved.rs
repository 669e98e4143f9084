//! Random sets of scripts at the levels that are proved for them, on a server: no split schedule may have
//! an outcome that no order of its transactions has.
//!
//! This shares nothing with the search for interleavings: scripts are made as commands, executed here, and
//! judged by the tables and the answers alone.
//!
//! `ISOBENCH_PROVED_SETS` is the number of sets, `ISOBENCH_PROVED_SEED` the first seed. Each set has a seed
//! of its own, which a failure prints.

mod dice;
mod run;
mod schedules;
mod schema;
mod scripts;
mod sessions;

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_observation::{Catalog, templates};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Host};
use isobench_robustness::{Struck, allocate};
use isobench_script::{Symbols, parse};
use isobench_testkit::installed::{postgresql_programs, skip};

use dice::Dice;
use schedules::{Part, Stage, Tally};
use schema::Schema;
use scripts::{Maker, Script};

/// The number of sets without the variable.
const SETS: u64 = 50;

/// Scripts, and the levels that are proved for them.
struct Set {
    schema: Schema,
    scripts: Vec<Script>,
    levels: Vec<Level>,
    unknown: usize,
}

impl Set {
    /// A set for a seed. Most have a level below serializable.
    fn random(stage: &mut Stage, seed: u64) -> Set {
        let mut dice = Dice::of(seed);
        let schema = loop {
            let schema = Schema::random(&mut dice);
            if stage.set_up(&schema).is_ok() {
                break schema;
            }
        };
        let connection = &mut stage.monitor;
        let catalog =
            Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).expect("a catalog");
        for trial in 0.. {
            let mut any_key = false;
            let count = [1, 2, 2, 2, 3, 3][dice.below(6)];
            let scripts: Vec<Script> = (0..count)
                .map(|_| {
                    let maker = Maker::new(&mut dice, &schema);
                    any_key |= maker.any_key;
                    maker.script()
                })
                .collect();
            let Some((levels, unknown)) = proved(&catalog, &scripts, any_key) else { continue };
            let below = levels.iter().filter(|level| **level < Level::Serializable).count();
            // Mostly those of which not all are safe at the lowest level.
            let raised = levels.iter().any(|level| *level > Level::ReadCommitted);
            let wanted = below > 0 && (unknown == 0 || trial > 5) && (raised || trial > 10 || dice.chance(15));
            if wanted || trial > 30 {
                return Set { schema, scripts, levels, unknown };
            }
        }
        unreachable!("one is taken in the end")
    }

    fn describe(&self, levels: &[Level]) -> String {
        let script = |(number, (script, level)): (usize, (&Script, &Level))| {
            format!("-- {}.sql, {level}\n{script}", number + 1)
        };
        let scripts: Vec<String> =
            self.scripts.iter().zip(levels).enumerate().map(script).collect();
        format!("{}{}", self.schema.setup, scripts.join(""))
    }

    /// Tries splits of each script by one and two others.
    fn judge(&self, stage: &mut Stage, levels: &[Level], dice: &mut Dice, tally: &mut Tally) -> Result<(), String> {
        let count = self.scripts.len();
        let mut choices = Vec::new();
        for one in 0..count {
            for other in 0..count {
                choices.extend((0..12 / (count * count)).map(|_| vec![one, other]));
                choices.push(vec![one, other]);
            }
        }
        for _ in 0..6 {
            choices.push((0..3).map(|_| dice.below(count)).collect());
        }
        for choice in choices {
            let same = dice.chance(50);
            let mut shared = Vec::new();
            let parts: Vec<Part> = choice
                .into_iter()
                .map(|script| {
                    let length = self.scripts[script].0.len();
                    let draws: Vec<i64> = (0..length).map(|_| if dice.chance(75) { dice.number(1, 2) } else { 3 }).collect();
                    if shared.len() < length {
                        shared.extend(draws[shared.len()..].iter().copied());
                    }
                    Part { script, draws: if same { shared[..length].to_vec() } else { draws } }
                })
                .collect();
            stage.splits(&self.schema, &self.scripts, &parts, levels, tally)?;
        }
        Ok(())
    }
}

/// The levels that are proved, and how many statements aren't understood; `None` if no level is.
fn proved(catalog: &Catalog, scripts: &[Script], any_key: bool) -> Option<(Vec<Level>, usize)> {
    let mut symbols = Symbols::new();
    let parsed: Vec<_> = scripts
        .iter()
        .zip(1..)
        .map(|(script, number)| {
            parse(&format!("{number}.sql"), &script.to_string(), &mut symbols).expect("a script")
        })
        .collect();
    let mut found = templates(&parsed, &symbols, catalog, &BTreeSet::new());
    if any_key {
        let all = found.statements.iter().map(|statement| statement.at.clone()).collect();
        found = templates(&parsed, &symbols, catalog, &all);
    }
    let unknown = found.statements.iter().filter(|statement| statement.unknown.is_some()).count();
    let allocated = allocate(&found.programs, &Struck::new());
    allocated.unprotected.is_empty().then_some((allocated.levels, unknown))
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn no_split_at_proved_levels_has_an_outcome_of_its_own() {
    let name = "no_split_at_proved_levels_has_an_outcome_of_its_own";
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        return skip(name, "no installed PostgreSQL (pg_config)");
    };
    let settings = vec![("autovacuum".to_owned(), "off".to_owned())];
    let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let host = Host::unix(server.socket_dir(), server.port());
    let mut stage = Stage::open(&ConnectOptions::new(host, server.user(), server.database()));
    let first = number("ISOBENCH_PROVED_SEED", 1);
    let count = number("ISOBENCH_PROVED_SETS", SETS);
    let (mut tally, mut at_lower) = (Tally::default(), Tally::default());
    let (mut below, mut unknown, mut lowered, mut broken) = (0, 0, 0, 0);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let begun = std::time::Instant::now();
        let set = Set::random(&mut stage, seed);
        if std::env::var("DBG").is_ok() { eprintln!("made {:?}", begun.elapsed()); }
        below += u64::from(set.levels.iter().any(|level| *level < Level::Serializable));
        unknown += set.unknown;
        let mut dice = Dice::of(seed);
        if let Err(why) = set.judge(&mut stage, &set.levels, &mut dice, &mut tally) {
            let set = set.describe(&set.levels);
            failures.push(format!("ISOBENCH_PROVED_SEED={seed}:\n{set}{why}"));
        }
        // The same at lower levels, so that a judge who sees nothing is noticed.
        if let Some(levels) = lower(&set.levels).filter(|_| std::env::var("NOLOW").is_err()) {
            lowered += 1;
            let found = (0..3).try_for_each(|_| set.judge(&mut stage, &levels, &mut dice, &mut at_lower));
            if std::env::var("DBG2").is_ok() && found.is_ok() { eprintln!("UNBROKEN {}", set.describe(&set.levels)); }
            broken += u64::from(found.is_err());
        }
        if std::env::var("DBG").is_ok() { eprintln!("{seed} {:?} {:?} {tally:?} {broken}/{lowered} {:?}", set.levels, begun.elapsed(), failures.last()); }
        if failures.len() == 10 {
            break;
        }
    }
    eprintln!(
        "{count} sets, {below} with a level below serializable, {unknown} statements not understood; {tally:?}; \
         {broken} of {lowered} broken one level lower"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(3 * below >= count, "{below} of {count} have a level below serializable");
    assert!(count < SETS || 3 * broken >= lowered, "{broken} of {lowered} are broken one level lower");
}

/// Levels of which each is one lower; `None` if all are the lowest.
fn lower(levels: &[Level]) -> Option<Vec<Level>> {
    let one = |level: &Level| match level {
        Level::Serializable => Level::RepeatableRead,
        _ => Level::ReadCommitted,
    };
    let lowered: Vec<Level> = levels.iter().map(one).collect();
    (lowered != levels).then_some(lowered)
}
