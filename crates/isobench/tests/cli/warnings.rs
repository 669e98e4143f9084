//! `isobench advise`: mistakes that no level prevents are named once, with what to do.

use serde_json::Value;

use crate::compare::words;
use crate::support::scene::Scene;

#[test]
fn what_no_level_prevents_is_a_warning_with_its_remedy() {
    let Some(scene) = Scene::with_database("what_no_level_prevents_is_a_warning_with_its_remedy") else {
        return;
    };
    scene.write(
        "setup.sql",
        "CREATE TABLE outbox (id bigserial PRIMARY KEY, body int);\n\
         CREATE TABLE mark (id int PRIMARY KEY, seen bigint NOT NULL);\nINSERT INTO mark VALUES (1, 0);\n\
         CREATE TABLE job (id int PRIMARY KEY, locked_at timestamptz);\nINSERT INTO job VALUES (1);\n\
         CREATE TABLE log (job int);\n",
    );
    scene.write("publish.sql", "INSERT INTO outbox (body) VALUES (1);\n");
    scene.write(
        "poll.sql",
        "BEGIN;\nSELECT seen AS last FROM mark WHERE id = 1 FOR UPDATE \\gset\n\
         SELECT coalesce(max(id), :last) AS upto FROM outbox WHERE id > :last \\gset\n\
         UPDATE mark SET seen = :upto WHERE id = 1;\nCOMMIT;\n",
    );
    scene.write(
        "work.sql",
        "UPDATE job SET locked_at = now() WHERE id = 1 AND (locked_at IS NULL OR locked_at < now() - interval '1 min');\n\
         INSERT INTO log VALUES (1);\n",
    );
    let line = "advise --setup setup.sql --no-measure --try 20 --json out.json -f publish.sql -f poll.sql -f work.sql";
    let run = scene.run(&words(line)).expect(0);
    run.prints(&[
        "Warning",
        "poll.sql:3 may miss rows of outbox",
        "work.sql:2 may write after another transaction",
    ]);
    let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    let warnings: Vec<&str> =
        advice["warnings"].as_array().expect("warnings").iter().filter_map(Value::as_str).collect();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(warnings[0].contains("pg_snapshot_xmin(pg_current_snapshot())"), "{warnings:#?}");
    assert!(warnings[1].contains("Raise a number with each claim"), "{warnings:#?}");
    // A reader that asks which transactions have ended, and a claim that is tested again.
    scene.write(
        "poll.sql",
        "BEGIN;\nSELECT seen AS last FROM mark WHERE id = 1 FOR UPDATE \\gset\n\
         SELECT coalesce(max(id), :last) AS upto FROM outbox WHERE id > :last \
         AND xmin::text::bigint < pg_snapshot_xmin(pg_current_snapshot())::text::bigint \\gset\n\
         UPDATE mark SET seen = :upto WHERE id = 1;\nCOMMIT;\n",
    );
    scene.write("work.sql", "INSERT INTO log VALUES (1);\n");
    scene.run(&words(line)).expect(0);
    let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    assert_eq!(advice["warnings"], serde_json::json!([]));
}

/// What a set of locked rows, a locked table and keys that never meet protect, is proved; a MERGE gets a hint.
#[test]
fn locks_of_sets_and_tables_are_proved() {
    let Some(scene) = Scene::with_database("locks_of_sets_and_tables_are_proved") else { return };
    scene.write(
        "setup.sql",
        "CREATE TABLE item (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);\n\
         CREATE TABLE tag (name int PRIMARY KEY, n int NOT NULL);\n\
         INSERT INTO item SELECT g, g % 3, 5 FROM generate_series(1, 9) g;\n",
    );
    let script = |lock: &str| {
        format!(
            "\\set o random(0, 2)\n\\set i random(1, 9)\nBEGIN;\n{lock};\nSELECT sum(n) AS s FROM item WHERE owner = :o \\gset\n\
             \\if :s > 8\nUPDATE item SET n = n - 1 WHERE id = :i;\n\\endif\nCOMMIT;\n"
        )
    };
    let line = "advise --setup setup.sql --no-measure --try 20 --json out.json";
    for (lock, level) in [
        ("SELECT 1 FROM item WHERE owner = :o ORDER BY id FOR UPDATE", "read committed"),
        ("LOCK TABLE item IN EXCLUSIVE MODE", "read committed"),
        ("SELECT 1 FROM item WHERE owner = :o FOR UPDATE SKIP LOCKED", "serializable"),
    ] {
        scene.write("take.sql", &script(lock));
        scene.run(&words(&format!("{line} -f take.sql"))).expect(0);
        let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
        let one = &advice["transactions"][0];
        assert_eq!((one["level"].as_str(), &one["status"]), (Some(level), &Value::from("proved")), "{lock}");
    }
    scene.write(
        "tag.sql",
        "\\set t random(1, 3)\nMERGE INTO tag USING (VALUES (:t::int)) s (name) ON tag.name = s.name\n\
         WHEN MATCHED THEN UPDATE SET n = tag.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.name, 1);\n",
    );
    scene.run(&words(&format!("{line} -f tag.sql"))).expect(0).prints(&["ON CONFLICT"]);
}
