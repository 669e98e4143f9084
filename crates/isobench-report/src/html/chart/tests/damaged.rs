//! Documents with anything missing or out of range are drawn as far as they go.

use proptest::prelude::*;
use serde_json::Value;

use super::super::figures;
use super::{SAVED, check};
use crate::document::Document;
use crate::summarise;

/// Every place in a document, by its path of names and indexes.
fn places(value: &Value, at: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    found.push(at.clone());
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        // All elements of a long list are alike.
        Value::Array(list) => {
            list.iter().enumerate().take(5).map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        at.push(name);
        places(child, at, found);
        at.pop();
    }
}

/// Does something to one place.
fn damage(document: &mut Value, place: &[String], how: usize) {
    let Some((last, path)) = place.split_last() else { return };
    let mut parent = document;
    for name in path {
        let next = match parent {
            Value::Object(fields) => fields.get_mut(name),
            Value::Array(list) => name.parse::<usize>().ok().and_then(|index| list.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return };
        parent = next;
    }
    let changed =
        [Value::Null, 0.into(), 1e308.into(), (-1.5).into(), u64::MAX.into(), Value::Array(Vec::new())];
    match parent {
        Value::Object(fields) => match changed.get(how) {
            Some(value) => drop(fields.insert(last.clone(), value.clone())),
            None => drop(fields.remove(last)),
        },
        Value::Array(list) => {
            let Some(index) = last.parse::<usize>().ok().filter(|index| *index < list.len()) else { return };
            match changed.get(how) {
                Some(value) => list[index] = value.clone(),
                None => drop(list.remove(index)),
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn mutilated_documents_are_drawn_as_far_as_they_go(
        example in any::<prop::sample::Index>(),
        wounds in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..7), 1..8),
        again in any::<bool>(),
    ) {
        let (_, text) = example.get(&SAVED);
        let mut value: Value = serde_json::from_str(text).expect("an example");
        for (place, how) in wounds {
            let mut found = Vec::new();
            places(&value, &mut Vec::new(), &mut found);
            let path = place.get(&found).clone();
            let mut damaged = value.clone();
            damage(&mut damaged, &path, how);
            // What no document can hold is refused before anything is drawn.
            if serde_json::from_value::<Document>(damaged.clone()).is_ok() {
                value = damaged;
            }
        }
        let mut document: Document = serde_json::from_value(value).expect("checked above");
        // Both the summaries that fit the rounds, and whatever the document says.
        if again {
            summarise(&mut document);
        }
        check(&figures(&document));
    }
}
