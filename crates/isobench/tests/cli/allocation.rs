//! A level for each script, side by side with levels for all: what is sent, what is read back, and
//! what is said of the mixture.

use serde_json::Value;

use crate::compare::words;
use crate::support::document::{self, cells};
use crate::support::scene::Scene;

const SETUP: &str = "CREATE TABLE control (id int PRIMARY KEY, batch int NOT NULL);\n\
    INSERT INTO control SELECT g, 1 FROM generate_series(1, 20) g;\n\
    CREATE TABLE receipt (id bigserial PRIMARY KEY, shop int NOT NULL, batch int NOT NULL);\n\
    CREATE INDEX ON receipt (shop, batch);\n";

/// One statement outside of a block.
const CLOSE: &str = "\\set s random(1, 20)\nUPDATE control SET batch = batch + 1 WHERE id = :s;\n";

const RECEIPT: &str = "\\set s random(1, 20)\nBEGIN;\nSELECT batch AS b FROM control WHERE id = :s \\gset\n\
    INSERT INTO receipt (shop, batch) VALUES (:s, :b);\nCOMMIT;\n";

const REPORT: &str = "\\set s random(1, 20)\nBEGIN;\nSELECT batch - 1 AS b FROM control WHERE id = :s \\gset\n\
    SELECT count(*) FROM receipt WHERE shop = :s AND batch = :b;\nCOMMIT;\n";

fn scene(scene: Scene) -> Scene {
    for (name, text) in
        [("setup.sql", SETUP), ("close.sql", CLOSE), ("receipt.sql", RECEIPT), ("report.sql", REPORT)]
    {
        scene.write(name, text);
    }
    scene
}

const SCRIPTS: &str = "compare -f receipt.sql@3 -f close.sql -f report.sql@3 --setup setup.sql";

/// The levels of scripts are read back by a session of isobench's own, which the server counts, too.
#[test]
fn the_session_that_reads_levels_back_is_counted() {
    let Some(s) = Scene::with_database("the_session_that_reads_levels_back_is_counted").map(scene) else {
        return;
    };
    let line = "compare -f receipt.sql -f report.sql --setup setup.sql --levels rc --allocation report=rr,*=rc \
                --time 300ms --rounds 2 --try 0 --json out.json";
    s.run(&words(line)).expect(0);
    let document = document::read(&s, "out.json");
    let rounds = cells(&document).iter().flat_map(|cell| cell["rounds"].as_array().expect("rounds"));
    for (round, sessions) in rounds.zip([8, 8, 9, 9]) {
        let counts = round["server"]["comparison"].as_array().expect("counts");
        let of = |what: &str| counts.iter().find(|count| count["what"] == what).expect("a count");
        assert_eq!(
            (&of("sessions")["ours"], &of("sessions")["servers"]),
            (&sessions.into(), &sessions.into())
        );
    }
}

/// Readers at repeatable read among serializable writers see the read-only anomaly, which nothing
/// promises to prevent (Fekete, O'Neil and O'Neil 2004).
#[test]
fn a_reader_among_serializable_writers_is_judged_by_its_own_level() {
    let Some(s) =
        Scene::with_database("a_reader_among_serializable_writers_is_judged_by_its_own_level").map(scene)
    else {
        return;
    };
    let line = format!(
        "{SCRIPTS} --levels rc --allocation report=rr,*=ser --allocation report.sql=rr,close=rc,*=ser -c 8 \
         --transactions 400 --rounds 2 --warmup 0 --try 0 --json out.json \
         --require mixed+close=rc.tps>0 --require rc.tps>0"
    );
    let finished = s.run(&words(&line)).expect(0);
    finished.prints(&["report: rr; else ser"]);
    let document = document::read(&s, "out.json");
    assert_eq!(
        document["plan"]["allocation"],
        serde_json::json!(["report=rr,*=ser", "report.sql=rr,close=rc,*=ser"])
    );
    let [plain, mixed, three] = cells(&document) else { panic!("three cells") };
    assert_eq!(plain["level"]["requested"], "read committed");
    assert_eq!(mixed["level"]["requested"], Value::Null);
    assert_eq!(mixed["level"]["effective"], "report: rr; else ser");
    let level = |cell: &Value, script: usize| {
        let level = &cell["level"]["scripts"][script];
        [level["script"].clone(), level["requested"].clone(), level["effective"].clone()]
    };
    assert_eq!(level(mixed, 2), ["report.sql", "repeatable read", "repeatable read"]);
    assert_eq!(level(three, 1), ["close.sql", "read committed", "read committed"]);
    for round in mixed["rounds"].as_array().expect("rounds") {
        let named = |script: usize| round["scripts"][script]["levels_named"].clone();
        assert!(named(0)["serializable"].as_u64() > Some(0), "{}", named(0));
        assert!(named(2)["repeatable read"].as_u64() > Some(0), "{}", named(2));
        assert_eq!(round["contradictions"], Value::Null);
    }
    // The statements are those of the author, whatever is sent with them.
    assert_eq!(document["observations"].as_array().map(Vec::len), Some(1));
}

#[test]
fn levels_of_scripts_that_are_wrong_are_refused_before_anything_is_started() {
    let s = scene(Scene::new());
    s.write("call.sql", "SELECT 1;\nCALL p();\n");
    for (more, said) in [
        (
            "--allocation paid=ser,*=rc",
            "has no script \"paid\"; its scripts are receipt.sql, close.sql, report.sql",
        ),
        ("--allocation report=ser", "the level of the other scripts is missing"),
        ("--allocation *=ser", "--allocation: ser is one level for all scripts; name it in --levels"),
        ("--allocation report=rr,*=ser --allocation report=rr,*=ser", "--allocation"),
        ("--allocation report=rr,*=ser -M prepared", "close.sql:2: a statement outside of a block"),
        ("-f call.sql --allocation report=rr,*=ser", "call.sql:2: a procedure or DO outside of a block"),
        ("--allocation report=rr,*=ser --sweep -L 50", "--allocation: excludes --sweep"),
        ("--allocation report=rr,*=ser --readers 1", "--allocation: excludes --readers"),
        ("--allocation report=rr,*=ser --require mixed2.tps>1", "--require"),
        ("--require mixed.tps>1", "the level mixed isn't measured; the levels are"),
    ] {
        s.run(&words(&format!("{SCRIPTS} {more}"))).expect(1).says(&[said]);
    }
}

/// A script that writes can't be READ ONLY, which its trial shows.
#[test]
fn read_only_is_tried_before_measuring() {
    let Some(s) = Scene::with_database("read_only_is_tried_before_measuring").map(scene) else { return };
    let line = format!("{SCRIPTS} --levels rc --allocation close=rr_ro,*=rc --transactions 10");
    let line = words(&line).into_iter().map(|word| word.replace('_', " ")).collect::<Vec<_>>();
    let finished = s.run(&line.iter().map(String::as_str).collect::<Vec<_>>()).expect(2);
    finished.says(&["cannot execute UPDATE in a read-only transaction"]);
}
