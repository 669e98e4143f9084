//! A script of a capture executed once, with recorded inputs.

use std::collections::HashMap;

use isobench_pgwire::{Connection, Error};
use isobench_script::{CommandKind, Piece, Script, Sql, Statement, Store, literal_of_variable};

/// Executes a script with the inputs of one of its instances; `within` a transaction that is open already,
/// if that is wanted. `see` gets the number of rows of each statement.
///
/// # Errors
/// A statement fails, or doesn't return the one row that is stored.
pub fn carry_out(
    connection: &mut Connection,
    script: &Script,
    instance: usize,
    within: bool,
    see: &mut dyn FnMut(usize, u64),
) -> Result<(), Why> {
    // The only \set draws a row of the inputs.
    let mut variables = HashMap::from([("i_row".to_owned(), (instance + 1).to_string())]);
    let mut statement = 0;
    for command in &script.commands {
        let CommandKind::Sql(sql) = &command.kind else { continue };
        let text = substituted(sql, &variables);
        let begins_or_ends = matches!(
            sql.statements.first(),
            Some(Statement::Begin | Statement::Commit | Statement::Rollback)
        ) && !text.starts_with("ROLLBACK TO");
        if begins_or_ends && within {
            continue;
        }
        let rows = if let Store::Gset { prefix } = &sql.store {
            let found = connection.query(&text).map_err(why)?;
            if let [row] = found.rows.as_slice() {
                let named = found.columns.iter().zip(row);
                let named =
                    named.map(|(name, value)| (format!("{prefix}{name}"), value.clone().unwrap_or_default()));
                variables.extend(named);
            } else if !sql.takes_inputs() {
                see(statement, found.rows.len() as u64);
                return Err(Why::Other(format!("line {}: {} rows", command.line, found.rows.len())));
            }
            found.rows.len() as u64
        } else {
            let completed = connection.execute(&text).map_err(why)?;
            completed.first().and_then(isobench_pgwire::Completed::rows).unwrap_or(0)
        };
        if !begins_or_ends && !sql.takes_inputs() {
            see(statement, rows);
            statement += 1;
        }
    }
    Ok(())
}

/// Why a transaction failed.
pub enum Why {
    /// By 40001 or 40P01.
    Conflict,
    /// The tables don't permit a statement (class 42): there is no such column, for example.
    Mistake(String),
    /// By something else.
    Other(String),
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn why(error: Error) -> Why {
    match error.code() {
        Some(code) if matches!(code.as_str(), "40001" | "40P01") => Why::Conflict,
        Some(code) if code.as_str().starts_with("42") => {
            Why::Mistake(error.to_string().lines().next().unwrap_or_default().to_owned())
        }
        _ => Why::Other(error.to_string()),
    }
}

/// A statement with literals in place of its variables.
fn substituted(sql: &Sql, variables: &HashMap<String, String>) -> String {
    let pieces = sql.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable { written, .. } => match variables.get(written.trim_start_matches(':')) {
            Some(value) => literal_of_variable(value),
            None => "NULL".to_owned(),
        },
    });
    pieces.collect::<String>().trim().to_owned()
}
