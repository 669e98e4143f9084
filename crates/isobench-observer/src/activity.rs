//! The clients' sessions and their waits: one cheap query of `pg_stat_activity`.
//!
//! The query joins nothing and sorts a few rows. It reads each session's slot in shared memory
//! under a lock that otherwise only the session's own start and end take. PostgreSQL manual, "The
//! Cumulative Statistics System", `pg_stat_activity`.

use isobench_pgwire::Rows;

use crate::arm::Arm;
use crate::observed::{Sample, SessionCounts, WaitRow};
use crate::session::{ObserverSession, Refusal};

/// The FROM clause and condition of the clients' sessions in the database `{database}`, without our
/// own session.
const CLIENTS: &str = "from pg_catalog.pg_stat_activity where datid = {database} and backend_type = 'client backend' \
    and pid <> pg_catalog.pg_backend_pid()";

/// Prepares the samples of a database, given by its OID.
///
/// # Errors
/// [`Refusal`].
pub fn prepare(session: &mut ObserverSession, database: &str) -> Result<(), Refusal> {
    let clients = CLIENTS.replace("{database}", database);
    // PostgreSQL reports a wait for the client also in sessions without a transaction, where
    // nothing waits.
    session.query(&format!(
        "prepare isobench_activity(int[]) as select \
         case when state = 'idle' then 'idle' else coalesce(wait_event_type, 'CPU') end, \
         case when state = 'idle' then '' else coalesce(wait_event, '') end, count(*) \
         {clients} and pid <> all($1) group by 1, 2"
    ))?;
    session.query(&format!("prepare isobench_sessions as select pid {clients}"))?;
    Ok(())
}

/// Samples the clients' sessions, which are all except `others`.
///
/// # Errors
/// [`Refusal`].
pub fn look(session: &mut ObserverSession, others: &[u32]) -> Result<SessionCounts, Refusal> {
    let rows = session.query(&format!("execute isobench_activity('{{{}}}')", list(others)))?;
    Ok(sessions(&rows))
}

/// The query of [`pids`] as a part of one of several views.
pub fn arm(database: &str) -> Arm {
    let from = CLIENTS.replace("{database}", database);
    Arm { name: Some("pid".to_owned()), columns: Vec::new(), from, sums: false }
}

/// The process ids of all client sessions in the database except our own.
///
/// # Errors
/// [`Refusal`].
pub fn pids(session: &mut ObserverSession) -> Result<Vec<u32>, Refusal> {
    let rows = session.query("execute isobench_sessions")?.rows;
    let mut pids: Vec<u32> = rows.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Process ids as the elements of an array.
pub fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn sessions(rows: &Rows) -> SessionCounts {
    let entry = |row: &Vec<Option<String>>| match &row[..] {
        [Some(kind), Some(event), Some(count)] => Some(((kind.clone(), event.clone()), count.parse().ok()?)),
        _ => None,
    };
    rows.rows.iter().filter_map(entry).collect()
}

/// Turns samples into rows over time, the most frequent first.
pub fn rows(samples: &[Sample]) -> (Vec<f64>, Vec<WaitRow>) {
    let mut rows: Vec<WaitRow> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        for ((kind, event), count) in &sample.sessions {
            let known = rows.iter().position(|row| row.kind == *kind && row.event == *event);
            let row = known.unwrap_or_else(|| {
                let sessions = vec![0; samples.len()];
                rows.push(WaitRow { kind: kind.clone(), event: event.clone(), sessions });
                rows.len() - 1
            });
            rows[row].sessions[index] = *count;
        }
    }
    let total = |row: &WaitRow| row.sessions.iter().map(|count| u64::from(*count)).sum::<u64>();
    rows.sort_by(|a, b| total(b).cmp(&total(a)).then_with(|| (&a.kind, &a.event).cmp(&(&b.kind, &b.event))));
    (samples.iter().map(|sample| sample.at_s.unwrap_or_default()).collect(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, sessions: &[(&str, &str, u32)]) -> Sample {
        let entry =
            |(kind, event, count): &(&str, &str, u32)| (((*kind).to_owned(), (*event).to_owned()), *count);
        Sample { at_s: Some(at_s), sessions: sessions.iter().map(entry).collect() }
    }

    #[test]
    fn rows_have_a_number_for_each_sample() {
        let samples = [
            sample(0.1, &[("idle", "", 1), ("Lock", "tuple", 2)]),
            sample(0.2, &[("CPU", "", 4)]),
            sample(0.3, &[("Lock", "tuple", 3), ("CPU", "", 1)]),
        ];
        let (at_s, rows) = rows(&samples);
        assert_eq!(at_s, [0.1, 0.2, 0.3]);
        let shown: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.sessions.clone())).collect();
        assert_eq!(shown, [("CPU", vec![0, 4, 1]), ("Lock", vec![2, 0, 3]), ("idle", vec![1, 0, 0])]);
    }

    #[test]
    fn odd_rows_of_a_server_are_left_out() {
        let text = |text: &str| Some(text.to_owned());
        let rows = vec![
            vec![text("CPU"), text(""), text("3")],
            vec![text("CPU"), None, text("3")],
            vec![text("IO"), text("WALSync"), text("many")],
            vec![],
        ];
        let found = sessions(&Rows { columns: Vec::new(), rows });
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(("CPU".to_owned(), String::new()), 3)]);
    }
}
