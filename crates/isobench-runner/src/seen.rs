//! Statements whose results show rows, prepared for their replies.
//!
//! Not here: which columns are appended (`isobench-observation`), and the rows
//! (`client/rows.rs`).

use isobench_isolation::observed::{KeyForm, ObservedDescription, ValueForm};
use isobench_script::{ObservedStatement, SearchValue, SearchWhen, Sql};

/// A statement whose rows are observed.
#[derive(Debug)]
pub(crate) struct SeenStatement {
    /// Its number among all such statements.
    pub(crate) number: u16,
    pub(crate) what: ObservedStatement,
    /// For each entry of the statement's rows, the forms of key and columns.
    pub(crate) forms: Vec<Forms>,
    /// The values of its searches, all together, in order.
    pub(crate) noted: Vec<NotedValue>,
    /// For each entry of the statement's rows, true if keys are collected for a search.
    pub(crate) searched: Vec<bool>,
    /// For each entry, true if the values of columns are collected for a search.
    pub(crate) kept: Vec<bool>,
}

/// The forms of a table's values.
#[derive(Debug, Clone)]
pub(crate) struct Forms {
    pub(crate) key: KeyForm,
    pub(crate) columns: Vec<ValueForm>,
}

/// A value that is noted when a statement is sent, because variables may have changed by the time
/// the reply comes.
#[derive(Debug)]
pub(crate) enum NotedValue {
    /// A number or text, as the form of a column says.
    Operand(SearchValue, ValueForm),
    /// A key.
    Key(Vec<SearchValue>, KeyForm),
    /// The elements of an array.
    Elements(SearchValue, ValueForm),
}

impl SeenStatement {
    fn of(number: u16, what: &ObservedStatement, description: &ObservedDescription) -> SeenStatement {
        let forms = |table: u16| {
            let table = description.tables.get(usize::from(table));
            let columns = table.map_or(&[][..], |table| table.columns.as_slice());
            Forms {
                key: table.map_or(KeyForm::Numbered, |table| table.key),
                columns: columns.iter().map(|column| column.form).collect(),
            }
        };
        let of_rows: Vec<Forms> = what.rows.iter().map(|rows| forms(rows.table)).collect();
        let mut noted = Vec::new();
        let mut kept = vec![false; what.rows.len()];
        if let Some(limit) = &what.limit {
            let both = [&limit.rows, &limit.offset].into_iter().flatten();
            noted.extend(both.map(|value| NotedValue::Operand(value.clone(), ValueForm::Integer)));
        }
        let mut searched = vec![false; what.rows.len()];
        let mut collect = |entry: usize| {
            if let Some(searched) = searched.get_mut(entry) {
                *searched = true;
            }
        };
        for search in &what.searches {
            let forms = forms(search.table);
            search.rows.into_iter().for_each(&mut collect);
            if let Some(kept) = search.referred.and_then(|referred| kept.get_mut(referred.entry)) {
                *kept = true;
            }
            if let SearchWhen::Found(entry) = search.when {
                collect(entry);
            }
            if let Some(key) = &search.key {
                noted.push(NotedValue::Key(key.clone(), forms.key));
            }
            for operand in &search.operands {
                let table = description.tables.get(usize::from(operand.table));
                let column = table.and_then(|table| table.columns.get(usize::from(operand.column)));
                let form = column.map(|column| column.form);
                let form = form.unwrap_or(ValueForm::Text);
                let entry = match &operand.value {
                    SearchValue::Last => search.rows,
                    SearchValue::Shown { entry, .. } => Some(*entry),
                    SearchValue::Elements(array) => {
                        noted.push(NotedValue::Elements((**array).clone(), form));
                        None
                    }
                    value => {
                        noted.push(NotedValue::Operand(value.clone(), form));
                        None
                    }
                };
                if let Some(kept) = entry.and_then(|entry| kept.get_mut(entry)) {
                    *kept = true;
                }
            }
        }
        SeenStatement { number, what: what.clone(), forms: of_rows, noted, searched, kept }
    }

    /// The statements of a command; `next` is the number of the first.
    pub(crate) fn all(sql: &Sql, next: &mut u16, description: &ObservedDescription) -> Box<[SeenStatement]> {
        let number = |what: &ObservedStatement| {
            let statement = SeenStatement::of(*next, what, description);
            *next = next.saturating_add(1);
            statement
        };
        sql.observed.iter().map(number).collect()
    }
}
