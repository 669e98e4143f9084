//! The page on the result document and its schema name the same fields.

use std::collections::BTreeSet;

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

/// A column: its table, its name, its type, and whether it may be null.
type Described = (String, String, String, bool);

#[test]
fn page_and_parquet_files_have_the_same_columns() {
    let of_code: BTreeSet<Described> = isobench_parquet::tables()
        .into_iter()
        .flat_map(|(table, columns)| {
            columns.into_iter().map(move |(name, kind, always)| {
                (table.to_owned(), name.to_owned(), kind.name().to_owned(), !always)
            })
        })
        .collect();
    let mut of_page = BTreeSet::new();
    for (_, cells) in rows(&page("reference/result-format.md")).iter().filter(|(heading, _)| {
        heading.first().is_some_and(|title| title == "column")
            && heading.get(1).is_some_and(|title| title == "type")
    }) {
        let [names, kind, nullable, _, table] = cells.as_slice() else { panic!("{cells:?}") };
        let tables =
            if table == "all" { vec!["rounds", "series", "transactions"] } else { vec![table.as_str()] };
        for (name, table) in
            code(names).iter().flat_map(|name| tables.iter().map(move |table| (name, *table)))
        {
            let new = of_page.insert((table.to_owned(), name.clone(), kind.clone(), nullable == "yes"));
            assert!(new, "{name} is described twice for {table}");
        }
    }
    assert!(of_code.len() > 80, "{}", of_code.len());
    let missing: Vec<_> = of_code.difference(&of_page).collect();
    let invented: Vec<_> = of_page.difference(&of_code).collect();
    assert!(
        missing.is_empty() && invented.is_empty(),
        "not on the page: {missing:?}\nnot written: {invented:?}"
    );
}
