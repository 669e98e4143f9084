//! Behind `PgBouncer`: the user's tables are safe, levels are right or refused, and nothing is left
//! in the pool.

use crate::compare::words;
use crate::support::document::{self, cells, rounds};
use crate::support::named::Database;
use crate::support::pgbouncer::PgBouncer;
use crate::support::program::Running;
use crate::support::scene::Scene;

/// The user's tables, with the same names as isobench's.
const USERS_TABLES: &str = "
    create table registers as select 1 as precious;
    create table pgbench_accounts as select 2 as precious;
    create table pgbench_history as select 3 as precious;
    create table items as select 4 as precious";
const USERS_SUMS: &str = "select concat_ws(' ', (select string_agg(t::text || xmin, ' ') from registers t),
    (select string_agg(t::text || xmin, ' ') from pgbench_accounts t),
    (select string_agg(t::text || xmin, ' ') from pgbench_history t), (select string_agg(t::text || xmin, ' ') \
    from items t))";

const REGISTERS: &str = "compare --workload registers --levels rc,ser --clients 4 --transactions 20 --warmup 0.1 \
    --rounds 1 --json out.json";
const PGBENCH: &str =
    "compare -w tpcb-like --levels rr --clients 4 --transactions 10 --warmup 0 --rounds 1 --json out.json";

/// Commands that set levels: one that creates a schema, one that works in the user's, and the
/// others.
const COMMANDS: [&str; 5] =
    [REGISTERS, "run --isolation ser -t 1 -n", PGBENCH, "audit --transactions 1", "probe"];

/// The state of a session whose settings are unchanged.
const UNTOUCHED: &str = "read committed, \"$user\", public, 0";

struct Stand {
    scene: Scene,
    database: Database,
    bouncer: PgBouncer,
    before: (String, String),
}

fn stand(test: &str, settings: &str) -> Option<Stand> {
    let database = Database::new(test)?;
    let scene = Scene::new();
    database.connect().execute(USERS_TABLES).expect("tables");
    let before = (database.inventory(), database.value(USERS_SUMS));
    let bouncer = PgBouncer::start(test, &scene, &database, settings)?;
    Some(Stand { scene, database, bouncer, before })
}

impl Stand {
    /// Fails if one of the user's tables has changed, or a setting is left in one of this many
    /// sessions of the pool.
    fn assert_untouched(&self, sessions: usize) {
        assert_eq!((self.database.inventory(), self.database.value(USERS_SUMS)), self.before);
        assert!(self.bouncer.left_behind(sessions).iter().all(|left| left == UNTOUCHED));
    }
}

#[test]
fn sessions_are_kept_and_so_are_levels() {
    // The start-up parameter that isobench used to rely on is refused by the first and ignored by
    // the second.
    for ignored in ["", "ignore_startup_parameters = options"] {
        let settings = format!("pool_mode = session\n{ignored}");
        let Some(stand) = stand("sessions_are_kept_and_so_are_levels", &settings) else { return };
        stand
            .bouncer
            .run(&stand.scene, &words(REGISTERS))
            .expect(0)
            .says(&["working in schema \"isobench\""]);
        let document = document::read(&stand.scene, "out.json");
        for (cell, level) in cells(&document).iter().zip(["read committed", "serializable"]) {
            assert_eq!(cell["level"]["effective"], level);
            let named = rounds(&document).filter_map(|round| round["levels_named"].get(level)).count();
            assert_eq!(named, 1, "transactions of one row said {level}");
        }
        stand.bouncer.run(&stand.scene, &words(PGBENCH)).expect(0);
        stand.assert_untouched(20);
        stand.bouncer.run(&stand.scene, &["probe", "--levels", "rc", "--json", "probe.json"]).expect(0);
        stand.assert_untouched(20);
    }
}

#[test]
fn shared_sessions_are_refused_before_anything_is_touched() {
    for mode in ["transaction", "statement"] {
        for ignored in ["", "ignore_startup_parameters = options", "server_round_robin = 1"] {
            let settings = format!("pool_mode = {mode}\n{ignored}");
            let test = "shared_sessions_are_refused_before_anything_is_touched";
            let Some(stand) = stand(test, &settings) else { return };
            // All commands make the same query, so one of each kind is enough in addition to the
            // plain settings.
            let commands = if ignored.is_empty() { &COMMANDS[..] } else { &COMMANDS[..2] };
            for command in commands {
                let finished = stand.bouncer.run(&stand.scene, &words(command)).expect(1);
                finished.says(&["transaction pooling", "pool_mode = session"]);
            }
            // Statement pooling doesn't allow blocks, so sessions are queried one after the other.
            stand.assert_untouched(if mode == "transaction" { 20 } else { 0 });
        }
    }
}

#[test]
fn a_pool_with_one_session_is_recognised() {
    let settings = "pool_mode = transaction\ndefault_pool_size = 1";
    let Some(stand) = stand("a_pool_with_one_session_is_recognised", settings) else { return };
    stand.bouncer.run(&stand.scene, &words(REGISTERS)).expect(1).says(&["transaction pooling"]);
    assert_eq!(stand.bouncer.left_behind(1), [UNTOUCHED]);
}

#[test]
fn a_pool_that_does_not_clean_up_is_refused() {
    let settings = "pool_mode = session\nserver_reset_query =";
    let Some(stand) = stand("a_pool_that_does_not_clean_up_is_refused", settings) else { return };
    stand.bouncer.run(&stand.scene, &words(REGISTERS)).expect(1).says(&["server_reset_query"]);
    stand.assert_untouched(20);
}

/// Without a level, `run` doesn't set anything in a session, and works as pgbench does.
#[test]
fn a_run_without_a_level_works_in_every_mode() {
    let settings = "pool_mode = transaction\ndefault_pool_size = 2";
    let Some(stand) = stand("a_run_without_a_level_works_in_every_mode", settings) else { return };
    stand.scene.write("own.sql", "begin;\nselect 1 from registers;\ncommit;\n");
    stand.bouncer.run(&stand.scene, &words("run -n -c 4 -t 20 -f own.sql")).expect(0).prints(&["80/80"]);
    stand.assert_untouched(2);
}

#[test]
fn a_pooler_that_is_named_as_the_server_of_a_race_is_refused() {
    let test = "a_pooler_that_is_named_as_the_server_of_a_race_is_refused";
    for mode in ["session", "transaction"] {
        let Some(stand) = stand(test, &format!("pool_mode = {mode}")) else { return };
        let name = &stand.database.name;
        let ways =
            ["-p", "6432", "-U", "postgres", "-d", name, "--on-this-database", name, "--", "touch ran"];
        let mut race = stand.scene.isobench(&["race", "-h"]);
        race.arg(stand.scene.file("")).args(ways);
        let refused = Running::start(&mut race).finish().expect(1);
        refused.says(&["a pooler, such as PgBouncer", "name the server itself"]);
        assert!(!stand.scene.file("ran").exists(), "a command ran");
        stand.assert_untouched(20);
    }
}
