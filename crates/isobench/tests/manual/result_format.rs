//! The page on the result document and its schema name the same fields.

use std::collections::BTreeSet;

use isobench_report::TransactionsTable;
use isobench_result::{place_columns, series_columns};
use serde_json::Value;

use crate::markdown::{code, page, root, rows};

fn names(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Value::Object(properties)) = (key == "properties", value) {
                    found.extend(properties.keys().cloned());
                }
                names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn page_and_schema_name_the_same_fields() {
    let schema =
        std::fs::read_to_string(root().join("docs/result.schema.json")).expect("the schema is there");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let mut of_schema = BTreeSet::new();
    names(&schema, &mut of_schema);
    assert!(of_schema.len() > 50, "{of_schema:?}");
    let text = page("reference/result-format.md");
    let mut of_page: BTreeSet<String> = rows(&text)
        .iter()
        .filter(|(heading, _)| heading.first().is_some_and(|title| title == "field"))
        .flat_map(|(_, cells)| code(&cells[0]))
        .collect();
    // The page on plan files has the keys of plans, as another test confirms.
    of_page.extend(isobench_plan::keys().into_iter().filter(|key| of_schema.contains(key)));
    let missing: Vec<_> = of_schema.difference(&of_page).collect();
    assert!(missing.is_empty(), "reference/result-format.md doesn't describe {missing:?}");
    let invented: Vec<_> = of_page.difference(&of_schema).collect();
    assert!(invented.is_empty(), "the schema has no {invented:?}");
}

#[test]
fn the_page_names_each_column_of_exported_tables() {
    let page = page("reference/result-format.md");
    let section = page.split("## Tables").nth(1).expect("the section");
    let named = code(section.split("\n## ").next().expect("its end"));
    let mut transactions = Vec::new();
    TransactionsTable::new(&mut transactions).expect("titles");
    let titles = String::from_utf8(transactions).expect("text");
    let factors: Vec<&str> = place_columns().map(|column| column.name).collect();
    let own = titles.trim_end().split(',').map(str::to_owned);
    let own = own.chain(series_columns().map(|column| column.name.to_owned()));
    let missing: Vec<String> =
        own.filter(|name| !factors.contains(&name.as_str()) && !named.contains(name)).collect();
    assert!(missing.is_empty(), "reference/result-format.md doesn't name {missing:?}");
}
