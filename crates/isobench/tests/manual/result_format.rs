//! The schema of the result document describes each of its members. The page on it names members that
//! there are, and the columns of exported tables.

use std::collections::{BTreeMap, BTreeSet};

use isobench_report::TransactionsTable;
use isobench_result::{place_columns, series_columns};
use serde_json::Value;

use crate::markdown::{code, page, root, rows};

const PAGE: &str = "reference/result-format.md";

/// The members that a schema describes, each with whether it has a description.
fn members(schema: &Value, found: &mut BTreeMap<String, bool>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (true, Value::Object(properties)) = (key == "properties", value) {
                    for (name, member) in properties {
                        let described = member["description"].as_str().is_some_and(|text| !text.is_empty());
                        *found.entry(name.clone()).or_insert(true) &= described;
                    }
                }
                members(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| members(value, found)),
        _ => {}
    }
}

#[test]
fn the_schema_describes_each_member_and_the_page_names_members_that_there_are() {
    let schema =
        std::fs::read_to_string(root().join("docs/result.schema.json")).expect("the schema is there");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let mut of_schema = BTreeMap::new();
    members(&schema, &mut of_schema);
    assert!(of_schema.len() > 300, "{}", of_schema.len());
    let undescribed: Vec<_> = of_schema.iter().filter(|(_, described)| !**described).collect();
    assert!(undescribed.is_empty(), "the schema doesn't describe {undescribed:?}");
    let of_page: BTreeSet<String> = rows(&page(PAGE))
        .iter()
        .filter(|(heading, _)| heading.first().is_some_and(|title| title == "field"))
        .flat_map(|(_, cells)| code(&cells[0]))
        .collect();
    let invented: Vec<_> = of_page.iter().filter(|name| !of_schema.contains_key(*name)).collect();
    assert!(of_page.len() > 20 && invented.is_empty(), "the schema has no {invented:?}");
    // Readers of a document look for its parts first.
    let parts = schema["properties"].as_object().expect("members");
    let missing: Vec<_> = parts.keys().filter(|name| !of_page.contains(*name)).collect();
    assert!(missing.is_empty(), "{PAGE} doesn't name {missing:?}");
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
