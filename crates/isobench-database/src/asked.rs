//! A session that says how its server reads statements.

use isobench_pgwire::{Connection, Error};
use isobench_sql::Answers;

/// A session that is asked how its server reads statements. It mustn't be in a transaction.
#[derive(Debug)]
pub struct Asked<'c>(pub &'c mut Connection);

/// The server's refusal in its own words, or the loss of the session.
fn refused<T>(answer: Result<T, Error>) -> Result<Result<T, String>, Error> {
    answer.map(Ok).or_else(|error| match error.server() {
        Some(server) if !error.is_connection_lost() => Ok(Err(server.message.clone())),
        _ => Err(error),
    })
}

impl Answers for Asked<'_> {
    type Lost = Error;

    fn parameters(&mut self, statement: &str) -> Result<Result<Vec<u32>, String>, Error> {
        refused(self.0.analyse(statement))
    }

    fn run_one(&mut self, command: &str) -> Result<Result<(), String>, Error> {
        refused(self.0.execute_one(command))
    }

    fn value(&mut self, query: &str) -> Result<Result<Option<String>, String>, Error> {
        refused(self.0.value(query))
    }
}
