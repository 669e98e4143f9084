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
        let mut searched = vec![false; what.rows.len()];
        let mut collect = |entry: usize| {
            if let Some(searched) = searched.get_mut(entry) {
                *searched = true;
            }
        };
        for search in &what.searches {
            let forms = forms(search.table);
            search.rows.into_iter().for_each(&mut collect);
            if let SearchWhen::Found(entry) = search.when {
                collect(entry);
            }
            if let Some(key) = &search.key {
                noted.push(NotedValue::Key(key.clone(), forms.key));
            }
            for operand in &search.operands {
                let form = forms.columns.get(usize::from(operand.column)).copied();
                noted.push(NotedValue::Operand(operand.value.clone(), form.unwrap_or(ValueForm::Text)));
            }
        }
        SeenStatement { number, what: what.clone(), forms: of_rows, noted, searched }
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
