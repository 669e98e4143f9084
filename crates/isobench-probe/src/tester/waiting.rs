//! Whether a session waits for another one of the test.

use std::time::{Duration, Instant};

use isobench_database::{Product, WaitView};
use isobench_pgwire::Connection;

use super::session::{Patience, Reply, Session, Stopped};
use super::{RunError, Tester};

/// The longest time the server may take to say who waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// How it is found out.
pub enum Waits {
    /// By a question: one for each session, in their order.
    Asked(Vec<String>),
    /// By the time since a step was looked at.
    Timed(Duration),
}

/// What the session is called where one can ask who waits; empty if the server doesn't say.
pub fn own_name(product: &Product, connection: &mut Connection) -> String {
    match product.waits {
        WaitView::Query { own_name, .. } => connection.value(own_name).ok().flatten().unwrap_or_default(),
        WaitView::Time => String::new(),
    }
}

impl Waits {
    /// Finds the first question that this server understands.
    ///
    /// # Errors
    /// Somebody stopped the run.
    pub fn find(tester: &Tester<'_>, control: &mut Session, sessions: &[Session]) -> Result<Waits, RunError> {
        let timed = Waits::Timed(tester.options.waits_after);
        let WaitView::Query { waits, .. } = tester.product.waits else { return Ok(timed) };
        let names: Vec<&str> = sessions.iter().map(Session::id).collect();
        if names.iter().any(|name| name.is_empty()) {
            return Ok(timed);
        }
        let ids = names.join(",");
        let asked = |question: &&str, name: &str| question.replace("{ids}", &ids).replace("{id}", name);
        for question in waits {
            if answer(control, &asked(question, names[0]), tester.stopped)?.is_ok() {
                return Ok(Waits::Asked(names.iter().map(|name| asked(question, name)).collect()));
            }
        }
        Ok(timed)
    }

    /// Whether this session waits, having been looked at since then.
    ///
    /// # Errors
    /// The server's answer is none, or somebody stopped the run.
    pub fn waits(
        &self,
        control: &mut Session,
        session: usize,
        since: Instant,
        stopped: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        match self {
            Waits::Asked(questions) => {
                answer(control, &questions[session], stopped)?.map_err(RunError::Waits)
            }
            Waits::Timed(limit) => Ok(since.elapsed() >= *limit),
        }
    }
}

fn answer(
    control: &mut Session,
    question: &str,
    stopped: &dyn Fn() -> bool,
) -> Result<Result<bool, String>, Stopped> {
    let replies = control.execute(question, Patience { limit: PATIENCE, stopped }, &mut |_| {})?;
    Ok(match replies.into_iter().next_back() {
        Some(Reply::Rows(table)) => match table.rows.first().and_then(|row| row.first()) {
            Some(Some(value)) => Ok(matches!(value.to_ascii_lowercase().as_str(), "t" | "true" | "1")),
            // No row: the session is gone, so it doesn't wait.
            _ => Ok(false),
        },
        Some(Reply::Error(error)) => Err(error.report(None)),
        Some(Reply::Lost(why)) => Err(why),
        _ => Err("no answer".to_owned()),
    })
}
