//! The examples of the script language are executed: expressions, and scripts in `sql` blocks.

use isobench_script::{CommandKind, EvalContext, Prng, Symbols, Value, Variables, parse};

use crate::markdown::{blocks, page};

const PAGE: &str = "reference/script-language.md";

/// The value of an expression as the page writes it, or `error: …`.
fn evaluate(expression: &str) -> String {
    let mut symbols = Symbols::new();
    let script = match parse("page", &format!("\\set x {expression}\n"), &mut symbols) {
        Ok(script) => script,
        Err(error) => return format!("error: {error}"),
    };
    let CommandKind::Set { expr, .. } = &script.commands[0].kind else {
        return "error: no \\set".to_owned();
    };
    let mut variables = Variables::new(&symbols);
    // The values that the page states.
    for (name, value) in [("scale", 1), ("client_id", 0), ("random_seed", 42), ("default_seed", 7)] {
        if let Some(slot) = symbols.lookup(name) {
            variables.set(slot, Value::Int(value));
        }
    }
    let mut rng = Prng::seed(42);
    let mut context =
        EvalContext { variables: &variables, names: &symbols, rng: &mut rng, debug: &mut |_| {} };
    match expr.eval(&mut context) {
        Ok(Value::Null) => "NULL".to_owned(),
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// The examples of a text: an expression and its value, on the lines of blocks marked with `expressions`.
fn examples(text: &str) -> Vec<(String, String)> {
    let lines = blocks(text, "expressions").concat();
    let example = |line: &str| line.split_once(" → ").map(|(one, other)| (one.to_owned(), other.to_owned()));
    lines.lines().map(|line| example(line).unwrap_or_else(|| panic!("no example: {line}"))).collect()
}

#[test]
fn examples_of_expressions_have_the_values_they_show() {
    let examples = examples(&page(PAGE));
    assert!(examples.len() > 40, "only {} examples found: the test looks in the wrong place", examples.len());
    for (expression, value) in examples {
        assert_eq!(evaluate(&expression), value, "{expression}");
    }
}

#[test]
fn scripts_on_the_manuals_pages_parse() {
    let mut checked = 0;
    for name in [PAGE, "guide/own-workloads.md", "guide/retries.md"] {
        for block in blocks(&page(name), "sql") {
            let script = parse(name, &block, &mut Symbols::new());
            assert!(script.is_ok(), "{name}: {}\n{block}", script.unwrap_err());
            checked += 1;
        }
    }
    assert!(checked > 5, "only {checked} scripts found");
}

/// The parser knows the functions on the page; a wrong number of arguments is another error.
#[test]
fn functions_on_the_page_exist() {
    let text = page(PAGE);
    let (_, section) = text.split_once("## Functions").expect("the page has functions");
    let section = section.split("\n## ").next().unwrap_or_default();
    let functions = examples(section);
    for (function, _) in &functions {
        let name = function.split('(').next().unwrap_or_default();
        let told = evaluate(&format!("{name}()"));
        assert!(!told.contains("unexpected function name"), "{name}: {told}");
    }
    // The manual of pgbench 18 has 21; `power` and `pow` are two.
    assert_eq!(functions.len(), 21);
    assert!(evaluate("nonsense()").contains("unexpected function name"));
}
