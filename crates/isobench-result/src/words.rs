//! Pieces of sentences that several renderings share.
//!
//! Not here: numbers (`numbers`), and what is said.

/// The text with its first letter in upper case, unless it starts with the name of a setting.
pub fn capital(text: &str) -> String {
    if text.split_whitespace().next().is_some_and(|word| word.contains('_')) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// "a", "a and b", "a, b and c".
pub fn enumerated(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Each item once, in the order in which they come first.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}
