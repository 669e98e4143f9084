//! Connects a job's clients at an isolation level, and reads back the level of every session.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use isobench_database::{Connector, Database, Error, Product, Relations};
use isobench_isolation::history::Mode;
use isobench_isolation::{EffectiveLevel, Level};
use isobench_limits::LIMITS;
use isobench_pgwire::{Connection, SqlState};
use isobench_plan::RetriedState;
use isobench_runner::{ErrorClass, Fleet, Job, NoThreads, OpenError, RunSpec, RunWorkload};

use crate::failure::{Failure, Outcome};
use crate::modes::asked;
use crate::site::Site;

/// Returns a job that classifies errors as the server's product defines them, and knows the names
/// of its tables. `retried` has the further errors that are retried although the product doesn't
/// call them conflicts.
pub fn job(
    spec: RunSpec,
    workload: RunWorkload,
    retried: &[RetriedState],
    database: &Database,
    connector: &Connector,
) -> Job {
    let product = database.product;
    let relations = relations(database, connector);
    let retried: Vec<SqlState> = retried.iter().map(|state| SqlState(state.0)).collect();
    let further = move |code: SqlState| {
        if retried.contains(&code) {
            ErrorClass::Retried { reason: Cow::Borrowed(RETRIED) }
        } else {
            ErrorClass::Other
        }
    };
    let classify = move |error: &isobench_pgwire::ServerError| {
        if product.ambiguous(error.code) {
            return ErrorClass::Ambiguous;
        }
        match product.conflict(error) {
            Some(conflict) => ErrorClass::Conflict {
                reason: conflict.reason,
                object: conflict.object.map(|object| relations.name(object)),
            },
            None => further(error.code),
        }
    };
    Job::new(spec, workload, Box::new(classify))
}

/// The reason of errors that are no conflicts and are retried nevertheless.
const RETRIED: &str = "retried as asked by --retry-sqlstate";

/// The names of the tables that errors identify by number.
fn relations(database: &Database, connector: &Connector) -> Relations {
    if database.product.relations.is_none() {
        return Relations::default();
    }
    // Without the names, the numbers are shown; if the server is lost, connecting the clients will
    // fail too.
    let Ok(mut session) = connector.open() else { return Relations::default() };
    let relations = Relations::read(&mut session, database);
    session.close();
    relations
}

/// Where the clients have their sessions: most on the server, the last ones on its standby.
#[derive(Debug, Clone)]
pub struct Places {
    server: Connector,
    /// Sessions keep nothing between transactions, so that no level is set in them.
    shared: bool,
    /// The first client on the standby, and the way there.
    standby: Option<(usize, Connector)>,
}

impl Places {
    /// The places on a site, where the last `readers` of the clients are on its standby.
    ///
    /// # Errors
    /// There is no standby.
    pub fn new(site: &Site, clients: usize, readers: usize) -> Outcome<Places> {
        let (server, shared) = (site.clients(), site.shares_sessions());
        if readers == 0 {
            return Ok(Places { server, shared, standby: None });
        }
        let standby = site.standby().ok_or_else(|| Failure::setup("--readers: there is no standby"))?;
        Ok(Places { server, shared, standby: Some((clients.saturating_sub(readers), standby.clone())) })
    }

    /// The way to a client's place.
    fn of(&self, client: usize) -> &Connector {
        match &self.standby {
            Some((first, standby)) if client >= *first => standby,
            _ => &self.server,
        }
    }

    /// True if some are on a standby.
    pub fn are_several(&self) -> bool {
        self.standby.is_some()
    }

    /// Waits until the standby has everything that the server has now.
    ///
    /// # Errors
    /// One of them is gone, or the standby doesn't catch up.
    pub fn catch_up(&self) -> Outcome {
        let Some((_, standby)) = &self.standby else { return Ok(()) };
        let of_server = "SELECT pg_catalog.pg_current_wal_insert_lsn()::text";
        let mut connection = self.server.open().map_err(Failure::setup)?;
        let position = connection.value(of_server).map_err(Failure::setup)?.unwrap_or_default();
        connection.close();
        let reached = format!("SELECT pg_catalog.pg_last_wal_replay_lsn() >= '{position}'::pg_lsn");
        let mut connection = standby.open().map_err(Failure::setup)?;
        let began = Instant::now();
        while connection.value(&reached).map_err(Failure::setup)?.as_deref() != Some("t") {
            let hurries = self.server.patience().requests() > 0;
            let limit = if hurries { LIMITS.hurried } else { LIMITS.catch_up };
            if began.elapsed() > limit {
                return Err(Failure::setup(format!(
                    "the standby hasn't caught up with its primary within {} s",
                    limit.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        connection.close();
        Ok(())
    }
}

/// Returns the same job with a way to open a session at this level, for clients that lose theirs, or
/// have one for each transaction.
pub fn reconnecting(job: Job, places: &Places, database: &Database, level: Option<Level>) -> Job {
    let (places, product) = (places.clone(), database.product);
    let level = level.filter(|_| !places.shared);
    let connect = move |client, limit| {
        let mut connection = places.of(client).within(limit).open()?;
        if let Some(level) = level {
            product.apply_level(&mut connection, level)?;
        }
        Ok::<_, Error>(connection)
    };
    job.reconnecting(Box::new(move |client, limit| {
        connect(client, limit).map_err(|error: Error| error.to_string())
    }))
}

/// Connected clients.
pub struct Opened {
    /// The clients.
    pub fleet: Fleet,
    /// The level of their sessions.
    pub effective: EffectiveLevel,
    /// Number of transactions that setting up all sessions took, as the server counts them.
    pub transactions: u64,
}

/// Connects all clients. With a level, every session is set to it, and asked for it inside a
/// transaction; without one the first session is asked for its own.
///
/// # Errors
/// A session can't be set up; the message includes advice if there is any.
pub fn open(job: &Job, places: &Places, database: &Database, level: Option<Level>) -> Outcome<Opened> {
    let product = database.product;
    let connect = |client| {
        let mut connection = places.of(client).open()?;
        let effective = match level {
            Some(level) if places.shared => Some(asked(&mut connection, product, Mode::of(level))?),
            Some(level) => {
                product.apply_level(&mut connection, level)?;
                Some(product.read_effective(&mut connection)?)
            }
            None if client == 0 => Some(product.read_effective(&mut connection)?),
            None => None,
        };
        let transactions = connection.transactions();
        Ok::<_, Error>((connection, (effective, transactions)))
    };
    let (fleet, answers) = Fleet::open(job, &connect).map_err(|error| explain(&error, job.spec().clients))?;
    let transactions = answers.iter().map(|(_, transactions)| transactions).sum();
    let levels: Vec<_> = answers.into_iter().filter_map(|(level, _)| level).collect();
    if !levels.is_empty() {
        return Ok(Opened { fleet, effective: agree(&levels), transactions });
    }
    // Sessions are opened later.
    let (mut connection, (effective, _)) = connect(0).map_err(Failure::setup)?;
    let effective = effective.map_or_else(|| product.read_effective(&mut connection), Ok);
    Ok(Opened { fleet, effective: effective.map_err(Failure::setup)?, transactions })
}

/// Asks sessions for their level again after their work, and closes them. Returns the answers, and
/// the number of transactions that this took. A session that doesn't answer in time is skipped.
pub fn leave(sessions: Vec<Connection>, product: &Product) -> (Vec<EffectiveLevel>, u64) {
    let mut answers = Vec::new();
    let mut transactions = 0;
    for mut session in sessions {
        session.set_timeout(Some(LIMITS.last_answer));
        match product.read_effective(&mut session) {
            Ok(answer) => answers.push(answer),
            // The others wouldn't answer either.
            Err(_) => break,
        }
        transactions += session.transactions();
        session.close();
    }
    (answers, transactions)
}

/// Returns the level of all sessions; if they differ, a name that says so.
pub fn agree(levels: &[EffectiveLevel]) -> EffectiveLevel {
    let mixed =
        |level: &&EffectiveLevel| matches!(level, EffectiveLevel::Other(name) if name.starts_with("mixed ("));
    if let Some(mixed) = levels.iter().find(mixed) {
        return mixed.clone();
    }
    let Some((first, rest)) = levels.split_first() else { return EffectiveLevel::Unknown };
    match rest.iter().find(|other| *other != first) {
        None => first.clone(),
        Some(other) => EffectiveLevel::Other(format!("mixed ({first}, {other})")),
    }
}

/// Advice on errors with a usual cause.
const ADVICE: [(SqlState, &str); 5] = [
    (
        SqlState::UNDEFINED_TABLE,
        "pgbench's tables are made by \"isobench init\", tables of your own by compare's --setup FILE.sql; tables that \
         are there already are found with --schema NAME --keep-data",
    ),
    (
        SqlState::DISK_FULL,
        "the disk of the server is full; free space there, or choose another TMPDIR for the embedded server",
    ),
    (
        SqlState::INSUFFICIENT_PRIVILEGE,
        "the role lacks a right on the server; grant it, or use another role (-U)",
    ),
    (
        SqlState::READ_ONLY_SQL_TRANSACTION,
        "the server or the session can only be read; name the primary, or use a script that only reads",
    ),
    (SqlState::QUERY_CANCELED, "a user, or a timeout set on the server, cancelled the statement"),
];

/// Returns a line of advice, or nothing.
pub fn advice(code: Option<SqlState>) -> String {
    let known = ADVICE.iter().find(|(known, _)| Some(*known) == code);
    known.map_or_else(String::new, |(_, advice)| format!("\n  {advice}"))
}

/// Returns the failure of a run without threads for its workers.
#[expect(clippy::needless_pass_by_value, reason = "so that it can be handed to map_err")]
pub fn no_threads(error: NoThreads) -> Failure {
    Failure::setup(format!("{error}{FEWER_THREADS}"))
}

/// Advice if there are no threads.
const FEWER_THREADS: &str =
    "\nuse fewer worker threads (--jobs), or raise the limit of processes (ulimit -u) or memory (ulimit -v)";

fn explain(error: &OpenError<Error>, clients: usize) -> Failure {
    let code = match error {
        OpenError::Session(error) => error.code(),
        OpenError::EventLoop(..) | OpenError::NoRing(_) | OpenError::Threads(_) => None,
    };
    let hint = match code {
        _ if matches!(error, OpenError::Threads(_)) => FEWER_THREADS.to_owned(),
        Some(SqlState::TOO_MANY_CONNECTIONS) => format!(
            "\n{clients} clients need more connections than the server allows; raise max_connections there (embedded \
             server: --server-setting max_connections={})",
            clients + 20
        ),
        _ => String::new(),
    };
    Failure::setup(format!("{error}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_differ_are_told() {
        let (strong, weak) =
            (EffectiveLevel::from_setting("serializable"), EffectiveLevel::from_setting("read committed"));
        assert_eq!(agree(&[strong.clone(), strong.clone()]), strong);
        assert_eq!(agree(&[strong, weak]).to_string(), "mixed (serializable, read committed)");
        assert_eq!(agree(&[]), EffectiveLevel::Unknown);
    }
}
