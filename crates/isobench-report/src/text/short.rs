//! Scripts of one folder or workload by their own names alone, where a screen names them often.

use std::path::Path;

use isobench_result::Document;
use serde_json::Value;

/// What the names of all scripts begin with, with a slash at its end: their folder, or the workload of several
/// transactions, such as `smallbank/balance`. `None` if they have nothing in common, or if files are in this folder.
pub fn folder_of<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let mut names = names.into_iter();
    let folder = |name: &'n str| {
        let is_file = Path::new(name).extension().is_some();
        name.rfind('/').map(|slash| (&name[..=slash], is_file))
    };
    let first_name = names.next()?;
    let first = folder(first_name)?;
    let mut several = first.1;
    for name in names {
        if folder(name) != Some(first) {
            return None;
        }
        several |= name != first_name;
    }
    several.then_some(first.0)
}

/// The same document with the names of scripts in place of their paths; `None` if there is nothing to shorten.
pub(super) fn shortened(document: &Document) -> Option<Document> {
    let files = document.plan.file.as_ref()?;
    let folder = folder_of(files.iter().map(String::as_str))?;
    document.changed(&mut |value| without(folder, value)).ok()
}

/// Takes a folder out of all texts.
fn without(folder: &str, value: &mut Value) {
    match value {
        Value::String(text) if text.contains(folder) => *text = text.replace(folder, ""),
        Value::Array(all) => all.iter_mut().for_each(|one| without(folder, one)),
        Value::Object(members) => {
            let changed: Vec<String> = members.keys().filter(|key| key.contains(folder)).cloned().collect();
            for key in changed {
                if let Some(member) = members.remove(&key) {
                    members.insert(key.replace(folder, ""), member);
                }
            }
            members.values_mut().for_each(|one| without(folder, one));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_one_folder_have_it_in_common() {
        assert_eq!(folder_of(["sql/a.sql", "sql/b.sql@3"]), Some("sql/"));
        assert_eq!(folder_of(["/shop/sql/a.sql"]), Some("/shop/sql/"));
        assert_eq!(folder_of(["smallbank/balance", "smallbank/write-check"]), Some("smallbank/"));
        for names in [
            &["a.sql", "b.sql"][..],
            &["sql/a.sql", "b.sql"],
            &["sql/a.sql", "sql/x/b.sql"],
            &["smallbank/balance"],
            &["smallbank/balance", "smallbank/balance"],
            &["smallbank/balance", "tpcc/payment"],
            &["sql/a.sql", "sql/balance"],
            &[],
        ] {
            assert_eq!(folder_of(names.iter().copied()), None, "{names:?}");
        }
    }

    #[test]
    fn a_folder_is_left_out_of_all_texts() {
        let mut value = json!({ "sql/a.sql": ["sql/a.sql:3 and sql/b.sql:4", 7, null], "b": "nosql" });
        without("sql/", &mut value);
        assert_eq!(value, json!({ "b": "nosql", "a.sql": ["a.sql:3 and b.sql:4", 7, null] }));
    }
}
