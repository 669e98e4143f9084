//! The known name that a misspelt one is nearest to: of options, levels, workloads, variants,
//! parameters, plans and scripts.
//!
//! Pure. Must not know what the names are names of. Everything is in this file.
//!
//! ```
//! use isobench_suggest::{did_you_mean, nearest};
//!
//! assert_eq!(nearest("registres", ["bank", "registers"]), Some("registers"));
//! assert_eq!(did_you_mean("registres", ["bank", "registers"]), " (did you mean \"registers\"?)");
//! assert_eq!(did_you_mean("mine.sql", ["bank", "registers"]), "");
//! ```

/// Fewest letters of which a longer name is recognized by its beginning.
const BEGINNING: usize = 3;

/// Returns the known name that is nearest to `given`: one that differs in case only, that is its
/// beginning or begins with it, or that differs in at most one letter of three. `None` if there is
/// no such name, or if `given` itself is known.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(given);
    let known: Vec<&str> = known.into_iter().collect();
    if wanted.is_empty() || known.contains(&given) {
        return None;
    }
    let distance = |name: &str| {
        let name = plain(name);
        let (short, long) = if wanted.len() < name.len() { (&wanted, &name) } else { (&name, &wanted) };
        if short.chars().count() >= BEGINNING && long.starts_with(short.as_str()) {
            return Some(0);
        }
        let changes = strsim::osa_distance(&wanted, &name);
        (changes * 3 <= wanted.chars().count().max(name.chars().count())).then_some(changes)
    };
    let near = known.into_iter().filter_map(|name| Some((distance(name)?, name)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns the question whether the nearest name was meant, to be put behind a name that isn't
/// known: ` (did you mean "bank"?)`. Empty if no name is near.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(" (did you mean \"{name}\"?)"))
}

/// Returns a name without what people mix up: case, and the marks between words.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_the_name_that_was_meant() {
        for (given, known, meant) in [
            ("registres", &["bank", "registers"][..], Some("registers")),
            ("reg", &["bank", "registers"], Some("registers")),
            ("tpcb", &["select-only", "tpcb-like"], Some("tpcb-like")),
            ("Write_Skew", &["write-skew", "bank"], Some("write-skew")),
            ("for-updates", &["for-update", "for-no-key-update"], Some("for-update")),
            ("serialisable", &["repeatable read", "serializable"], Some("serializable")),
            ("duration", &["rate", "rounds"], None),
            ("bank", &["bank", "banks"], None),
            ("", &["bank"], None),
            ("x", &["s", "c"], None),
        ] {
            assert_eq!(nearest(given, known.iter().copied()), meant, "{given}");
        }
    }
}
