//! Names that have to be quoted, as the server has them.

use isobench_observation::is_reserved;

use crate::workloads::installed;

#[test]
fn the_servers_reserved_words_are_known() {
    let Some((_server, mut connection)) = installed("the_servers_reserved_words_are_known") else { return };
    let words = "SELECT string_agg(word, ' ') FROM pg_get_keywords() WHERE catcode IN ('R', 'T')";
    let words = connection.value(words).expect("keywords").expect("some");
    let unknown: Vec<&str> = words.split(' ').filter(|word| !is_reserved(word)).collect();
    assert!(unknown.is_empty() && words.len() > 100, "{unknown:?} of {words}");
    assert!(!is_reserved("balance"));
}
