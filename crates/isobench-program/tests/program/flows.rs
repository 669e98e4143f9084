//! The flow of values through scripts: what is used, what is carried between transactions, and what
//! could matter of what isn't seen.

use std::collections::BTreeSet;

use isobench_isolation::Level;
use isobench_isolation::observed::{Dependence, StatementUse};
use isobench_observation::{Dark, SeenStatement, observe};
use isobench_program::{Flows, proved_levels, templates};
use isobench_robustness::{Columns, Kind};
use isobench_script::{Symbols, parse};

use crate::support::{Corpus, parsed};

struct Traced {
    flows: Flows,
    usage: Vec<StatementUse>,
    statements: Vec<SeenStatement>,
}

fn traced(corpus: &Corpus, texts: &[&str]) -> Traced {
    let (mut scripts, symbols) = parsed(texts);
    let catalog = corpus.catalog(&scripts);
    let flows = Flows::of(&scripts, &symbols, &catalog);
    let statements = observe(&mut scripts, &catalog).statements;
    let usage = flows.usage(&scripts);
    Traced { flows, usage, statements }
}

/// For each observed statement that reads: the statements that it flows into, by number, with `=` if
/// the value becomes part of what is written, and `?` if it decides.
fn flows(corpus: &Corpus, text: &str) -> Vec<String> {
    let said = |one: &StatementUse| {
        let flow = |flow: &isobench_isolation::observed::Flow| {
            let sign = if flow.how == Dependence::Value { "=" } else { "?" };
            format!("{sign}{}", flow.statement)
        };
        let mut said: Vec<String> = one.into.iter().map(flow).collect();
        said.extend(one.carried.iter().map(|one| format!("carried {}", flow(one))));
        if one.product {
            said.push("product".to_owned());
        }
        if one.guarded {
            said.push("guarded".to_owned());
        }
        if one.flows_unseen {
            said.push("unseen".to_owned());
        }
        said.join(" ")
    };
    traced(corpus, &[text]).usage.iter().map(said).collect()
}

/// For each observed statement: the statements that leave its result as it was.
fn untouched(corpus: &Corpus, text: &str) -> Vec<Vec<u16>> {
    let usage = traced(corpus, &[text]).usage;
    let apart = |uses: &[u16], changes: &[u16]| uses.iter().all(|column| !changes.contains(column));
    let leave = |read: &StatementUse| {
        let writes = (0..).zip(&usage).filter(|(_, write)| {
            read.uses.as_ref().zip(write.changes.as_ref()).is_some_and(|(uses, changes)| apart(uses, changes))
        });
        writes.map(|(number, _)| number).collect()
    };
    usage.iter().map(leave).collect()
}

#[test]
fn levels_below_serializable_have_to_be_proved() {
    let Some(corpus) = &Corpus::of("levels_below_serializable_have_to_be_proved") else { return };
    let proved = |text: &str| {
        let mut symbols = Symbols::new();
        let scripts = [parse("t.sql", text, &mut symbols).expect("a script")];
        let catalog = corpus.catalog(&scripts);
        proved_levels(&scripts, &symbols, &catalog, false)
    };
    let all = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
    assert_eq!(proved("\\set i random(1, 9)\nUPDATE t SET v = v + 1 WHERE id = :i;\n"), all);
    let lost = "BEGIN;\nSELECT v FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :v + 1 WHERE id = 1;\nEND;\n";
    assert_eq!(proved(lost), all[1..]);
    let skew = "BEGIN;\nSELECT sum(v) AS s FROM t \\gset\n\\set i random(1, 9)\n\
                UPDATE t SET v = :s WHERE id = :i;\nEND;\n";
    assert_eq!(proved(skew), []);
    let carried = "SELECT v FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :v + 1 WHERE id = 1;\n";
    assert_eq!(proved(carried), [], "no level protects it");
}

#[test]
fn a_column_that_becomes_a_variable_which_nothing_uses_does_not_count() {
    let Some(corpus) = &Corpus::of("a_column_that_becomes_a_variable_which_nothing_uses_does_not_count")
    else {
        return;
    };
    let with = |read: &str, rest: &str| {
        let text = format!("BEGIN;\n{read}\nUPDATE t SET v = v + 1 WHERE id = 1;\n{rest}\nEND;");
        untouched(corpus, &text)[0].contains(&1)
    };
    let read = "SELECT v, name FROM t WHERE id = 1 \\gset";
    assert!(with(read, "INSERT INTO s VALUES (1, 2, length(:'name'));"));
    assert!(!with(read, "INSERT INTO s VALUES (1, 2, :v);"));
    assert!(!with(read, "\\if :v > 0\nINSERT INTO s VALUES (1, 2, 3);\n\\endif"));
    assert!(!with(read, "\\set w :v + 1\nINSERT INTO s VALUES (1, 2, :w);"));
    // It fails where v is NULL.
    assert!(!with(read, "\\set w :v + 1"));
    let star = "SELECT * FROM t WHERE id = 1 \\gset";
    assert!(with(star, "INSERT INTO s VALUES (1, 2, length(:'name'));"));
    assert!(!with(star, "INSERT INTO s VALUES (1, 2, :v);"));
    assert!(!with("WITH t AS (SELECT * FROM t) SELECT * FROM t WHERE id = 1 \\gset", ""));
    assert!(!with("SELECT v, name FROM t WHERE id = 1;", ""), "the client gets it");
    assert!(!with("SELECT v, name FROM t WHERE id = 1 AND v > 0 \\gset", ""), "it finds the row");
    // What a transaction that writes nothing reads is what it is for.
    let text = "BEGIN;\nSELECT v FROM t WHERE id = 1 \\gset\nEND;\nUPDATE t SET v = 2 WHERE id = 1;";
    assert!(!untouched(corpus, text)[0].contains(&1));
}

#[test]
fn other_columns_leave_a_result_as_it_was() {
    let Some(corpus) = &Corpus::of("other_columns_leave_a_result_as_it_was") else { return };
    let pair = |read: &str, write: &str| untouched(corpus, &format!("BEGIN;\n{read}\n{write}\nEND;"));
    let write = "UPDATE t SET v = v + 1 WHERE id = 1;";
    for (read, unchanged) in [
        ("SELECT name FROM t WHERE id = 1;", true),
        ("SELECT name AS v FROM t WHERE id = 1;", true),
        ("SELECT count(*) AS v FROM t WHERE name = 'a' \\gset", true),
        ("SELECT x.name FROM t AS x WHERE x.id = 1 FOR UPDATE;", true),
        ("SELECT v FROM t WHERE id = 1;", false),
        ("SELECT name FROM t WHERE id = 1 AND v > 0;", false),
        ("SELECT name FROM t WHERE id = 1 ORDER BY v;", false),
        ("SELECT * FROM t WHERE id = 1;", false),
        ("SELECT t.* FROM t WHERE id = 1;", false),
        ("SELECT row_to_json(t) FROM t WHERE id = 1;", false),
        ("SELECT name FROM t WHERE id = 1 AND xmin IS NOT NULL;", false),
    ] {
        let found = pair(read, write);
        assert_eq!(found.first().is_some_and(|by| by.contains(&1)), unchanged, "{read}: {found:?}");
    }
    // A cascade changes the columns of another table.
    let cascades = pair("SELECT owner_id FROM owned WHERE id = 1;", "UPDATE owner SET id = 2 WHERE id = 1;");
    assert!(cascades.iter().all(Vec::is_empty), "{cascades:?}");
    let report =
        traced(corpus, &["SELECT max(owner_id) FROM owned;", "UPDATE owner SET id = 2 WHERE id = 1;"]).flows;
    let plan = Dark::Plan { change: "Seq Scan on owned".to_owned() };
    assert_eq!(report.matters(0, &[plan]).as_deref(), Some("is what a transaction returns"));
    let read = "SELECT name FROM t WHERE id = 1;";
    for (write, unchanged) in [
        ("UPDATE t SET v = 1, name = 'b' WHERE id = 1;", false),
        ("UPDATE t SET (v, name) = (1, 'b') WHERE id = 1;", false),
        ("UPDATE t SET id = 2 WHERE id = 1;", false),
        ("DELETE FROM t WHERE id = 1;", false),
        ("INSERT INTO t (id, v) VALUES (1, 2);", false),
        ("INSERT INTO t (id, v) VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = 3;", false),
    ] {
        let found = pair(read, write);
        assert_eq!(found.first().is_some_and(|by| by.contains(&1)), unchanged, "{write}: {found:?}");
    }
}

#[test]
fn values_flow_through_variables() {
    let Some(corpus) = &Corpus::of("values_flow_through_variables") else { return };
    for (text, expected) in [
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :x + 1 WHERE id = 1;\nEND;",
            ["=1", ""],
        ),
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\nUPDATE t SET v = v + 1 WHERE id = 1;\nEND;",
            ["", ""],
        ),
        ("BEGIN;\nSELECT v FROM t WHERE id = 1;\nUPDATE t SET v = 1 WHERE id = 1;\nEND;", ["", ""]),
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\n\\set y :x + 1\n\
            UPDATE s SET amount = :y WHERE id = 1;\nEND;",
            ["=1", ""],
        ),
        // Which rows are written depends on it.
        (
            "BEGIN;\nSELECT t_id AS x FROM s WHERE id = 1 \\gset\nUPDATE t SET v = 1 WHERE id = :x;\nEND;",
            ["?1", ""],
        ),
        // Whether anything is.
        (
            "\\set n 0\nBEGIN;\nSELECT count(*) AS n FROM s WHERE t_id = 1 \\gset\n\\if :n > 1\n\
            DELETE FROM s WHERE id = 1;\n\\endif\nEND;",
            ["?1", ""],
        ),
        // Who claims a row because of what stands in it overwrites just that.
        (
            "BEGIN;\nSELECT v AS free FROM t WHERE id = 1 \\gset\n\\if :free = 0\nUPDATE t SET v = 7 WHERE id = 1;\n\
            \\endif\nEND;",
            ["=1", ""],
        ),
        // What a branch may have assigned.
        (
            "BEGIN;\n\\set x 1\n\\if :client_id > 1\nSELECT v AS x FROM t WHERE id = 1 \\gset\n\\endif\n\
            UPDATE t SET v = :x WHERE id = 1;\nEND;",
            ["=1", ""],
        ),
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\n\\set x 1\nUPDATE t SET v = :x WHERE id = 1;\nEND;",
            ["", ""],
        ),
        // A part of a literal.
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\nUPDATE t SET name = 'n:x' WHERE id = 1;\nEND;",
            ["=1", ""],
        ),
        // Prefixes, and names that the server gives.
        (
            "BEGIN;\nSELECT max(v) FROM t WHERE id = 1 \\gset a_\nUPDATE t SET v = :a_max WHERE id = 1;\nEND;",
            ["=1", ""],
        ),
        // All columns may be any variable that nothing else assigns.
        ("BEGIN;\nSELECT * FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :v WHERE id = 1;\nEND;", ["=1", ""]),
        // A version guard.
        (
            "BEGIN;\nSELECT v AS x FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :x + 1 WHERE id = 1 AND v = :x;\nEND;",
            ["?1 =1", "guarded"],
        ),
        (
            "BEGIN;\nSELECT v FROM t WHERE id = 1;\nSELECT v FROM t WHERE id = 2;\nEND;",
            ["product", "product"],
        ),
    ] {
        assert_eq!(flows(corpus, text), expected, "{text}");
    }
}

#[test]
fn what_is_computed_elsewhere_may_come_from_all_that_was_read() {
    let Some(corpus) = &Corpus::of("what_is_computed_elsewhere_may_come_from_all_that_was_read") else {
        return;
    };
    let script = |mark: &str| {
        format!(
            "BEGIN;\nSELECT v FROM t WHERE id = :id;\nSELECT count(*) FROM s WHERE t_id = :id;\n\
             {mark}UPDATE t SET v = :new WHERE id = :id;\nEND;\n"
        )
    };
    assert_eq!(flows(corpus, &script("")), ["", "", ""]);
    assert_eq!(flows(corpus, &script("--@ computed\n")), ["=2", "=2", ""]);
    // Not what another transaction read, and not what is read afterwards.
    let two = "SELECT v FROM t WHERE id = :id;\nBEGIN;\n--@ computed\nUPDATE t SET v = :new WHERE id = :id;\n\
               SELECT v FROM t WHERE id = :id;\nEND;\n";
    assert_eq!(flows(corpus, two), ["product", "", ""]);
}

#[test]
fn values_are_carried_between_transactions() {
    let Some(corpus) = &Corpus::of("values_are_carried_between_transactions") else { return };
    let reads = "SELECT v AS x FROM t WHERE id = 1 \\gset\n";
    for (writes, expected) in [
        ("UPDATE t SET v = :x + 1 WHERE id = 1;", Some(("0.sql", 1, 2))),
        ("BEGIN;\nUPDATE t SET v = :x + 1 WHERE id = 1;\nEND;", Some(("0.sql", 1, 3))),
        ("\\if :x > 0\nINSERT INTO s VALUES (1, 2, 3);\n\\endif", Some(("0.sql", 1, 3))),
        // The version that was read is tested.
        ("UPDATE t SET v = :x + 1 WHERE id = 1 AND v = :x;", None),
        ("UPDATE t SET v = :x + 1 WHERE id = 1 AND v = ':x';", None),
        ("UPDATE t SET v = :x + 1 WHERE id = 1 AND v::text = ':x';", None),
        ("UPDATE t SET (v, name) = (:x + 1, '') WHERE (id, v) = (1, :x);", None),
        // What the value is part of, or what may be the same of other values, is no test of it.
        ("UPDATE t SET v = :x + 1 WHERE id = 1 AND v = '1:x';", Some(("0.sql", 1, 2))),
        ("UPDATE t SET v = :x + 1 WHERE id = 1 AND v::bool = :x;", Some(("0.sql", 1, 2))),
        // An address, not a value.
        ("UPDATE s SET amount = 1 WHERE id = :x;", None),
        ("UPDATE t SET v = v + 1 WHERE id = 1;", None),
    ] {
        let text = format!("{reads}{writes}");
        let carried = traced(corpus, &[&text, "UPDATE t SET v = 0 WHERE id = 1;"]).flows.carried();
        let places = carried.first().map(|one| (one.read.file.as_str(), one.read.line, one.written.line));
        assert_eq!(places, expected, "{text}");
    }
    let kept = |texts: &[&str]| traced(corpus, texts).flows.carried().len();
    // The version that the server keeps itself, whatever it is cast to.
    for (shown, tested) in [("xmin", "xmin = :x"), ("xmin::text::bigint", "xmin::text = ':x'")] {
        let script = format!(
            "SELECT {shown} AS x, v FROM t WHERE id = 1 \\gset\nUPDATE t SET v = :v + 1 WHERE id = 1 AND {tested};"
        );
        assert_eq!(kept(&[&script, "UPDATE t SET v = 0 WHERE id = 1;"]), 0, "{script}");
    }
    // Nobody writes what is read, or only other columns of it.
    assert_eq!(
        kept(&[
            "SELECT name AS x FROM t WHERE id = 1 \\gset\nUPDATE t SET v = v + length(:'x') WHERE id = 1;"
        ]),
        0
    );
    assert_eq!(kept(&["SELECT v AS x FROM t WHERE id = 1 \\gset\nINSERT INTO s VALUES (1, 2, :x);"]), 0);
    // A value that a transaction wrote itself is known to it, and ages for the next one.
    let returned =
        "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v AS x \\gset\nINSERT INTO s VALUES (1, 2, :x);";
    assert_eq!(kept(&[returned]), 1);
    assert_eq!(kept(&[&format!("BEGIN;\n{returned}\nEND;")]), 0);
    // A version is none if a WITH query sets it otherwise.
    let guarded = "SELECT v, price FROM t WHERE id = 1 \\gset\nUPDATE t SET price = :price + 1, v = v + 1 WHERE id = 1 AND v = :v;";
    assert_eq!(kept(&[guarded, "UPDATE t SET price = 0, v = v + 1 WHERE id = 1;"]), 0);
    let otherwise =
        "WITH d AS (UPDATE t SET v = 0, price = 7 WHERE id = 1) UPDATE t SET v = v + 1 WHERE id = 2;";
    assert_eq!(kept(&[guarded, otherwise]), 1);
    // Another column's test guards a value only if that column is a version, or the value's own; and only of its row.
    for (writes, expected) in [
        ("UPDATE t SET v = :v + 1 WHERE id = 1 AND name = ':name';", 1),
        ("UPDATE t SET v = :v + 1 WHERE id = 2 AND v = :v;", 1),
        ("UPDATE t SET v = :v + 1 WHERE id = 1 AND v > :v;", 1),
        ("UPDATE t SET name = 'x' WHERE id = 1 AND v < :v;", 1),
        ("UPDATE t SET v = :v + 1 WHERE id = 1 AND v = :v AND name = ':name';", 0),
    ] {
        let script = format!("SELECT v, name FROM t WHERE id = 1 \\gset\n{writes}");
        let found = kept(&[&script, "UPDATE t SET v = 0, name = 'y' WHERE id = 1;"]);
        assert_eq!(found, expected, "{writes}");
    }
    // A variable that the script may not have assigned has a value of its run before, or of another script.
    let reads = "SELECT v FROM t WHERE id = 1 \\gset\n";
    let other = "UPDATE t SET v = 0 WHERE id = 1;";
    let writes = "INSERT INTO s VALUES (1, 2, :v);\n";
    assert_eq!(kept(&[&format!("{writes}{reads}"), other]), 1);
    assert_eq!(kept(&[writes, reads, other]), 1);
    assert_eq!(kept(&[&format!("BEGIN;\n\\if :c\n{reads}\\endif\n{writes}END;"), other]), 1);
    assert_eq!(
        kept(&[&format!("BEGIN;\n\\if :c\n{reads}\\else\n\\set v 1\n\\endif\n{writes}END;"), other]),
        0
    );
    // A key doesn't age.
    assert_eq!(
        kept(&[
            "SELECT id AS x FROM t WHERE v = 1 \\gset\nINSERT INTO s VALUES (1, :x, 3);",
            "DELETE FROM t WHERE id = 1;"
        ]),
        0
    );
}

#[test]
fn what_is_not_seen_may_matter() {
    let Some(corpus) = &Corpus::of("what_is_not_seen_may_matter") else { return };
    let matters = |texts: &[&str]| -> Vec<Option<String>> {
        let traced = traced(corpus, texts);
        let seen = traced.statements.iter().enumerate();
        seen.map(|(number, seen)| traced.flows.matters(number, &seen.dark)).collect()
    };
    let some = |text: &str| Some(text.to_owned());
    let decides = "BEGIN;\nSELECT count(*) AS n FROM nokey WHERE x = 1 \\gset\n\\if :n = 0\n\
        INSERT INTO s VALUES (1, 2, 3);\n\\endif\nEND;";
    assert_eq!(matters(&[decides])[1], None, "nobody writes the table");
    let writer = "INSERT INTO nokey VALUES (1, 2);";
    assert_eq!(matters(&[decides, writer])[1], some("decides an INSERT"));
    assert_eq!(matters(&[writer])[0], None, "whatever others add, it adds the same");
    let unseen = some("is an INSERT that isn't seen wholly");
    for other in [
        "SELECT count(*) FROM nokey;",
        "INSERT INTO nokey SELECT x, y FROM nokey;",
        "UPDATE nokey SET y = 1;",
        "DELETE FROM nokey;",
        "SELECT peek(1);",
        "SELECT v FROM seen;",
        "UPDATE audited SET v = 1;",
    ] {
        assert_eq!(matters(&[writer, other])[0], unseen, "{other}");
    }
    // Rows of other tables are shown by views, partitions and parents.
    for (read, write) in [
        ("SELECT v FROM seen WHERE id = 1;", "UPDATE t SET v = 1 WHERE id = 1;"),
        ("SELECT sum(v) FROM seen;", "UPDATE t SET v = 1 WHERE id = 1;"),
        ("SELECT v FROM loose WHERE id = 1;", "UPDATE loose_child SET v = 1 WHERE id = 1;"),
    ] {
        assert_eq!(matters(&[read, write])[0], some("is what a transaction returns"), "{read}");
    }
    let unused = "BEGIN;\nSELECT count(*) FROM nokey WHERE x = 1;\nINSERT INTO s VALUES (1, 2, 3);\nEND;";
    assert_eq!(matters(&[unused, writer])[1], None, "it goes nowhere");
    let report = "SELECT count(*) FROM nokey;";
    assert_eq!(matters(&[report, writer])[0], some("is what a transaction returns"));
    let flows =
        "BEGIN;\nSELECT y AS n FROM nokey WHERE x = 1 \\gset\nUPDATE s SET amount = :n WHERE id = 1;\nEND;";
    assert_eq!(matters(&[flows, writer])[1], some("flows into an UPDATE"));
    assert_eq!(matters(&["SELECT v FROM t WHERE id = 1;", "UPDATE t SET v = 1 WHERE id = 1;"]), [None, None]);
    // Seen but for its plan: what it reads is written elsewhere.
    let report = |column: &str| {
        traced(corpus, &[&format!("SELECT max({column}) FROM t;"), "UPDATE t SET v = 1 WHERE id = 1;"]).flows
    };
    let (other, report) = (report("id"), report("v"));
    let plan = Dark::Plan { change: "Seq Scan on t".to_owned() };
    assert_eq!(report.matters(0, std::slice::from_ref(&plan)), some("is what a transaction returns"));
    assert_eq!(other.matters(0, std::slice::from_ref(&plan)), None, "only another column is");
    assert_eq!(report.matters(1, &[plan]), some("is an UPDATE that isn't seen wholly"));
}

/// For each observed statement: the numbers of the columns that it uses, and of those that it changes.
fn columns(corpus: &Corpus, texts: &[&str]) -> Vec<[Option<Vec<u16>>; 2]> {
    traced(corpus, texts).usage.into_iter().map(|one| [one.uses, one.changes]).collect()
}

#[test]
fn columns_for_isobench_alone_count_for_nothing() {
    let Some(corpus) = &Corpus::of("columns_for_isobench_alone_count_for_nothing") else { return };
    let read = "--@ read t key=$1 version=$2 value=$3\nSELECT id, v, u, name FROM t WHERE id = 1;";
    let write = "--@ write t key=$1 version=$2 value=$3\n\
        UPDATE t SET price = price + 1, v = v + 1, u = :attempt_id WHERE id = 1 RETURNING id, v, u \\gset";
    let plain = |text: &str| text.replace(", v, u", "").replace(", v = v + 1, u = :attempt_id", "");
    let bare = [plain(read), plain(write)];
    let bare = bare.map(|text| text.lines().nth(1).unwrap().to_owned());
    assert_eq!(columns(corpus, &[read, write]), columns(corpus, &[&bare[0], &bare[1]]));
    let counts = |texts: &[&str]| {
        let found = columns(corpus, texts);
        let [Some(used), _] = &found[0] else { panic!("{found:?}") };
        found.iter().skip(1).any(|[_, changed]| {
            changed.as_ref().is_none_or(|changed| changed.iter().any(|column| used.contains(column)))
        })
    };
    assert!(!counts(&[read, write]));
    for data in [
        // The version is tested, passed on, or computed with.
        "UPDATE t SET v = v + 1 WHERE id = 1 AND v = 7;",
        "SELECT id, v AS x FROM t WHERE id = 1 \\gset\nUPDATE s SET amount = :x WHERE id = 1;",
        "UPDATE t SET price = v WHERE id = 1;",
        // Any column may be used.
        "SELECT * FROM t WHERE id = 1;",
        "\\set x :v + 1\nUPDATE s SET amount = :x WHERE id = 1;",
        // It is all that there is.
        "UPDATE t SET v = v + 1, u = :attempt_id WHERE id = 1;",
        "--@ read t key=$1 version=$2\nSELECT id, v FROM t WHERE id = 1;",
    ] {
        assert!(counts(&[read, write, data]), "{data}");
    }
}

/// The columns that a program reads of table t.
fn reads(corpus: &Corpus, texts: &[&str]) -> String {
    let (scripts, symbols) = parsed(texts);
    let templates = templates(&scripts, &symbols, &corpus.catalog(&scripts), &BTreeSet::new());
    let operations = &templates.programs[0].branches[0].operations;
    let read = operations.iter().find(|operation| operation.kind == Kind::Read && operation.table == "t");
    match &read.unwrap_or_else(|| panic!("{operations:?}")).reads {
        Columns::These(names) => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        Columns::All => "all".to_owned(),
    }
}

#[test]
fn what_only_becomes_variables_that_nothing_uses_is_not_read() {
    let Some(corpus) = &Corpus::of("what_only_becomes_variables_that_nothing_uses_is_not_read") else {
        return;
    };
    let reads = |texts: &[&str]| reads(corpus, texts);
    let read = "BEGIN;\nSELECT v, price AS p FROM t WHERE id = 1 \\gset\n";
    let with = |rest: &str| reads(&[&format!("{read}{rest}\nUPDATE t SET name = 'x' WHERE id = 1;\nEND;")]);
    assert_eq!(with(""), "id");
    // It fails where v is NULL; the key never is.
    assert_eq!(with("\\set n :v + 1"), "id, v");
    assert_eq!(with("\\set n :p"), "id, price");
    assert_eq!(with("\\set n :v + 1\n\\set m :n\nSELECT :m;"), "id, v");
    assert_eq!(with("\\if :p > 1\n\\endif"), "id, price");
    // Who sees it may use it.
    assert_eq!(
        reads(&["BEGIN;\nSELECT v FROM t WHERE id = 1;\nUPDATE t SET name = 'x' WHERE id = 1;\nEND;"]),
        "id, v"
    );
    // Variables last longer than a script.
    let writing = format!("{read}UPDATE t SET name = 'x' WHERE id = 1;\nEND;");
    assert_eq!(reads(&[&writing, "SELECT :p;"]), "id, price");
    // What it returns is what the transaction is for.
    assert_eq!(reads(&[&format!("{read}END;")]), "id, price, v");
    let before = "BEGIN;\nUPDATE s SET amount = :v WHERE id = 1;\nSELECT v FROM t WHERE id = 1 \\gset\nEND;";
    assert_eq!(reads(&[before]), "id, v");
}

/// What each UPDATE that can be rewritten sets then, and where it stands.
fn rewritten(corpus: &Corpus, text: &str) -> Vec<String> {
    let mut symbols = Symbols::new();
    let scripts = [parse("s.sql", text, &mut symbols).expect("a script")];
    let templates = templates(&scripts, &symbols, &corpus.catalog(&scripts), &BTreeSet::new());
    templates
        .statements
        .iter()
        .filter_map(|statement| Some(statement.rewritten.as_ref()?.text.clone()))
        .collect()
}

#[test]
fn updates_need_not_depend_on_what_was_read() {
    let Some(corpus) = &Corpus::of("updates_need_not_depend_on_what_was_read") else { return };
    let of = |between: &str, set: &str| {
        let read = "BEGIN;\nSELECT v, price AS p, name FROM t WHERE id = :id \\gset";
        let found = rewritten(
            corpus,
            &format!("{read}\n{between}\nUPDATE t SET {set} WHERE id = :id RETURNING v;\nEND;"),
        );
        found.into_iter().next().unwrap_or_default()
    };
    let whole = |set: &str| format!("UPDATE t SET {set} WHERE id = :id RETURNING v");
    for (between, set, expected) in [
        ("", "v = :v + 1", "v = v + 1"),
        ("", "v = :d + :v - 2", "v = :d + v - 2"),
        ("", "v = 2 * (:d - 1) + :v", "v = 2 * (:d - 1) + v"),
        ("\\set v :v - :d", "v = :v", "v = v - :d"),
        ("\\set n 5 + :v", "v = :n, name = 'x'", "v = v + 5, name = 'x'"),
        // What is written back is left out.
        ("", "v = :v, price = :p + 1, name = :name", "price = price + 1"),
        ("", "v = :d, name = :name", "v = :d"),
    ] {
        assert_eq!(of(between, set), whole(expected), "{between} {set}");
    }
    for (between, set) in [
        // More than a sum, another column, another row, a value that was changed otherwise or is there no more.
        ("", "v = :v * 2"),
        ("", "v = 2 - :v"),
        ("", "v = abs(:v)"),
        ("", "v = :p + 1"),
        ("", "v = :v"),
        ("\\set id 7", "v = :v + 1"),
        ("\\set v 3", "v = :v + 1"),
        ("\\set n :v + :d\n\\set d 7", "v = :n"),
        ("\\set v :v * 2", "v = :v"),
        ("\\if :d\n\\set v :v - :d\n\\endif", "v = :v"),
    ] {
        assert_eq!(of(between, set), "", "{between} {set}");
    }
    // Across transactions a value is still added, but not written back.
    let across = |set: &str| {
        rewritten(
            corpus,
            &format!("SELECT v, name FROM t WHERE id = :id \\gset\nUPDATE t SET {set} WHERE id = :id;"),
        )
    };
    assert_eq!(across("v = :v + 1"), ["UPDATE t SET v = v + 1 WHERE id = :id"]);
    assert_eq!(across("v = 1, name = :name"), [""; 0]);
}

#[test]
fn rows_that_are_counted_can_be_locked() {
    let Some(corpus) = &Corpus::of("rows_that_are_counted_can_be_locked") else { return };
    let locked = |text: &str| {
        let mut symbols = Symbols::new();
        let scripts = [parse("s.sql", text, &mut symbols).expect("a script")];
        let templates = templates(&scripts, &symbols, &corpus.catalog(&scripts), &BTreeSet::new());
        let lock = templates.statements[0].locks_within.first().cloned();
        lock.map(|lock| lock.text()).unwrap_or_default()
    };
    assert_eq!(
        locked("SELECT count(*) AS n FROM t WHERE v = :v AND active \\gset"),
        "SELECT count(*) AS n FROM (SELECT * FROM t WHERE v = :v AND active ORDER BY t.id FOR NO KEY UPDATE) AS t"
    );
    assert_eq!(
        locked("SELECT sum(x.v) FROM t AS x WHERE x.id < 3;"),
        "SELECT sum(x.v) FROM (SELECT * FROM t AS x WHERE x.id < 3 ORDER BY x.id FOR NO KEY UPDATE) AS x"
    );
    assert_eq!(
        locked(
            "WITH c AS (SELECT id, (v + 1) AS n FROM t WHERE id = :i) UPDATE t SET v = c.n FROM c WHERE t.id = c.id;"
        ),
        "WITH c AS (SELECT id, (v + 1) AS n FROM t WHERE id = :i FOR NO KEY UPDATE) UPDATE t SET v = c.n FROM c WHERE t.id \
         = c.id"
    );
    // Who changes what is left of the first one waits for it; who takes it away doesn't.
    let first = "BEGIN;\nSELECT id, v FROM t WHERE active ORDER BY id LIMIT 1 \\gset\n";
    for (update, skips) in [
        ("UPDATE t SET v = :v - 1 WHERE id = :id;", false),
        ("UPDATE t SET v = v - 1 WHERE id = :id;", false),
        ("UPDATE t SET v = v - 1, active = false WHERE id = :id;", true),
        ("UPDATE t SET active = false WHERE id = :id;", true),
        ("UPDATE t SET v = v - 1 WHERE id = :id;\nDELETE FROM t WHERE id = :id;", true),
        ("UPDATE s SET amount = amount - :v WHERE id = :id;", true),
    ] {
        let text = locked(&format!("{first}{update}\nEND;"));
        assert_eq!(text.ends_with("SKIP LOCKED"), skips, "{update}: {text}");
        assert!(skips || text.ends_with("LIMIT 1 FOR NO KEY UPDATE"), "{text}");
    }
    // Whoever takes the first of a queue passes over what others have taken.
    for (text, expected) in [
        (
            "SELECT id FROM t WHERE active ORDER BY id LIMIT 1 \\gset",
            "SELECT id FROM t WHERE active ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        ),
        (
            "SELECT id, substring(v::text for 3) AS s FROM t WHERE active LIMIT 1 \\gset",
            "SELECT id, substring(v::text for 3) AS s FROM t WHERE active LIMIT 1 FOR UPDATE SKIP LOCKED",
        ),
        (
            "DELETE FROM t WHERE id = (SELECT id FROM t WHERE active LIMIT 1) RETURNING v;",
            "DELETE FROM t WHERE id = (SELECT id FROM t WHERE active LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING v",
        ),
    ] {
        assert_eq!(locked(text), expected);
    }
    for (text, expected) in [
        (
            "WITH c AS (SELECT count(*) AS n FROM t WHERE id < 3) UPDATE t SET v = c.n FROM c WHERE id = 1;",
            "WITH c AS (SELECT count(*) AS n FROM (SELECT * FROM t WHERE id < 3 ORDER BY t.id FOR NO KEY UPDATE) AS t) UPDATE t SET v = \
             c.n FROM c WHERE id = 1",
        ),
        (
            "UPDATE t SET v = (SELECT count(*)\n  FROM s -- all\n  WHERE id < 3)\nWHERE id = 1;",
            "UPDATE t SET v = (SELECT count(*)\n  FROM (SELECT * FROM s -- all\n  WHERE id < 3 ORDER BY s.id FOR NO KEY UPDATE) AS s)\n\
             WHERE id = 1",
        ),
        (
            "INSERT INTO s (id) SELECT id FROM t WHERE v = :v ON CONFLICT DO NOTHING;",
            "INSERT INTO s (id) SELECT id FROM t WHERE v = :v FOR NO KEY UPDATE ON CONFLICT DO NOTHING",
        ),
    ] {
        assert_eq!(locked(text), expected);
    }
    for other in [
        // Plain rows are locked without a subquery, and groups, several tables or all rows aren't.
        "SELECT v FROM t WHERE id = 1;",
        "SELECT count(*) FROM t;",
        "SELECT v, count(*) FROM t WHERE id < 3 GROUP BY v;",
        "SELECT count(*) FROM t, s WHERE t.id = s.id;",
        "SELECT DISTINCT v FROM t WHERE id < 3;",
        "WITH c AS (SELECT v FROM t WHERE id = 1 FOR SHARE) UPDATE t SET v = c.v FROM c WHERE id = 1;",
        "SELECT id FROM t WHERE active LIMIT 1 FOR UPDATE;",
    ] {
        assert_eq!(locked(other), "", "{other}");
    }
}

#[test]
fn constants_are_what_depends_on_nothing() {
    let Some(corpus) = &Corpus::of("constants_are_what_depends_on_nothing") else { return };
    let mut symbols = Symbols::new();
    let text =
        "UPDATE t SET active = true, name = 'x', v = 7, price = v, c = :c, d = 1 + 1 WHERE id = :id;\n";
    let scripts = [parse("s.sql", text, &mut symbols).expect("a script")];
    let templates = templates(&scripts, &symbols, &corpus.catalog(&scripts), &BTreeSet::new());
    let found: Vec<&str> = templates.statements[0].constants.iter().map(String::as_str).collect();
    assert_eq!(found, ["active", "name", "v"]);
}

/// For each observed statement: the columns that it could be without.
fn unchanged(corpus: &Corpus, text: &str) -> Vec<String> {
    let names = |one: &StatementUse| {
        let names: Vec<&str> = one.unchanged.iter().map(|column| column.name.as_str()).collect();
        names.join(" ")
    };
    traced(corpus, &[text]).usage.iter().map(names).collect()
}

#[test]
fn columns_that_are_written_back_are_known() {
    let Some(corpus) = &Corpus::of("columns_that_are_written_back_are_known") else { return };
    let save = "UPDATE t SET name = :name, price = :price WHERE id = :id;\nEND;";
    let of = |read: &str, between: &str, save: &str| {
        unchanged(corpus, &format!("BEGIN;\n{read}\n{between}\n{save}"))
    };
    let read = "SELECT id, name, price FROM t WHERE id = :id \\gset";
    assert_eq!(of(read, "\\set price :price + 1", save), ["name", "name"]);
    assert_eq!(of(read, "", save), ["name price", "name price"]);
    // The condition needs it, or a decision does.
    let tested = "SELECT id, name, price FROM t WHERE id = :id AND name <> '' \\gset";
    assert_eq!(of(tested, "\\set price :price + 1", save), ["", "name"]);
    assert_eq!(of(read, "\\set price :price + :name", save), ["", "name"]);
    // Another row, another transaction, another column, or another value.
    for (between, save) in [
        ("\\set id :id + 1", save),
        ("\\set name 1", save),
        ("END;\nBEGIN;", save),
        ("", "UPDATE t SET name = :name, price = :price WHERE id = :other;\nEND;"),
        ("", "UPDATE t SET note = :name, price = :price + 1 WHERE id = :id;\nEND;"),
    ] {
        let found = of(read, between, save);
        assert!(!found[1].contains("name"), "{between} {save}: {found:?}");
    }
}
