//! A session that says how its server reads statements.

use isobench_pgwire::{Connection, Error, Replies, Rows};
use isobench_sql::Answers;

/// A session that is asked how its server reads statements. It mustn't be in a transaction.
#[derive(Debug)]
pub struct Asked<'c>(pub &'c mut Connection);

/// The server's refusals in its own words.
fn refused<T>(replies: Replies<T>) -> impl Iterator<Item = Result<T, String>> {
    replies.into_iter().map(|reply| reply.map_err(|error| error.message))
}

impl Answers for Asked<'_> {
    type Lost = Error;

    fn parameters(&mut self, statements: &[&str]) -> Result<Vec<Result<Vec<u32>, String>>, Error> {
        Ok(refused(self.0.analyse_all(statements)?).collect())
    }

    fn values(&mut self, groups: &[Vec<String>]) -> Result<Vec<Result<Option<String>, String>>, Error> {
        let first = |rows: Rows| rows.rows.into_iter().next()?.into_iter().next()?;
        Ok(refused(self.0.run_groups(groups)?).map(|answer| answer.map(first)).collect())
    }
}
