//! What was found, as JSON.

use serde_json::{Value, json};

use super::found::{Found, LevelFound, Order, Witness};
use super::stage::{Step, StepResult};

impl Found {
    /// The result as indented JSON, ending with a line break.
    pub fn to_json(&self) -> String {
        format!("{:#}\n", self.to_value())
    }

    /// The result as a JSON value. `verdict` of a level is `unsafe` or `nothing found`; times are in
    /// seconds.
    pub fn to_value(&self) -> Value {
        let refused = self.refused.iter().map(|(script, why)| json!({"script": script, "reason": why}));
        let by_design = self.by_design.iter().map(
            |found| json!({"level": found.level.to_string(), "scripts": found.scripts, "by": found.how}),
        );
        json!({
            "levels": self.levels.iter().map(level).collect::<Vec<_>>(),
            "not_tried": refused.collect::<Vec<_>>(),
            "untried_combinations": self.untried,
            "complete": self.complete,
            "masked": self.masked,
            "undetermined": self.undetermined,
            "by_design": by_design.collect::<Vec<_>>(),
            "seconds": self.elapsed.as_secs_f64(),
        })
    }
}

fn level(level: &LevelFound) -> Value {
    json!({
        "level": level.level.to_string(),
        "verdict": if level.gravest().is_some() { "unsafe" } else { "nothing found" },
        "interleavings": level.trials,
        "with_failures": level.with_failures,
        "inconclusive": level.inconclusive,
        "damage": level.damage.as_ref().map(witness),
        "wrong_answer": level.wrong_answer.as_ref().map(witness),
    })
}

fn witness(witness: &Witness) -> Value {
    json!({
        "scripts": witness.scripts,
        "before": witness.prefix,
        "split_after": witness.split_after,
        "no_level_prevents": witness.no_level_prevents,
        "steps": witness.steps.iter().map(step).collect::<Vec<_>>(),
        "outcome": order(&witness.outcome),
        "serial_orders": witness.orders.iter().map(order).collect::<Vec<_>>(),
        "seconds": witness.after.as_secs_f64(),
    })
}

fn step(step: &Step) -> Value {
    let result = match &step.result {
        StepResult::Waits => json!({"waits": true}),
        StepResult::Tag(tag) => json!({"tag": tag}),
        StepResult::Failed(why) => json!({"error": why}),
        StepResult::Rows(table) => json!({"columns": table.columns, "rows": table.rows}),
    };
    json!({"transaction": step.transaction + 1, "sql": step.sql, "result": result})
}

fn order(order: &Order) -> Value {
    let numbers: Vec<usize> = order.transactions.iter().map(|number| number + 1).collect();
    let told: Vec<Value> =
        order.told.iter().map(|(number, rows)| json!({"transaction": number + 1, "rows": rows})).collect();
    json!({"order": numbers, "changes": order.changes, "told": told})
}
