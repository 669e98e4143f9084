//! The plans that come with isobench: the manual has a section on each, the reference has their
//! keys, and the program accepts them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use isobench_result::Figure;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::isobench;
use crate::markdown::{code, page, root, rows};

const GUIDE: &str = "guide/published-experiments.md";
const REFERENCE: &str = "reference/plan-files.md";

/// The plans in the folder, by name.
fn plans() -> Vec<(String, Table)> {
    let files = fs::read_dir(root().join("plans")).expect("the folder is there");
    let mut found: Vec<(String, Table)> = files
        .map(|file| {
            let path = file.expect("an entry can be read").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a plan can be read");
            (name, text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(found.len() > 5, "{found:?}");
    found
}

/// The names in the first column of the reference's tables with this heading.
fn described(heading: &str) -> BTreeSet<String> {
    let text = page(REFERENCE);
    let rows = rows(&text);
    let under = rows.iter().filter(|(title, _)| title.first().is_some_and(|first| first == heading));
    under.flat_map(|(_, cells)| code(&cells[0])).collect()
}

#[test]
fn the_guide_has_a_section_and_a_command_for_each() {
    let text = page(GUIDE);
    for (name, plan) in plans() {
        assert!(text.contains(&format!("\n## {name}\n")), "{GUIDE} has no section {name}");
        assert!(
            text.contains(&format!("\nisobench compare --plan {name}\n")),
            "{GUIDE} has no command for {name}"
        );
        let title = plan["experiment"]["title"].as_str().expect("a title");
        assert!(title.ends_with('?'), "{name}: the title is a question: {title}");
    }
    let sections = text.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(sections, plans().len(), "{GUIDE} has sections on plans that there aren't");
}

#[test]
fn the_list_has_each_with_what_it_needs() {
    let output = isobench().arg("plans").stdin(Stdio::null()).output().expect("isobench runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let listed = words(&String::from_utf8_lossy(&output.stdout));
    for (name, plan) in plans() {
        assert!(listed.contains(&name), "isobench plans has no {name}: {listed}");
        for key in ["title", "product", "needs-quick", "needs-full"] {
            let text = plan["experiment"][key].as_str().expect("a text");
            assert!(listed.contains(&words(text)), "isobench plans doesn't say of {name}: {text}");
        }
    }
}

/// True if something happens to the plan's server or it has standbys, which only an embedded one can.
fn needs_an_embedded_server(plan: &Table) -> bool {
    ["fault", "standby", "standbys"].iter().any(|key| plan.contains_key(*key))
}

/// The server doesn't exist: plans and the files they name are read before connecting. What needs an
/// embedded server refuses a named one, as the last thing before connecting.
#[test]
fn the_program_takes_each_in_both_sizes() {
    for (name, plan) in plans() {
        let expected = if needs_an_embedded_server(&plan) {
            "nothing happens to a named server"
        } else {
            "/nonexistent"
        };
        for size in ["--quick", "--full"] {
            let mut isobench = isobench();
            isobench.args(["compare", "--no-save", "--plan", &name, size]);
            isobench.args(["-d", "postgresql:///none?host=/nonexistent"]);
            let output = isobench.stdin(Stdio::null()).output().expect("isobench runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{name} {size}: {said}");
            assert!(said.contains(expected), "{name} {size} is refused: {said}");
        }
    }
}

#[test]
fn every_key_is_in_the_reference() {
    let described = described("key");
    for key in isobench_plan::keys() {
        assert!(described.contains(&key), "{REFERENCE} doesn't describe {key}");
    }
    for (name, plan) in plans() {
        for key in keys(&plan) {
            assert!(described.contains(&key), "{REFERENCE} doesn't describe {key}, which {name} has");
        }
    }
}

/// The keys of a plan, of its sizes and of its experiment, except for the names of varied
/// parameters.
fn keys(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        found.push(key.clone());
        let nested: Vec<&Table> = match value {
            Value::Table(table) if key != "varied" && key != "differs" => vec![table],
            Value::Array(items) => items.iter().filter_map(Value::as_table).collect(),
            _ => Vec::new(),
        };
        found.extend(nested.into_iter().flat_map(keys));
    }
    found
}

/// The schema of results includes experiments.
#[test]
fn reference_names_the_fields_of_experiments() {
    let schema = fs::read_to_string(root().join("docs/result.schema.json")).expect("the schema is there");
    let schema: Json = serde_json::from_str(&schema).expect("the schema is JSON");
    let of = |name: &str| &schema["$defs"][name];
    let described = described("key");
    for part in ["Experiment", "PublishedRow", "Shape"] {
        let fields = of(part)["properties"].as_object().expect("fields");
        // Set when a plan is run.
        for field in fields.keys().filter(|field| !["name", "size"].contains(&field.as_str())) {
            assert!(described.contains(field), "{REFERENCE} doesn't describe {field} of {part}");
        }
    }
}

/// Shapes and published rows refer to cells of the plan, in at least one size.
#[test]
fn shapes_are_of_cells_that_are_measured() {
    for (name, plan) in plans() {
        let experiment = plan["experiment"].as_table().expect("an experiment");
        let shapes = experiment["shapes"].as_array().expect("shapes");
        let rows = experiment.get("published").and_then(Value::as_array).into_iter().flatten();
        let cells = shapes.iter().flat_map(|shape| [shape.get("of"), shape.get("to")]);
        for cell in cells.chain(rows.map(|row| row.get("cell"))).flatten() {
            assert!(is_measured(&plan, cell), "{name} has no such cell: {cell}");
        }
        for shape in shapes {
            assert!(shape.get("least").or(shape.get("most")).is_some(), "{name}: no tolerance: {shape}");
            let metric = shape["metric"].as_str().expect("a name");
            let known = Figure::named(metric).is_some_and(|figure| figure.name == metric);
            assert!(known, "{name}: {metric} isn't the name of a figure");
        }
    }
}

fn is_measured(plan: &Table, cell: &Value) -> bool {
    let full = plan["full"].as_table().expect("a full size");
    [plan, full].into_iter().any(|size| {
        let list = |key: &str| size.get(key).or(plan.get(key)).and_then(Value::as_array);
        let has = |key: &str, value: &Value| list(key).is_some_and(|list| list.contains(value));
        let level = |name: &Value| {
            let short = match name.as_str() {
                Some("read uncommitted") => "ru",
                Some("read committed") => "rc",
                Some("repeatable read") => "rr",
                Some("serializable") => "ser",
                _ => panic!("{name} is no level by its full name"),
            };
            has("levels", &Value::from(short))
        };
        let varied = |(name, value): (&String, &Value)| {
            let value = value.as_str().unwrap_or_else(|| panic!("{name}: values are strings"));
            let texts = |key: &str| list(key).into_iter().flatten().filter_map(Value::as_str);
            let among = |values: &str| values.split(',').any(|known| known == value);
            match name.as_str() {
                "fault" | "standby" => texts(name).any(among),
                _ => texts("vary")
                    .filter_map(|text| text.split_once('='))
                    .any(|(known, values)| known == name && among(values)),
            }
        };
        cell.as_table().expect("a cell").iter().all(|(key, value)| match key.as_str() {
            "level" => level(value),
            "strategy" => has("strategies", value),
            "clients" => has("clients", value),
            "varied" => value.as_table().expect("names and values").iter().all(varied),
            _ => panic!("a cell has no {key}"),
        })
    })
}
