//! The capabilities of an observer on a server, by product, version and rights, found out once.

use std::time::Duration;

use isobench_database::Database;
use isobench_database::products::{COCKROACHDB, POSTGRESQL, YUGABYTEDB};

use crate::counters::Counters;
use crate::session::{ObserverSession, Refusal};
use crate::views::{COCKROACHDB_VIEWS, POSTGRESQL_VIEWS};
use crate::{activity, locks, scans};

/// The observations that are possible.
#[derive(Debug, Default)]
pub struct Capabilities {
    /// The sessions can be sampled.
    pub sees_sessions: bool,
    /// The locks can be sampled.
    pub sees_locks: bool,
    /// The use of each table can be read.
    pub sees_tables: bool,
    /// The counters that can be read.
    pub counters: Counters,
    /// The way to read all that is counted.
    pub reading: ReadingWay,
    /// The way to make the server count our own transactions.
    pub flush: Option<Flush>,
    /// The process of our session and its start, in seconds since 1970.
    pub own_process: Option<(u32, f64)>,
    /// The interval in which autovacuum visits each database.
    pub naptime: Option<Duration>,
    /// The reason why counts may differ.
    pub inexact: Option<&'static str>,
}

/// The possible observations, and sentences about those that aren't.
#[derive(Debug, Default)]
pub struct Explored {
    /// The possible observations.
    pub capabilities: Capabilities,
    /// Sentences about the others.
    pub notes: Vec<String>,
}

/// The way to read all that is counted.
#[derive(Debug, Default)]
pub enum ReadingWay {
    /// One query after the other.
    #[default]
    OneByOne,
    /// All of them can be prepared as one statement, for the database of this OID.
    Preparable(String),
    /// They are prepared as one statement.
    AtOnce,
}

/// The way to bring a session's own transactions into the server's counters. Those of other
/// sessions are counted when the sessions end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// By a function, since version 15.
    Function,
    /// By waiting, before: a session reports at the end of a transaction if the last report is half
    /// a second old, to a process that needs a moment (PostgreSQL 14 manual, "The Statistics
    /// Collector").
    Wait,
}

impl Flush {
    /// The time to wait before, the statement, and the time to wait after it.
    pub fn steps(self) -> (Duration, &'static str, Duration) {
        match self {
            // A session that has used no table since its last report has nothing to report, and
            // then doesn't report its transactions either. So the statement reads a table.
            Flush::Function => (
                Duration::ZERO,
                "select pg_catalog.pg_stat_force_next_flush() from pg_catalog.pg_database limit 1",
                Duration::ZERO,
            ),
            Flush::Wait => (Duration::from_millis(600), "select 1", Duration::from_millis(150)),
        }
    }
}

impl Capabilities {
    /// The reason why a product can't be observed, if it can't.
    pub fn unknown(database: &Database) -> Option<String> {
        let known = [POSTGRESQL.name, COCKROACHDB.name, YUGABYTEDB.name];
        (!known.contains(&database.product.name))
            .then(|| format!("isobench knows no statistics of this product ({})", database.product.name))
    }

    /// Statements that keep an observer's session from disturbing the server.
    pub fn session_settings(database: &Database, application_name: &str) -> Vec<String> {
        let mut settings = ObserverSession::settings(application_name).to_vec();
        if database.product.name == COCKROACHDB.name {
            // It has no such setting, and newer versions otherwise hide their internal tables.
            settings.retain(|setting| !setting.contains("jit") && !setting.contains("isolation"));
            // Where read committed is off it would be raised, and counted as that
            // (`sql.txn.upgraded_iso_level.count`). Tables in memory are all that it reads.
            settings.push("set default_transaction_isolation = 'serializable'".to_owned());
            settings.push("set allow_unsafe_internals = true".to_owned());
        }
        settings
    }

    /// Finds out the capabilities.
    pub fn explore(session: &mut ObserverSession, database: &Database) -> Explored {
        let mut sight = Explored::default();
        if database.product.name == COCKROACHDB.name {
            sight.cockroachdb(database);
        } else {
            sight.postgresql(session, database.product.name == YUGABYTEDB.name);
        }
        sight
    }

    /// The reason why the counts of sessions that take turns can't be told apart, if they can't.
    pub fn mixes_turns(&self) -> Option<&'static str> {
        match self.flush {
            Some(Flush::Function) => None,
            Some(Flush::Wait) => Some("PostgreSQL before version 15 counts a transaction too late"),
            None => self.inexact,
        }
    }

    /// The most visits of autovacuum to our database in that time.
    pub fn autovacuum_visits(&self, time: Duration) -> u64 {
        self.naptime.map_or(0, |naptime| {
            let whole = time.as_nanos().checked_div(naptime.as_nanos()).unwrap_or(0);
            u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1)
        })
    }
}

impl Explored {
    fn cockroachdb(&mut self, database: &Database) {
        let major = database.version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
        let major: u32 = major.unwrap_or(0);
        self.capabilities.counters = Counters::new(&COCKROACHDB_VIEWS, |view| view.versions.contains(&major));
        self.notes.push(
            "CockroachDB: what sessions wait for isn't sampled; metrics are those of the node that \
             the observer is connected to"
                .to_owned(),
        );
    }

    fn postgresql(&mut self, session: &mut ObserverSession, yugabytedb: bool) {
        // A value that a related product doesn't know is missing in the answer.
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
        self.capabilities.own_process =
            cell(2).zip(cell(3)).and_then(|(pid, time)| Some((pid.parse().ok()?, time.parse().ok()?)));
        let database = cell(1).unwrap_or_default();
        self.capabilities.counters = Counters::new(&POSTGRESQL_VIEWS, |view| {
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
            self.capabilities.inexact = Some("YugabyteDB counts each retry of a statement, and by node");
            return;
        }
        self.locks(session, &database);
        self.capabilities.reading = ReadingWay::Preparable(database);
        match scans::read(session) {
            Ok(_) => self.capabilities.sees_tables = true,
            Err(refusal) => self.cant("pg_stat_user_tables", refusal),
        }
        self.capabilities.flush = Some(if major >= 15 { Flush::Function } else { Flush::Wait });
        let naptime = "select extract(epoch from current_setting('autovacuum_naptime')::interval) \
             where current_setting('autovacuum')::bool and current_setting('track_counts')::bool";
        let seconds = session.value(naptime).ok().flatten().and_then(|text| text.parse::<f64>().ok());
        self.capabilities.naptime = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    }

    fn sessions(&mut self, session: &mut ObserverSession, database: &str) {
        let seen = activity::prepare(session, database).and_then(|()| activity::look(session, &[]));
        match seen {
            Ok(_) => self.capabilities.sees_sessions = true,
            Err(refusal) => self.cant("pg_stat_activity", refusal),
        }
        if self.capabilities.sees_sessions
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
        let seen = locks::prepare(session, database).and_then(|()| unused.look(session, &[], 0.0));
        match seen {
            Ok(()) => self.capabilities.sees_locks = true,
            Err(refusal) => self.cant("pg_locks", refusal),
        }
    }

    fn cant(&mut self, what: &str, refusal: Refusal) {
        match refusal {
            Refusal::Never(why) | Refusal::Now(why) => {
                self.notes.push(format!("{what} can't be read: {why}"));
            }
            // Reported once, with its reason, at the end.
            Refusal::Lost => {}
        }
    }
}
