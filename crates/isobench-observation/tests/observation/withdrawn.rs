//! Statements that are sent as written after all, and what their own result tells.

use isobench_observation::{Dark, observe_except};
use isobench_script::{CommandKind, SearchWhen, Symbols, parse};

use crate::support;

/// When the result of a statement that is sent as written tells that nothing was found.
fn tells(text: &str) -> Vec<SearchWhen> {
    let catalog = support::catalog(150_000);
    let mut script = parse("test.sql", text, &mut Symbols::new()).expect("a script");
    let observed = observe_except([&mut script], &catalog, &|_| Some(Dark::Unexplained));
    assert_eq!(observed.statements[0].dark.last(), Some(&Dark::Unexplained), "{text}");
    let CommandKind::Sql(sql) = &script.commands[0].kind else { panic!("not SQL: {text}") };
    let of = |seen: &isobench_script::ObservedStatement| {
        assert_eq!((seen.appended, seen.rows.len()), (0, 0), "{text}");
        seen.searches.iter().map(|search| search.when).collect::<Vec<_>>()
    };
    sql.observed.iter().flat_map(of).collect()
}

#[test]
fn an_empty_result_tells_without_columns() {
    assert_eq!(tells("SELECT v FROM t WHERE v = 1;"), [SearchWhen::Empty]);
    assert_eq!(tells("SELECT count(*) FROM t WHERE v = 1;"), [SearchWhen::Column(0, false)]);
    assert_eq!(tells("SELECT max(id), COUNT(*) AS n FROM t WHERE v = 1;"), [SearchWhen::Column(1, false)]);
    assert_eq!(tells("SELECT count(name) FROM t WHERE v = 1;"), []);
    assert_eq!(tells("SELECT count(*) FILTER (WHERE id > 1) FROM t WHERE v = 1;"), []);
    assert_eq!(tells("SELECT v, count(*) FROM t WHERE v = 1 GROUP BY v;"), []);
    assert_eq!(tells("SELECT t.v FROM t JOIN s ON s.t_id = t.id WHERE t.id = 1;"), []);
}
