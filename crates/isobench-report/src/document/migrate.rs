//! Documents of earlier format versions, brought to the present shape before they are read.
//!
//! One step for each version. Fields that were only added need none.

use serde_json::{Value, json};

/// Brings a document of version `from` to the present version.
pub fn to_present(mut document: Value, from: u64) -> Value {
    if from < 2 {
        one_to_two(&mut document);
    }
    document
}

/// One rate became a list of rates; the graph of a witness in Graphviz' language became
/// transactions and arrows.
fn one_to_two(document: &mut Value) {
    if let Some(plan) = document.get_mut("plan").and_then(Value::as_object_mut)
        && let Some(rate) = plan.remove("rate").filter(Value::is_number)
    {
        plan.insert("rate".to_owned(), json!([rate]));
        for cell in document.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(cell) = cell.as_object_mut() {
                cell.insert("rate".to_owned(), rate.clone());
            }
        }
    }
    if let Some(document) = document.as_object_mut() {
        document.insert("format_version".to_owned(), json!(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_a_list_and_a_factor() {
        let old = json!({"format_version": 1, "plan": {"rate": 20.0}, "cells": [{"clients": 3}]});
        let new = to_present(old, 1);
        assert_eq!(
            new,
            json!({"format_version": 2, "plan": {"rates": [20.0]}, "cells": [{"clients": 3, "rate": 20.0}]})
        );
    }

    #[test]
    fn no_rate_stays_none_and_the_present_version_is_left_alone() {
        let old = json!({"plan": {"rate": null}, "cells": []});
        assert_eq!(to_present(old, 1), json!({"format_version": 2, "plan": {}, "cells": []}));
        let present = json!({"plan": {"rates": []}});
        assert_eq!(to_present(present.clone(), 2), present);
    }

    #[test]
    fn what_is_no_document_is_left_to_the_reader() {
        for value in [json!(null), json!([1])] {
            assert_eq!(to_present(value.clone(), 1), value);
        }
        let wrong = json!({"format_version": 2, "plan": 3, "cells": "x"});
        assert_eq!(to_present(json!({"plan": 3, "cells": "x"}), 1), wrong);
    }
}
