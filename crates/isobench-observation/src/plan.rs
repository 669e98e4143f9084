//! The plans of a statement's two forms: alike, or the reason to send it as written.
//!
//! Columns that show rows can change a plan. `max(id)` no longer ends at the first entry of an
//! index, an index-only scan has to visit the table, a join that nothing needed is executed. A
//! statement with another plan locks other rows, and at serializable marks others as read. So both
//! forms are explained, which executes neither, and all that `EXPLAIN` says of them has to be equal
//! but for costs and widths.
//!
//! Not here: the values that variables have, and the session (the caller's).

use isobench_script::Slot;
use serde_json::{Map, Value};

use crate::dark::Dark;
use crate::forms::Forms;

/// Members of a plan's node that added columns may change.
const CHANGING: [&str; 4] = ["Plan Width", "Plans", "Startup Cost", "Total Cost"];

/// Members that tell the two forms apart in messages, in this order.
const TELLING: [&str; 4] = ["Node Type", "Index Name", "Relation Name", "Plan Rows"];

/// The most that a row takes in memory besides its columns, with its share of a table of hashes,
/// bytes.
const ROW_OVERHEAD: f64 = 64.0;

/// What the server reckons for an array that grows in a table of hashes, bytes
/// (`ALLOCSET_DEFAULT_INITSIZE`). It gives the buckets of such a table half of the memory.
const ARRAY: f64 = 8192.0;

/// The name of the statement that is prepared.
const PREPARED: &str = "isobench_form";

/// Runs a query and returns the rows as texts, or the server's message.
pub type Query<'q> = dyn FnMut(&str) -> Result<Vec<Vec<Option<String>>>, String> + 'q;

/// The two forms couldn't be explained in some way.
enum Problem {
    /// The server refuses the statement as written, too.
    Both,
    /// It refuses the columns alone, with this message.
    Sent(String),
}

/// Explains the forms of statements in a transaction that is read-only and rolled back.
pub struct Plans<'p, 'q> {
    query: &'p mut Query<'q>,
    /// `work_mem`, bytes.
    memory: f64,
    /// The tables that the statement compared last scans as a whole, as written; `None` until it had a plan.
    scans: Option<Vec<String>>,
}

impl<'p, 'q> Plans<'p, 'q> {
    /// Starts the transaction, in a session like those of the scripts.
    ///
    /// # Errors
    /// The server's.
    pub fn start(query: &'p mut Query<'q>) -> Result<Plans<'p, 'q>, String> {
        query("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY")?;
        Ok(Plans { query, memory: 0.0, scans: None })
    }

    /// Sets what a script sets before its statements. A command that fails, or is more than one, has no
    /// effect.
    pub fn set(&mut self, command: &str) {
        let command = command.trim_end().trim_end_matches(';');
        if !command.contains(';') {
            let _ = self.attempt(command);
        }
    }

    /// Compares the plans of both forms with the values of variables, and the plan for any values.
    /// Returns the reason to send the statement as written, if there is one: the plans differ, the
    /// server refuses the columns, or no plan was to be had.
    ///
    /// # Errors
    /// The session is gone.
    pub fn compare(
        &mut self,
        forms: &Forms,
        value: &dyn Fn(Slot) -> Option<String>,
    ) -> Result<Option<Dark>, String> {
        self.memory = self.work_mem()?;
        self.scans = None;
        let variables = forms.variables();
        let mut results = Vec::new();
        // A value that holds more than one statement would be executed.
        let single = |slot: Slot| value(slot).filter(|value| !value.contains(';'));
        let own = forms.parameters > 0;
        let literal = forms.with_values(&single).filter(|_| !own).map(|forms| self.explained(&forms));
        let known = matches!(literal, Some(Ok(_) | Err(Problem::Sent(_))));
        results.extend(literal);
        if own {
            // `EXPLAIN` knows no parameters; what they are is known to the server alone.
            let nulls = vec!["NULL"; usize::from(forms.parameters)].join(", ");
            results.push(self.prepared(forms, "force_generic_plan", &nulls));
        }
        if !variables.is_empty() {
            let values: Option<Vec<String>> =
                variables.iter().map(|slot| value(*slot).map(|value| quoted(&value))).collect();
            // A value that isn't SQL text, as the extended protocol sends it.
            if let (Some(values), false) = (values, known) {
                results.push(self.prepared(forms, "force_custom_plan", &values.join(", ")));
            }
            let nulls = vec!["NULL"; variables.len()].join(", ");
            results.push(self.prepared(forms, "force_generic_plan", &nulls));
            // A type may be unknown where there is no value.
            if results.iter().all(|result| matches!(result, Err(Problem::Both)))
                && let Some(forms) = forms.with_values(&|_| Some("1".to_owned()))
            {
                results.push(self.explained(&forms));
            }
        }
        let mut compared = false;
        for result in results {
            match result {
                Ok(None) => compared = true,
                Ok(Some(change)) => return Ok(Some(Dark::Plan { change })),
                Err(Problem::Sent(why)) => return Ok(Some(Dark::Refused { why })),
                Err(Problem::Both) => {}
            }
        }
        // The session must still answer, or nothing was learnt.
        self.attempt("SELECT 1")?;
        Ok((!compared).then_some(Dark::Unexplained))
    }

    /// The tables that the statement compared last scans as a whole, by the first of its plans: that for the
    /// values of variables, if they are known.
    pub fn scans(&self) -> &[String] {
        self.scans.as_deref().unwrap_or_default()
    }

    /// Rolls back.
    ///
    /// # Errors
    /// The server's.
    pub fn end(self) -> Result<(), String> {
        (self.query)("ROLLBACK").map(drop)
    }

    fn work_mem(&mut self) -> Result<f64, String> {
        const BYTES: &str = "SELECT pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem'))";
        let rows = (self.query)(BYTES)?;
        let bytes = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
        Ok(bytes.unwrap_or(0.0))
    }

    /// Compares the plans of two texts. Returns the difference.
    fn explained(&mut self, forms: &[String; 2]) -> Result<Option<String>, Problem> {
        let mut explain = |text: &str| self.plan(&format!("EXPLAIN (FORMAT JSON) {text}"));
        let (written, sent) = (explain(&forms[0]), explain(&forms[1]));
        self.judge(written, sent)
    }

    /// Compares the plans of both forms as prepared statements.
    fn prepared(&mut self, forms: &Forms, mode: &str, values: &str) -> Result<Option<String>, Problem> {
        let mut plans = forms.parameterized().map(|text| {
            self.attempt(&format!("SET LOCAL plan_cache_mode = {mode}"))?;
            self.attempt(&format!("PREPARE {PREPARED} AS {text}"))?;
            let plan = self.plan(&format!("EXPLAIN (FORMAT JSON) EXECUTE {PREPARED}({values})"));
            self.attempt(&format!("DEALLOCATE {PREPARED}"))?;
            plan
        });
        let [written, sent] = &mut plans;
        let take = |plan: &mut Result<Value, String>| std::mem::replace(plan, Ok(Value::Null));
        let (written, sent) = (take(written), take(sent));
        self.judge(written, sent)
    }

    fn judge(
        &mut self,
        written: Result<Value, String>,
        sent: Result<Value, String>,
    ) -> Result<Option<String>, Problem> {
        match (written, sent) {
            (Ok(written), Ok(sent)) => {
                self.scans.get_or_insert_with(|| scanned(&written));
                Ok(between(&written, &sent, self.memory))
            }
            (Ok(_), Err(why)) => Err(Problem::Sent(why)),
            (Err(_), _) => Err(Problem::Both),
        }
    }

    fn plan(&mut self, explain: &str) -> Result<Value, String> {
        let rows = self.attempt(explain)?;
        let text = rows.first().and_then(|row| row.first().cloned().flatten()).unwrap_or_default();
        let parsed: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        // Rules make a statement several.
        let plans = parsed.as_array().into_iter().flatten().map(|plan| plan.get("Plan").cloned());
        let plans: Option<Vec<Value>> = plans.collect();
        let plans = plans.filter(|plans| !plans.is_empty());
        plans.map(Value::Array).ok_or_else(|| "EXPLAIN shows no plan".to_owned())
    }

    /// Runs a command; if it fails, the transaction goes on without it.
    fn attempt(&mut self, command: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        (self.query)("SAVEPOINT isobench_form")?;
        let result = (self.query)(command);
        let after = if result.is_ok() { "RELEASE" } else { "ROLLBACK TO" };
        (self.query)(&format!("{after} isobench_form"))?;
        result
    }
}

/// The first difference between the plans of two statements, for people.
fn between(written: &Value, sent: &Value, memory: f64) -> Option<String> {
    let plans = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let (written, sent) = (plans(written), plans(sent));
    if written.len() != sent.len() {
        return Some("other statements".to_owned());
    }
    written.iter().zip(&sent).find_map(|(written, sent)| {
        let found = difference(written, sent, memory)?;
        Some(other_scan(written, sent).unwrap_or(found))
    })
}

/// The tables that plans scan sequentially, each once.
fn scanned(plans: &Value) -> Vec<String> {
    fn walk(plan: &Value, found: &mut Vec<String>) {
        let text = |name: &str| plan.get(name).and_then(Value::as_str);
        if let (Some("Seq Scan"), Some(table)) = (text("Node Type"), text("Relation Name"))
            && !found.iter().any(|known| known == table)
        {
            found.push(table.to_owned());
        }
        let below = plan.get("Plans").and_then(Value::as_array);
        below.into_iter().flatten().for_each(|plan| walk(plan, found));
    }
    let mut found = Vec::new();
    plans.as_array().into_iter().flatten().for_each(|plan| walk(plan, &mut found));
    found
}

/// The first table that is scanned in another way, which says more than the nodes above it.
fn other_scan(written: &Value, sent: &Value) -> Option<String> {
    fn scans(plan: &Value, found: &mut Vec<String>) {
        let node = plan.as_object();
        let scan = node.filter(|node| {
            let kind = node.get("Node Type").and_then(Value::as_str).unwrap_or_default();
            node.contains_key("Relation Name") && kind != "ModifyTable"
        });
        found.extend(scan.map(described));
        let below = plan.get("Plans").and_then(Value::as_array);
        below.into_iter().flatten().for_each(|plan| scans(plan, found));
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    scans(written, &mut left);
    scans(sent, &mut right);
    let (left, right) = left.iter().zip(&right).find(|(left, right)| left != right)?;
    Some(format!("{right} instead of {left}"))
}

/// The first difference between two plans, for people.
fn difference(written: &Value, sent: &Value, memory: f64) -> Option<String> {
    let (Some(left), Some(right)) = (written.as_object(), sent.as_object()) else {
        return Some("another shape".to_owned());
    };
    if !same_members(left, right) {
        return Some(told_apart(left, right));
    }
    if outgrows(left, right, memory) {
        return Some(format!("{} that exceeds work_mem", described(right)));
    }
    let below = |node: &Map<String, Value>| -> Vec<Value> {
        node.get("Plans").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let (left_below, mut right_below) = (below(left), below(right));
    // The arrays of rows that WITH wrote are computed by plans of their own, after everything else.
    if right_below.len() > left_below.len() {
        let mut more = right_below.len() - left_below.len();
        right_below.retain(|plan| {
            let own = more > 0 && is_array_of_cte(plan, &left_below);
            more -= usize::from(own);
            !own
        });
    }
    if left_below.len() != right_below.len() {
        return Some(format!("{} with other parts", described(right)));
    }
    left_below.iter().zip(&right_below).find_map(|(left, right)| difference(left, right, memory))
}

/// True for `(SELECT array_agg(…) FROM cte)`, a plan that the statement as written doesn't have.
fn is_array_of_cte(plan: &Value, written: &[Value]) -> bool {
    let text = |name: &str| plan.get(name).and_then(Value::as_str);
    let inner = plan.pointer("/Plans/0/Node Type").and_then(Value::as_str);
    text("Node Type") == Some("Aggregate")
        && text("Parent Relationship") == Some("InitPlan")
        && inner == Some("CTE Scan")
        && !written.iter().any(|own| own.get("Subplan Name") == plan.get("Subplan Name"))
}

fn same_members(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    // A data-modifying node returns rows only if it has RETURNING; what it reads is below it.
    let modifies = left.get("Node Type").and_then(Value::as_str) == Some("ModifyTable");
    let kept = |name: &String| match name.as_str() {
        "Plan Rows" => !modifies,
        name => !CHANGING.contains(&name),
    };
    let names = |node: &Map<String, Value>| node.keys().filter(|name| kept(name)).count();
    names(left) == names(right)
        && left
            .iter()
            .filter(|(name, _)| kept(name))
            .all(|(name, value)| right.get(name).is_some_and(|other| unnumbered(value) == unnumbered(other)))
}

/// A member's value without the numbers of parameters and subplans, which are given anew.
fn unnumbered(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_numbers(text)),
        Value::Array(values) => Value::Array(values.iter().map(unnumbered).collect()),
        other => other.clone(),
    }
}

/// A text without digits after `$` and after `Plan `, as in `InitPlan 1 (returns $0)`.
fn without_numbers(text: &str) -> String {
    const PLAN: &[u8] = b"plan ";
    let mut plain = String::with_capacity(text.len());
    let mut dropping = false;
    for char in text.chars() {
        dropping &= char.is_ascii_digit();
        if !dropping {
            plain.push(char);
            let tail = &plain.as_bytes()[plain.len().saturating_sub(PLAN.len())..];
            dropping = char == '$' || tail.eq_ignore_ascii_case(PLAN);
        }
    }
    plain
}

/// True if a node whose memory decides the order of its rows is larger than as written, and is
/// estimated not to fit: it makes other batches, or a table of hashes with fewer buckets.
fn outgrows(written: &Map<String, Value>, sent: &Map<String, Value>, memory: f64) -> bool {
    let number = |node: &Map<String, Value>, name: &str| node.get(name).and_then(Value::as_f64);
    let text = |name: &str| sent.get(name).and_then(Value::as_str).unwrap_or_default();
    let (width, rows) = (number(sent, "Plan Width").unwrap_or(0.0), number(sent, "Plan Rows").unwrap_or(0.0));
    let needed = match text("Node Type") {
        "Hash" | "Incremental Sort" | "Sort" => rows * (width + ROW_OVERHEAD),
        "Aggregate" if matches!(text("Strategy"), "Hashed" | "Mixed") => {
            // HAVING leaves it open how many groups there are, but not more than rows that go in.
            let input = sent.get("Plans").and_then(|plans| plans.get(0)).and_then(Value::as_object);
            let input = input.and_then(|input| number(input, "Plan Rows")).unwrap_or(rows);
            let groups = if sent.contains_key("Filter") { input } else { rows };
            groups * (width + ARRAY) * 2.0
        }
        _ => return false,
    };
    number(written, "Plan Width") < Some(width) && needed > memory
}

fn told_apart(written: &Map<String, Value>, sent: &Map<String, Value>) -> String {
    match TELLING.iter().find(|name| written.get(**name) != sent.get(**name)) {
        Some(&"Plan Rows") => format!("{} with another estimate of rows", described(sent)),
        Some(_) => format!("{} instead of {}", described(sent), described(written)),
        None => format!("{} with other properties", described(sent)),
    }
}

/// A node as `EXPLAIN` names it: `Index Scan using t_pkey on t`.
fn described(node: &Map<String, Value>) -> String {
    let part = |before: &str, name: &str| {
        node.get(name).and_then(Value::as_str).map(|text| format!("{before}{text}")).unwrap_or_default()
    };
    let backward = node.get("Scan Direction").and_then(Value::as_str) == Some("Backward");
    let direction = if backward { " Backward" } else { "" };
    part("", "Node Type") + direction + &part(" using ", "Index Name") + &part(" on ", "Relation Name")
}

/// A literal.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MEMORY: f64 = 4_194_304.0;

    fn scan(node: &str, rows: u32, width: u32) -> Value {
        json!({"Node Type": node, "Relation Name": "t", "Index Name": "t_pkey", "Plan Rows": rows,
               "Plan Width": width, "Startup Cost": 1.0, "Total Cost": f64::from(width)})
    }

    #[test]
    fn costs_and_widths_may_differ() {
        assert_eq!(difference(&scan("Index Scan", 5, 4), &scan("Index Scan", 5, 12), MEMORY), None);
    }

    #[test]
    fn another_scan_or_estimate_is_named() {
        let written = scan("Index Only Scan", 5, 4);
        let found = difference(&written, &scan("Index Scan", 5, 4), MEMORY).unwrap();
        assert_eq!(found, "Index Scan using t_pkey on t instead of Index Only Scan using t_pkey on t");
        let found = difference(&written, &scan("Index Only Scan", 6, 4), MEMORY).unwrap();
        assert_eq!(found, "Index Only Scan using t_pkey on t with another estimate of rows");
    }

    #[test]
    fn rows_that_are_returned_are_not_rows_that_are_read() {
        let update = |returned: u32, read: u32| {
            let read = scan("Seq Scan", read, 4);
            json!({"Node Type": "ModifyTable", "Plan Rows": returned, "Plans": [read]})
        };
        assert_eq!(difference(&update(0, 5), &update(5, 5), MEMORY), None);
        assert!(difference(&update(0, 5), &update(5, 6), MEMORY).is_some());
    }

    #[test]
    fn the_arrays_of_with_are_additional() {
        let cte = json!({"Node Type": "ModifyTable", "Subplan Name": "CTE u", "Plan Rows": 0});
        let own = json!({"Node Type": "Aggregate", "Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 2",
                         "Plans": [{"Node Type": "CTE Scan"}]});
        let written = json!({"Node Type": "Result", "Plans": [cte]});
        let sent = json!({"Node Type": "Result", "Plans": [cte, own]});
        assert_eq!(difference(&written, &sent, MEMORY), None);
        let scan = json!({"Node Type": "Seq Scan"});
        let sent = json!({"Node Type": "Result", "Plans": [cte, scan]});
        assert_eq!(difference(&written, &sent, MEMORY).unwrap(), "Result with other parts");
    }

    #[test]
    fn what_does_not_fit_into_memory_differs_if_it_grows() {
        let sort = |width: u32| json!({"Node Type": "Sort", "Plan Rows": 50_000, "Plan Width": width});
        assert_eq!(difference(&sort(4), &sort(8), MEMORY), None);
        assert_eq!(difference(&sort(4), &sort(40), MEMORY).unwrap(), "Sort that exceeds work_mem");
        assert_eq!(difference(&sort(40), &sort(80), MEMORY).unwrap(), "Sort that exceeds work_mem");
        assert_eq!(difference(&sort(80), &sort(80), MEMORY), None);
    }

    #[test]
    fn arrays_of_many_groups_do_not_fit() {
        let groups = |rows: u32, filter: Option<&str>, width: u32| {
            let mut node = json!({"Node Type": "Aggregate", "Strategy": "Hashed", "Plan Rows": rows,
                "Plan Width": width, "Plans": [{"Node Type": "Seq Scan", "Plan Rows": 10_000}]});
            if let Some(filter) = filter {
                node["Filter"] = json!(filter);
            }
            node
        };
        let differs = |rows: u32, filter: Option<&str>| {
            difference(&groups(rows, filter, 8), &groups(rows, filter, 40), MEMORY).is_some()
        };
        assert!(!differs(100, None));
        assert!(differs(500, None));
        assert!(differs(100, Some("(count(*) > 1)")), "the number of groups isn't known");
    }

    #[test]
    fn numbers_of_parameters_and_subplans_mean_nothing() {
        assert_eq!(without_numbers("InitPlan 12 (returns $0,$11)"), "InitPlan  (returns $,$)");
        assert_eq!(without_numbers("(v = $1 + 10)"), "(v = $ + 10)");
        assert_eq!(without_numbers("CTE q1"), "CTE q1");
    }
}
