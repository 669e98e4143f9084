//! Random sets of scripts at the levels that are proved for them, on a server: no split schedule may have
//! an outcome that no order of its transactions has.
//!
//! This shares nothing with the search for interleavings: scripts are made as commands, executed here, and
//! judged by the tables and the answers alone.
//!
//! `ISOBENCH_PROVED_SETS` is the number of sets, `ISOBENCH_PROVED_SEED` the first seed. Each set has a seed
//! of its own, which a failure prints.

mod changed;
mod dice;
mod functions;
mod run;
mod schedules;
mod schema;
mod scripts;
mod sessions;

use std::collections::BTreeSet;

use isobench_database::Asked;
use isobench_isolation::Level;
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Host};
use isobench_program::templates;
use isobench_robustness::{Struck, allocate};
use isobench_script::{Symbols, parse};
use isobench_sql::Catalog;
use isobench_testkit::installed::{postgresql_programs, skip};

use dice::Dice;
use functions::{add_trigger, put_into_functions};
use schedules::{Part, Stage, Tally};
use schema::Schema;
use scripts::{Maker, Script};

/// The number of sets without the variable.
const SETS: u64 = 50;

/// The most sets that are tried at lower levels as well.
const LOWERED: u64 = 15;

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
        let catalog = catalog(stage);
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
            let Some((levels, unknown)) = proved(stage, &catalog, &scripts, any_key) else { continue };
            let below = levels.iter().filter(|level| **level < Level::Serializable).count();
            // Mostly those of which not all are safe at the lowest level.
            let raised = levels.iter().any(|level| *level > Level::ReadCommitted);
            let wanted =
                below > 0 && (unknown == 0 || trial > 5) && (raised || trial > 10 || dice.chance(15));
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
        let scripts: Vec<String> = self.scripts.iter().zip(levels).enumerate().map(script).collect();
        format!("{}{}", self.schema.setup, scripts.join(""))
    }

    /// Tries splits of each script by one and two others.
    fn judge(
        &self,
        stage: &mut Stage,
        levels: &[Level],
        dice: &mut Dice,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let count = self.scripts.len();
        let mut choices = Vec::new();
        for one in 0..count {
            for other in 0..count {
                choices.extend((0..8 / (count * count)).map(|_| vec![one, other]));
                choices.push(vec![one, other]);
            }
        }
        for _ in 0..4 {
            choices.push((0..3).map(|_| dice.below(count)).collect());
        }
        for choice in choices {
            let same = dice.chance(50);
            let mut shared = Vec::new();
            let parts: Vec<Part> = choice
                .into_iter()
                .map(|script| {
                    let length = self.scripts[script].0.len();
                    let draws: Vec<i64> =
                        (0..length).map(|_| if dice.chance(75) { dice.number(1, 2) } else { 3 }).collect();
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

fn catalog(stage: &mut Stage) -> Catalog {
    let connection = &mut stage.monitor;
    Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).expect("a catalog")
}

/// A server with sessions.
fn stage(name: &str) -> Option<(Server, Stage)> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(name, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let settings = vec![("autovacuum".to_owned(), "off".to_owned())];
    let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let host = Host::unix(server.socket_dir(), server.port());
    let stage = Stage::open(&ConnectOptions::new(host, server.user(), server.database()));
    Some((server, stage))
}

/// The levels that are proved, and how many statements aren't understood; `None` if no level is.
fn proved(
    stage: &mut Stage,
    catalog: &Catalog,
    scripts: &[Script],
    any_key: bool,
) -> Option<(Vec<Level>, usize)> {
    let mut symbols = Symbols::new();
    let parsed: Vec<_> = scripts
        .iter()
        .zip(1..)
        .map(|(script, number)| {
            parse(&format!("{number}.sql"), &script.to_string(), &mut symbols).expect("a script")
        })
        .collect();
    let catalog = &mut catalog.clone();
    catalog.read_statements(&parsed, &mut Asked(&mut stage.monitor)).expect("a session");
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
    let Some((_server, mut stage)) = stage("no_split_at_proved_levels_has_an_outcome_of_its_own") else {
        return;
    };
    let first = number("ISOBENCH_PROVED_SEED", 1);
    let count = number("ISOBENCH_PROVED_SETS", SETS);
    let (mut tally, mut at_lower) = (Tally::default(), Tally::default());
    let (mut below, mut unknown, mut lowered, mut broken) = (0, 0, 0, 0);
    let mut failures = Vec::new();
    for seed in first..first + count {
        let set = Set::random(&mut stage, seed);
        below += u64::from(set.levels.iter().any(|level| *level < Level::Serializable));
        unknown += set.unknown;
        let mut dice = Dice::of(seed);
        if let Err(why) = set.judge(&mut stage, &set.levels, &mut dice, &mut tally) {
            let set = set.describe(&set.levels);
            failures.push(format!("ISOBENCH_PROVED_SEED={seed}:\n{set}{why}"));
        }
        // The same at lower levels, so that a judge who sees nothing is noticed.
        if let Some(levels) = lower(&set.levels).filter(|_| lowered < LOWERED) {
            lowered += 1;
            let found = (0..2).try_for_each(|_| set.judge(&mut stage, &levels, &mut dice, &mut at_lower));
            broken += u64::from(found.is_err());
        }
        if failures.len() == 10 {
            break;
        }
    }
    eprintln!(
        "{count} sets, {below} with a level below serializable, {unknown} statements not understood; {tally}; \
         {broken} of {lowered} broken one level lower"
    );
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(3 * below >= count, "{below} of {count} have a level below serializable");
    assert!(count < SETS || 5 * broken >= lowered, "{broken} of {lowered} are broken one level lower");
}

/// Random scripts whose statements are in functions, with a trigger.
#[test]
fn no_split_of_scripts_with_functions_has_an_outcome_of_its_own() {
    let Some((_server, mut stage)) = stage("no_split_of_scripts_with_functions_has_an_outcome_of_its_own")
    else {
        return;
    };
    let first = number("ISOBENCH_PROVED_SEED", 1);
    let count = number("ISOBENCH_PROVED_SETS", SETS) / 2;
    let (mut tally, mut failures) = (Tally::default(), Vec::new());
    let (mut known, mut unknown, mut below) = (0, 0, 0);
    for seed in first..first + count {
        let mut set = Set::random(&mut stage, seed);
        let mut dice = Dice::of(seed);
        let functions = put_into_functions(&mut set.scripts, &mut set.schema, &mut dice);
        let has_trigger = dice.chance(60) && add_trigger(&mut set.schema, &mut dice);
        if functions == 0 && !has_trigger || stage.set_up(&set.schema).is_err() {
            continue;
        }
        let catalog = catalog(&mut stage);
        let Some((levels, unread)) = proved(&mut stage, &catalog, &set.scripts, true) else { continue };
        (known, unknown) = (known + functions.saturating_sub(unread), unknown + unread);
        below += u64::from(levels.iter().any(|level| *level < Level::Serializable));
        set.levels = levels;
        if let Err(why) = set.judge(&mut stage, &set.levels, &mut dice, &mut tally) {
            let set = set.describe(&set.levels);
            failures.push(format!("ISOBENCH_PROVED_SEED={seed}:\n{set}{why}"));
        }
    }
    eprintln!("{known} functions understood, {unknown} not; {below} sets below serializable; {tally}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(known > unknown, "{known} functions understood, {unknown} not");
}

const RC: Level = Level::ReadCommitted;
const RR: Level = Level::RepeatableRead;
const SER: Level = Level::Serializable;

/// Tables `a` and `b` with a key and two values.
const TABLES: &str = "CREATE TABLE a (k int PRIMARY KEY, v int NOT NULL, w int NOT NULL); \
    CREATE TABLE b (k int PRIMARY KEY, v int NOT NULL, w int NOT NULL); \
    INSERT INTO a SELECT g, g % 4, (g + 1) % 3 FROM generate_series(0, 9) g; INSERT INTO b SELECT * FROM a; \
    CREATE FUNCTION of_a(key int) RETURNS int LANGUAGE plpgsql AS 'DECLARE n int; BEGIN \
        SELECT v INTO n FROM a WHERE k = key; RETURN n; END'; \
    CREATE FUNCTION of_b(int) RETURNS int LANGUAGE sql AS 'SELECT v FROM b WHERE k = $1'; \
    CREATE FUNCTION set_b(key int, new_v int) RETURNS void LANGUAGE plpgsql AS 'BEGIN \
        IF new_v > 0 THEN UPDATE b SET v = new_v WHERE k = key; END IF; END'";

/// Scripts, and the lowest levels at which they are safe: one level lower they aren't, on a server.
const KNOWN: [(&str, &[&str], &[Level]); 15] = [
    (
        "a lost update",
        &[
            "\\set a random(1, 2)\nBEGIN;\nSELECT v AS x FROM a WHERE k = :a \\gset\nUPDATE a SET v = :x + 1 WHERE k = :a;\nCOMMIT;\n",
        ],
        &[RR],
    ),
    (
        "write skew",
        &[
            "BEGIN;\nSELECT v AS x FROM a WHERE k = 1 \\gset\nUPDATE b SET v = :x + 1 WHERE k = 1;\nCOMMIT;\n",
            "BEGIN;\nSELECT v AS x FROM b WHERE k = 1 \\gset\nUPDATE a SET v = :x + 2 WHERE k = 1;\nCOMMIT;\n",
        ],
        &[SER, SER],
    ),
    (
        "write skew in functions",
        &[
            "BEGIN;\nSELECT of_a(1) AS x \\gset\nSELECT set_b(1, :x + 1);\nCOMMIT;\n",
            "BEGIN;\nSELECT of_b(1) AS x \\gset\nUPDATE a SET v = :x + 2 WHERE k = 1;\nCOMMIT;\n",
        ],
        &[SER, SER],
    ),
    (
        "a report of two states",
        &[
            "BEGIN;\nSELECT v FROM a WHERE k = 1;\nSELECT v FROM b WHERE k = 1;\nCOMMIT;\n",
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 1;\nUPDATE b SET v = v + 1 WHERE k = 1;\nCOMMIT;\n",
        ],
        &[RR, RC],
    ),
    (
        "who waits for a row has joined it as it was",
        &[
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
            "SELECT l.v, r.w FROM a l LEFT JOIN b r ON r.k = l.v WHERE l.k = 2 FOR SHARE OF l;\n",
        ],
        &[RC, RR],
    ),
    (
        "who waits to change a row has joined it as it was",
        &[
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
            "UPDATE a SET w = r.w + 5 FROM b r WHERE a.k = 2 AND r.k = a.v;\n",
        ],
        &[RC, RR],
    ),
    (
        "who waits to change a row has found others for it as it was",
        &[
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
            "UPDATE a SET w = w + 5 WHERE k = 2 AND EXISTS (SELECT 1 FROM b WHERE b.k = a.v);\n",
        ],
        &[RC, RR],
    ),
    (
        "who waits for the first row has ordered them as they were",
        &[
            "BEGIN;\nUPDATE a SET v = v + 4, w = w + 1 WHERE k = 1;\nCOMMIT;\n",
            "SELECT k, w FROM a WHERE k IN (1, 2) ORDER BY v LIMIT 1 FOR UPDATE;\n",
        ],
        &[RC, RR],
    ),
    (
        "a value that is compared with that of another row is tested again",
        &[
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
            "UPDATE a SET w = w + 5 WHERE k = 2 AND v < (SELECT b.v FROM b WHERE b.k = a.v);\n",
        ],
        &[RC, RC],
    ),
    (
        "a row that others are found for in a column that nobody changes",
        &[
            "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
            "UPDATE a SET v = a.v + r.v FROM b r WHERE a.k = 2 AND r.k = a.w;\n",
        ],
        &[RC, RC],
    ),
    (
        "a set of rows that is locked is summed up",
        &["\\set a random(1, 2)\nBEGIN;\nSELECT k FROM a WHERE w = :a ORDER BY k FOR UPDATE;\n\
             SELECT coalesce(sum(v), 0) AS x FROM a WHERE w = :a \\gset\nUPDATE a SET v = :x + 1 WHERE k = 1;\nCOMMIT;\n"],
        &[RC],
    ),
    (
        "rows leave a set that is locked and counted",
        &["\\set a random(1, 9)\nBEGIN;\nSELECT k FROM a WHERE w = 1 ORDER BY k FOR NO KEY UPDATE;\n\
             SELECT count(*) AS x FROM a WHERE w = 1 \\gset\n\\if :x >= 2\nUPDATE a SET w = 0 WHERE k = :a;\n\\endif\nCOMMIT;\n"],
        &[RC],
    ),
    (
        "a table is locked before it is summed up",
        &[
            "\\set a random(1, 2)\nBEGIN;\nLOCK TABLE a IN SHARE ROW EXCLUSIVE MODE;\n\
             SELECT coalesce(sum(v), 0) AS x FROM a WHERE w >= 1 \\gset\nUPDATE b SET v = :x + 1 WHERE k = :a;\nCOMMIT;\n",
            "\\set a random(1, 2)\nBEGIN;\nUPDATE a SET v = v + 1 WHERE k = :a;\nSELECT v FROM b WHERE k = :a;\nCOMMIT;\n",
        ],
        &[RC, RC],
    ),
    (
        "workers take a row that no other worker has",
        &[
            "BEGIN;\nSELECT k AS x, v AS y FROM a WHERE w = 1 ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n\
             UPDATE a SET w = 0, v = :y + 1 WHERE k = :x;\nUPDATE b SET v = v + 1 WHERE k = :x;\nCOMMIT;\n",
            "\\set a random(1, 2)\nUPDATE a SET w = 1, v = v + 1 WHERE k = :a;\n",
        ],
        &[RC, RC],
    ),
    (
        "a worker that takes a row of those that others delete",
        &[
            "BEGIN;\nSELECT k AS x FROM a WHERE v = 1 ORDER BY k LIMIT 1 FOR UPDATE SKIP LOCKED \\gset\n\
             UPDATE a SET v = 0 WHERE k = :x;\nCOMMIT;\n",
            "\\set a random(1, 2)\nDELETE FROM a WHERE k = :a;\n",
        ],
        &[RC, RC],
    ),
];

#[test]
fn one_level_lower_than_proved_is_shown_to_be_unsafe() {
    let Some((_server, mut stage)) = stage("one_level_lower_than_proved_is_shown_to_be_unsafe") else {
        return;
    };
    for (name, texts, wanted) in KNOWN {
        let schema = Schema::known(TABLES, &[("a", &["k", "v", "w"]), ("b", &["k", "v", "w"])]);
        let scripts: Vec<Script> = texts.iter().map(|text| Script::read(text)).collect();
        stage.set_up(&schema).expect("tables");
        let catalog = catalog(&mut stage);
        let (levels, unknown) = proved(&mut stage, &catalog, &scripts, false).expect("levels");
        assert_eq!((levels.as_slice(), unknown), (wanted, 0), "{name}");
        let set = Set { schema, scripts, levels, unknown };
        let mut tally = Tally::default();
        let mut judged = |levels: &[Level], times: usize| {
            let mut dice = Dice::of(1);
            (0..times).try_for_each(|_| set.judge(&mut stage, levels, &mut dice, &mut tally))
        };
        assert_eq!(judged(&set.levels, 1), Ok(()), "{name}");
        for (place, level) in wanted.iter().enumerate().filter(|(_, level)| **level > Level::ReadCommitted) {
            let mut levels = set.levels.clone();
            levels[place] =
                if *level == Level::Serializable { Level::RepeatableRead } else { Level::ReadCommitted };
            assert!(judged(&levels, 10).is_err(), "{name} at {levels:?}");
        }
    }
}

/// A query that locks the rows of a subquery waits for them, and has others as they were.
#[test]
fn rows_of_subqueries_that_are_locked_are_not_taken_for_read() {
    let Some((_server, mut stage)) = stage("rows_of_subqueries_that_are_locked_are_not_taken_for_read")
    else {
        return;
    };
    let schema = Schema::known(TABLES, &[("a", &["k", "v", "w"]), ("b", &["k", "v", "w"])]);
    let scripts = [
        "BEGIN;\nUPDATE a SET v = v + 1 WHERE k = 2;\nUPDATE b SET v = v + 1 WHERE k = 2;\nCOMMIT;\n",
        "SELECT q.v, r.v FROM (SELECT v FROM a WHERE k = 2) q, b r WHERE r.k = 2 FOR UPDATE OF q;\n",
    ];
    let scripts: Vec<Script> = scripts.into_iter().map(Script::read).collect();
    stage.set_up(&schema).expect("tables");
    let catalog = catalog(&mut stage);
    let (levels, unknown) = proved(&mut stage, &catalog, &scripts, false).expect("levels");
    let set = Set { schema, scripts, levels, unknown };
    let judged = set.judge(&mut stage, &[RC, RC], &mut Dice::of(1), &mut Tally::default());
    assert!(judged.is_err(), "it is safe on the server");
    assert!(set.levels[1] > RC, "{unknown} unknown, {:?}", set.levels);
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
