//! What an observer can see of a server: by product, version and rights, found out once.

use std::time::Duration;

use isobench_database::Database;
use isobench_database::products::{COCKROACHDB, POSTGRESQL, YUGABYTEDB};

use crate::counters::Counters;
use crate::session::{ObserverSession, Refusal};
use crate::views::{COCKROACHDB_VIEWS, POSTGRESQL_VIEWS};
use crate::{activity, locks};

/// What can be seen.
#[derive(Debug, Default)]
pub struct Server {
    /// The sessions can be sampled.
    pub sees_sessions: bool,
    /// The locks can be sampled.
    pub sees_locks: bool,
    /// The counters that can be read.
    pub counters: Counters,
    /// How our own transactions are made to count.
    pub flush: Option<Flush>,
    /// The process of our session and the time it began, in seconds since 1970.
    pub own_process: Option<(u32, f64)>,
    /// How often autovacuum looks into each database.
    pub naptime: Option<Duration>,
    /// Why counts needn't be equal.
    pub inexact: Option<&'static str>,
}

/// What can be seen, and what can't, in sentences.
#[derive(Debug, Default)]
pub struct Sight {
    /// What can be seen.
    pub server: Server,
    /// What can't.
    pub notes: Vec<String>,
}

/// How a session's own transactions so far get into the server's counters. Others' do when their
/// sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Since version 15 a function asks for it.
    Function,
    /// Before, a session reports at the end of a transaction if the last report is half a second
    /// old, to a process that needs a moment (PostgreSQL 14 manual, "The Statistics Collector").
    Wait,
}

impl Flush {
    /// Time to wait, the statement, time to wait.
    pub fn steps(self) -> (Duration, &'static str, Duration) {
        match self {
            // A session that has touched no table since its last report has nothing to report, and
            // then keeps its count of transactions, too; so a table is read.
            Flush::Function => (
                Duration::ZERO,
                "select pg_catalog.pg_stat_force_next_flush() from pg_catalog.pg_database limit 1",
                Duration::ZERO,
            ),
            Flush::Wait => (Duration::from_millis(600), "select 1", Duration::from_millis(150)),
        }
    }
}

impl Server {
    /// Why a product can't be observed, if it can't.
    pub fn unknown(database: &Database) -> Option<String> {
        let known = [POSTGRESQL.name, COCKROACHDB.name, YUGABYTEDB.name];
        (!known.contains(&database.product.name))
            .then(|| format!("isobench knows no statistics of this product ({})", database.product.name))
    }

    /// Statements that make an observer's session harmless.
    pub fn session_settings(database: &Database, application_name: &str) -> Vec<String> {
        let mut settings = ObserverSession::settings(application_name).to_vec();
        if database.product.name == COCKROACHDB.name {
            // Has no such setting; and newer versions hide their internal tables otherwise.
            settings.retain(|setting| !setting.contains("jit"));
            settings.push("set allow_unsafe_internals = true".to_owned());
        }
        settings
    }

    /// Finds out what can be seen.
    pub fn explore(session: &mut ObserverSession, database: &Database) -> Sight {
        let mut sight = Sight::default();
        if database.product.name == COCKROACHDB.name {
            sight.cockroachdb(database);
        } else {
            sight.postgresql(session, database.product.name == YUGABYTEDB.name);
        }
        sight
    }

    /// How often autovacuum may have looked into our database in that time.
    pub fn autovacuum_visits(&self, time: Duration) -> u64 {
        self.naptime.map_or(0, |naptime| {
            let whole = time.as_nanos().checked_div(naptime.as_nanos()).unwrap_or(0);
            u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1)
        })
    }
}

impl Sight {
    fn cockroachdb(&mut self, database: &Database) {
        let major = database.version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
        let major: u32 = major.unwrap_or(0);
        self.server.counters = Counters::new(&COCKROACHDB_VIEWS, |view| view.versions.contains(&major));
        self.notes.push(
            "CockroachDB: what sessions wait for isn't sampled; metrics are those of the node that \
             the observer is connected to"
                .to_owned(),
        );
    }

    fn postgresql(&mut self, session: &mut ObserverSession, yugabytedb: bool) {
        // Whatever a relative doesn't know is missing in the answer.
        let identity = session.query(
            "select current_setting('server_version_num')::int / 10000, \
             (select oid from pg_catalog.pg_database where datname = current_database()), \
             pg_catalog.pg_backend_pid(), extract(epoch from pg_catalog.clock_timestamp())",
        );
        let row = match identity {
            Ok(rows) => rows.rows.into_iter().next().unwrap_or_default(),
            Err(refusal) => return self.cant("the server's version", refusal),
        };
        let cell = |place: usize| row.get(place).cloned().flatten();
        let major: u32 = cell(0).and_then(|text| text.parse().ok()).unwrap_or(0);
        self.server.own_process =
            cell(2).zip(cell(3)).and_then(|(pid, time)| Some((pid.parse().ok()?, time.parse().ok()?)));
        let database = cell(1).unwrap_or_default();
        self.server.counters = Counters::new(&POSTGRESQL_VIEWS, |view| {
            view.versions.contains(&major) && (!yugabytedb || view.name == "pg_stat_database")
        });
        self.sessions(session, &database);
        if yugabytedb {
            self.notes.push(
                "YugabyteDB: statistics are those of the node that the observer is connected to; \
                 the retries inside the server \
                 have no view in SQL that isobench knows; locks aren't sampled"
                    .to_owned(),
            );
            self.server.inexact = Some("YugabyteDB counts each retry of a statement, and by node");
            return;
        }
        self.locks(session, &database);
        self.server.flush = Some(if major >= 15 { Flush::Function } else { Flush::Wait });
        let naptime = "select extract(epoch from current_setting('autovacuum_naptime')::interval) \
             where current_setting('autovacuum')::bool and current_setting('track_counts')::bool";
        let seconds = session.value(naptime).ok().flatten().and_then(|text| text.parse::<f64>().ok());
        self.server.naptime = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }

    fn sessions(&mut self, session: &mut ObserverSession, database: &str) {
        let seen = activity::prepare(session, database).and_then(|()| activity::look(session, &[]));
        match seen {
            Ok(_) => self.server.sees_sessions = true,
            Err(refusal) => self.cant("pg_stat_activity", refusal),
        }
        if self.server.sees_sessions
            && session.value("show track_activities").ok().flatten().as_deref() == Some("off")
        {
            self.notes.push(
                "track_activities is off: sessions without a statement count as waiting for the client"
                    .to_owned(),
            );
        }
    }

    fn locks(&mut self, session: &mut ObserverSession, database: &str) {
        let mut unused = locks::Locks::default();
        let seen = locks::prepare(session, database).and_then(|()| unused.look(session, 0.0));
        match seen {
            Ok(()) => self.server.sees_locks = true,
            Err(refusal) => self.cant("pg_locks", refusal),
        }
    }

    fn cant(&mut self, what: &str, refusal: Refusal) {
        match refusal {
            Refusal::Never(why) | Refusal::Now(why) => {
                self.notes.push(format!("{what} can't be read: {why}"));
            }
            // Told once, with the reason, at the end.
            Refusal::Lost => {}
        }
    }
}
