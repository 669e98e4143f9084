//! Detects whether a session waits for another one of the test.

use std::time::{Duration, Instant};

use isobench_database::{Product, WaitView};
use isobench_limits::LIMITS;
use isobench_pgwire::Connection;

use super::error::RunError;
use super::session::{Patience, Reply, Stopped, TestSession};

/// The method of detection.
pub enum Waits {
    /// By a query, one for each session, in order.
    Asked(Vec<String>),
    /// By the time since the step was first checked.
    Timed(Duration),
}

/// The session's name in the product's view of waiting sessions; empty if it has none.
pub fn own_name(product: &Product, connection: &mut Connection) -> String {
    match product.waits {
        WaitView::Query { own_name, .. } => connection.value(own_name).ok().flatten().unwrap_or_default(),
        WaitView::Time => String::new(),
    }
}

impl Waits {
    /// Finds the first query for waiting sessions that this server supports, if there is one.
    ///
    /// # Errors
    /// If the run is stopped.
    pub fn find(
        product: &Product,
        control: &mut TestSession,
        sessions: &[TestSession],
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Waits>, RunError> {
        let WaitView::Query { waits, .. } = product.waits else { return Ok(None) };
        let names: Vec<&str> = sessions.iter().map(TestSession::id).collect();
        if names.iter().any(|name| name.is_empty()) {
            return Ok(None);
        }
        let ids = names.join(",");
        let asked = |question: &&str, name: &str| question.replace("{ids}", &ids).replace("{id}", name);
        for question in waits {
            if answer(control, &asked(question, names[0]), stopped)?.is_ok() {
                return Ok(Some(Waits::Asked(names.iter().map(|name| asked(question, name)).collect())));
            }
        }
        Ok(None)
    }

    /// True if this session waits, `elapsed` after the start of the check.
    ///
    /// # Errors
    /// If the query fails, or the run is stopped.
    pub fn waits(
        &self,
        control: &mut TestSession,
        session: usize,
        elapsed: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        match self {
            Waits::Asked(questions) => {
                answer(control, &questions[session], stopped)?.map_err(RunError::Waits)
            }
            Waits::Timed(limit) => Ok(elapsed >= *limit),
        }
    }
}

fn answer(
    control: &mut TestSession,
    question: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<bool, String>, Stopped> {
    let replies = control.execute(
        question,
        Patience { limit: LIMITS.waiting_query, stopped, now: Instant::now },
        &mut |_| {},
    )?;
    Ok(match replies.into_iter().next_back() {
        Some(Reply::Rows(table)) => match table.rows.first().and_then(|row| row.first()) {
            Some(Some(value)) => Ok(matches!(value.to_ascii_lowercase().as_str(), "t" | "true" | "1")),
            // Without a row the session is gone, so it doesn't wait.
            _ => Ok(false),
        },
        Some(Reply::Error(error)) => Err(error.report(None)),
        Some(Reply::Lost(why)) => Err(why),
        _ => Err("no answer".to_owned()),
    })
}
