//! Findings as SARIF 2.1.0, which services for code show at the lines of scripts.
//!
//! Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".

use serde_json::{Value, json};

use super::{Answer, Finding, Place, Question, Rule, Severity};

/// The schema that a file names, by which one of isobench's is recognized.
pub const SARIF_SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The URI of a script's file by its name; `None` if it has no file.
pub type Uri<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Renders what is wrong and what isn't decided of questions.
pub fn sarif(questions: &[Question], uri: Uri<'_>) -> String {
    let mut rules: Vec<&Rule> = Vec::new();
    let mut results = Vec::new();
    let mut failed = Vec::new();
    for question in questions {
        let findings = match &question.answer {
            Answer::Nothing(_) => continue,
            Answer::Failed(why) => {
                failed.push(format!("{}: {why}", question.name));
                continue;
            }
            Answer::Wrong(all) => all.as_slice(),
            Answer::Open(one) => std::slice::from_ref(one),
        };
        for finding in findings {
            let index = rules.iter().position(|rule| rule.id == finding.rule.id).unwrap_or_else(|| {
                rules.push(&finding.rule);
                rules.len() - 1
            });
            results.push(result(question, finding, index, uri));
        }
    }
    let rules: Vec<Value> = rules.into_iter().map(rule).collect();
    let notifications: Vec<Value> =
        failed.iter().map(|text| json!({"level": "error", "message": message(text)})).collect();
    let log = json!({
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "isobench", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{
                "executionSuccessful": failed.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn rule(rule: &Rule) -> Value {
    json!({"id": rule.id, "shortDescription": message(&rule.title)})
}

/// A message with a text as it stands. A brace would begin a placeholder (SARIF, section 3.11.5), and a bracket a
/// link (3.11.6), which what was recorded mustn't make.
fn message(text: &str) -> Value {
    json!({"text": text.replace('{', "{{").replace('}', "}}").replace("](", "] (")})
}

fn result(question: &Question, finding: &Finding, index: usize, uri: Uri<'_>) -> Value {
    let heading = format!("{}: {}", question.name, finding.message);
    let lines = [&[heading], finding.witness.as_slice()].concat();
    let (first, others) = match finding.places.as_slice() {
        [] => (None, &[][..]),
        [first, others @ ..] => (Some(location(first, uri)), others),
    };
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": index,
        "level": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        "message": message(&lines.join("\n")),
        "locations": first.into_iter().collect::<Vec<_>>(),
    });
    if !others.is_empty() {
        result["relatedLocations"] = others.iter().map(|place| related(place, uri)).collect();
    }
    result
}

/// Where it is: in a file, or, without one, by its name.
fn location(place: &Place, uri: Uri<'_>) -> Value {
    let Some(uri) = uri(&place.name) else {
        return json!({"logicalLocations": [{"fullyQualifiedName": place.name}]});
    };
    let mut physical = json!({"artifactLocation": {"uri": uri}});
    // Services need a line.
    physical["region"] = json!({"startLine": place.line.unwrap_or(1).max(1)});
    json!({"physicalLocation": physical})
}

fn related(place: &Place, uri: Uri<'_>) -> Value {
    let mut location = location(place, uri);
    if !place.text.is_empty() {
        location["message"] = message(&place.text);
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, line: Option<u32>, text: &str) -> Place {
        Place { name: name.to_owned(), line, text: text.to_owned() }
    }

    #[test]
    fn a_finding_is_a_result_at_its_line() {
        let wrong = |severity, places| Finding {
            rule: Rule::WRONG_STATE,
            severity,
            message: "stock is \"1\"".to_owned(),
            witness: vec!["T1 SELECT '{0} [x](http://example.org)'".to_owned()],
            places,
        };
        let both = vec![place("a.sql", Some(7), ""), place("b.sql", Some(2), "UPDATE \u{1}")];
        let answers = [
            Answer::Wrong(vec![wrong(Severity::Error, both), wrong(Severity::Warning, Vec::new())]),
            Answer::Open(Finding::undecided("orders", "its time wasn't enough")),
            Answer::Nothing("3 interleavings".to_owned()),
            Answer::Failed("no server".to_owned()),
        ];
        let question = |answer| Question { name: "read committed".to_owned(), seconds: 0.0, answer };
        let file = |name: &str| name.contains(".sql").then(|| format!("sql/{name}"));
        let text = sarif(&answers.map(question), &file);
        let log: Value = serde_json::from_str(&text).expect("JSON");
        let run = &log["runs"][0];
        let results = run["results"].as_array().expect("results");
        assert_eq!(results.len(), 3, "{log:#}");
        let at = |file: &str, line: u32| json!({"artifactLocation": {"uri": format!("sql/{file}")}, "region": {"startLine": line}});
        assert_eq!(results[0]["locations"], json!([{"physicalLocation": at("a.sql", 7)}]));
        let related = json!([{"physicalLocation": at("b.sql", 2), "message": {"text": "UPDATE \u{1}"}}]);
        assert_eq!(results[0]["relatedLocations"], related);
        assert_eq!(
            results[0]["message"]["text"],
            "read committed: stock is \"1\"\nT1 SELECT '{{0}} [x] (http://example.org)'"
        );
        assert_eq!(
            results[2]["locations"],
            json!([{"logicalLocations": [{"fullyQualifiedName": "orders"}]}])
        );
        let levels: Vec<&Value> = results.iter().map(|result| &result["level"]).collect();
        assert_eq!(levels, ["error", "warning", "note"]);
        let rules = &run["tool"]["driver"]["rules"];
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
            assert_eq!(result["ruleId"], rules[index]["id"]);
        }
        assert_eq!(rules.as_array().map(Vec::len), Some(2), "each rule once");
        let failed = &run["invocations"][0];
        assert_eq!(failed["executionSuccessful"], false);
        assert_eq!(failed["toolExecutionNotifications"][0]["message"]["text"], "read committed: no server");
    }
}
