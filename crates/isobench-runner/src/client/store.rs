//! Results that a script keeps in variables: `\gset` and `\aset`.

use isobench_pgwire::backend::{DataRow, RowDescription};
use isobench_script::{Store, Symbols, Variables, is_valid_variable_name};

/// The results of one request, a statement after the other.
#[derive(Debug)]
pub(super) struct StoredResults {
    store: Store,
    columns: Vec<String>,
    /// The last row of the statement that is being answered. NULL becomes the empty text, as in
    /// pgbench.
    row: Vec<String>,
    count: u64,
    /// Columns, last row and number of rows of each finished statement.
    finished: Vec<(Vec<String>, Vec<String>, u64)>,
}

/// The reason why results can't be stored.
pub(super) struct StoreError {
    pub(super) problem: String,
    /// The column's name that can't be a variable's.
    pub(super) name: Option<String>,
}

impl StoredResults {
    pub(super) fn new(store: Store) -> StoredResults {
        StoredResults { store, columns: Vec::new(), row: Vec::new(), count: 0, finished: Vec::new() }
    }

    /// Notes the names of the author's columns; the last `appended` columns aren't.
    pub(super) fn describe(&mut self, description: RowDescription<'_>, appended: usize) {
        self.columns = description.names().map(std::borrow::Cow::into_owned).collect();
        self.columns.truncate(self.columns.len().saturating_sub(appended));
    }

    /// Adds a row; its last `appended` columns aren't the author's. A row that has no others comes
    /// from a statement that returns none.
    pub(super) fn add(&mut self, row: DataRow<'_>, appended: usize) {
        let own = row.len().saturating_sub(appended);
        if own == 0 && appended > 0 {
            return;
        }
        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        self.row = row.columns().take(own).map(text).collect();
        self.count += 1;
    }

    /// Ends a statement. Returns the approximate size of its result in bytes.
    pub(super) fn complete(&mut self) -> usize {
        let columns = std::mem::take(&mut self.columns);
        let row = std::mem::take(&mut self.row);
        let texts = columns.iter().chain(&row);
        let bytes =
            texts.fold(size_of_val(&self.finished), |sum, text| sum + size_of::<String>() + text.len());
        self.finished.push((columns, row, std::mem::take(&mut self.count)));
        bytes
    }

    /// Stores the results in the variables.
    ///
    /// `\gset` requires exactly one row from the last statement; `\aset` takes the last row of
    /// every statement that has one.
    ///
    /// # Errors
    /// The number of rows isn't one, or a column's name can't be a variable's.
    pub(super) fn store(&self, symbols: &Symbols, variables: &mut Variables) -> Result<(), StoreError> {
        let (prefix, results) = match &self.store {
            Store::None => return Ok(()),
            Store::Gset { prefix } => {
                let last = self.finished.len().saturating_sub(1);
                let count = self.finished.last().map_or(0, |(_, _, count)| *count);
                if count != 1 {
                    return Err(StoreError { problem: format!("expected one row, got {count}"), name: None });
                }
                (prefix, &self.finished[last..])
            }
            Store::Aset { prefix } => (prefix, &self.finished[..]),
        };
        for (columns, row, _) in results.iter().filter(|(_, _, count)| *count > 0) {
            for (column, value) in columns.iter().zip(row) {
                let name = format!("{prefix}{column}");
                if !is_valid_variable_name(&name) {
                    let problem = format!("error storing into variable {name}");
                    return Err(StoreError { problem, name: Some(name) });
                }
                // A name that no script mentions has no slot and is never read.
                if let Some(slot) = symbols.lookup(&name) {
                    variables.set_text(slot, value);
                }
            }
        }
        Ok(())
    }
}
