//! `isobench advise`: the kinds of changes that it offers, and no level where none is enough.

use isobench_testkit::night;
use serde_json::Value;

use crate::compare::words;
use crate::support::scene::Scene;

/// A script, and a change that is offered for it.
struct Case {
    setup: &'static str,
    script: &'static str,
    /// The name of the change.
    name: &'static str,
    /// The levels with it.
    levels: &'static str,
    /// Theory proves them.
    proved: bool,
    /// Lines of the patch.
    patch: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        setup: "CREATE TABLE run (id int PRIMARY KEY);\n\
                CREATE TABLE input (id bigserial PRIMARY KEY, run int NOT NULL REFERENCES run);\n\
                INSERT INTO run SELECT generate_series(1, 2); INSERT INTO input (run) VALUES (1), (2);\n",
        script: "\\set r random(1, 2)\n-- a cap\nWITH own AS (SELECT id FROM run WHERE id = :r FOR UPDATE)\n\
                    INSERT INTO input (run) SELECT id FROM own\nWHERE (SELECT count(*) FROM input i WHERE i.run = own.id) < 2;\n",
        name: "lock before 0.sql:3",
        levels: "*=rc",
        proved: true,
        patch: &["+BEGIN;", "+SELECT 1 FROM run WHERE id = :r FOR NO KEY UPDATE;", "+COMMIT;", " -- a cap"],
    },
    Case {
        setup: "CREATE TABLE wallet (id int PRIMARY KEY, balance int NOT NULL);\n\
                INSERT INTO wallet SELECT g, 100 FROM generate_series(1, 2) g;\n",
        script: "\\set w random(1, 2)\nSELECT balance FROM wallet WHERE id = :w \\gset\n\\if :balance > 0\n\
                    UPDATE wallet SET balance = :balance - 1 WHERE id = :w;\n\\endif\n",
        name: "one transaction from 0.sql:2 + lock 0.sql:2",
        levels: "*=rc",
        proved: true,
        patch: &["+BEGIN;", "+SELECT balance FROM wallet WHERE id = :w FOR NO KEY UPDATE \\gset", "+COMMIT;"],
    },
    Case {
        setup: "CREATE TABLE job (id int PRIMARY KEY, key int NOT NULL, doing boolean NOT NULL);\n\
                INSERT INTO job SELECT g, g / 3, false FROM generate_series(1, 6) g;\n",
        script: "UPDATE job SET doing = true WHERE id = (SELECT j.id FROM job j WHERE NOT j.doing AND NOT EXISTS \
                    (SELECT 1 FROM job o WHERE o.key = j.key AND o.doing) ORDER BY j.id LIMIT 1 FOR UPDATE OF j SKIP LOCKED);\n",
        name: "unique index on job (key) where doing",
        levels: "*=rc",
        proved: false,
        patch: &["CREATE UNIQUE INDEX ON job (key) WHERE doing;"],
    },
    Case {
        setup: "CREATE TABLE choice (id bigserial PRIMARY KEY, survey int NOT NULL, place int NOT NULL);\n\
                CREATE INDEX ON choice (survey); INSERT INTO choice (survey, place) VALUES (1, 1), (2, 1);\n",
        script: "\\set s random(1, 2)\nBEGIN;\nDELETE FROM choice WHERE survey = :s;\n\
                    INSERT INTO choice (survey, place) VALUES (:s, 1), (:s, 2);\nCOMMIT;\n",
        name: "lock before 0.sql:3",
        levels: "*=rc",
        proved: true,
        patch: &["+SELECT pg_advisory_xact_lock(hashtext('choice.survey'), :s);"],
    },
    Case {
        setup: "CREATE TABLE ticket (id int PRIMARY KEY, state int NOT NULL);\n\
                INSERT INTO ticket SELECT g, 0 FROM generate_series(1, 2) g;\n",
        script: "\\set t random(1, 2)\n\\set to random(1, 3)\nBEGIN;\nSELECT state FROM ticket WHERE id = :t \\gset\n\
                    \\if :state < :to\nUPDATE ticket -- forward only\nSET state = :to\nWHERE id = :t;\n\\endif\nCOMMIT;\n",
        name: "test again in 0.sql:6",
        levels: "*=rc",
        proved: false,
        patch: &["-WHERE id = :t;", "+WHERE id = :t AND state = :state;", " UPDATE ticket -- forward only"],
    },
    Case {
        setup: "CREATE TABLE booking (id bigserial PRIMARY KEY, room int NOT NULL, begins int NOT NULL, ends int NOT NULL);\n\
                CREATE INDEX ON booking (room);\n",
        script: "\\set r random(1, 3)\n\\set b random(1, 20)\nBEGIN;\nSELECT count(*) AS clashes FROM booking WHERE room = :r AND \
                 begins < :b + 3 AND ends > :b \\gset\n\\if :clashes = 0\n\
                 INSERT INTO booking (room, begins, ends) VALUES (:r, :b, :b + 3);\n\\endif\nCOMMIT;\n",
        name: "exclusion constraint on booking, without the extension btree_gist",
        levels: "*=rc",
        proved: false,
        patch: &[
            "ALTER TABLE booking ADD EXCLUDE USING gist (int8range(room, room, '[]') WITH &&, int8range(begins, ends) WITH &&);",
        ],
    },
    Case {
        setup: "CREATE TABLE item (id int PRIMARY KEY, ticket int NOT NULL, done boolean NOT NULL);\n\
                CREATE TABLE closed (ticket int PRIMARY KEY, times int NOT NULL);\nCREATE INDEX ON item (ticket);\n\
                INSERT INTO item SELECT g, (g + 1) / 2, false FROM generate_series(1, 6) g;\n\
                INSERT INTO closed SELECT g, 0 FROM generate_series(1, 3) g;\n",
        script: "\\set i random(1, 6)\n\\set t (:i + 1) / 2\nBEGIN;\nUPDATE item SET done = true WHERE id = :i;\n\
                 SELECT count(*) AS waiting FROM item WHERE ticket = :t AND NOT done \\gset\n\\if :waiting = 0\n\
                 UPDATE closed SET times = times + 1 WHERE ticket = :t;\n\\endif\nCOMMIT;\n",
        name: "lock before 0.sql:4",
        levels: "*=rc",
        proved: true,
        patch: &["+SELECT 1 FROM item WHERE ticket = :t ORDER BY item.id FOR NO KEY UPDATE;"],
    },
    Case {
        setup: "CREATE TABLE account (id bigserial PRIMARY KEY, email int NOT NULL, role text NOT NULL);\n",
        script: "\\set email random(1, 1000000)\nBEGIN;\nSELECT count(*) AS admins FROM account WHERE role = 'admin' \\gset\n\
                 \\if :admins = 0\nINSERT INTO account (email, role) VALUES (:email, 'admin');\n\\else\n\
                 INSERT INTO account (email, role) VALUES (:email, 'member');\n\\endif\nCOMMIT;\n",
        name: "unique index on account (role) where role = 'admin'",
        levels: "*=rc",
        proved: false,
        patch: &["CREATE UNIQUE INDEX ON account (role) WHERE role = 'admin';"],
    },
    Case {
        setup: "CREATE TABLE account (id bigserial PRIMARY KEY, email int NOT NULL);\n",
        script: "\\set email random(1, 1000000)\nBEGIN;\nSELECT count(*) AS accounts FROM account \\gset\n\
                 \\if :accounts < 3\nINSERT INTO account (email) VALUES (:email);\n\\endif\nCOMMIT;\n",
        name: "lock before 0.sql:3",
        levels: "*=rc",
        proved: true,
        patch: &["+LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE;"],
    },
    Case {
        setup: "CREATE TABLE expert (id int PRIMARY KEY, is_default boolean NOT NULL);\n\
                INSERT INTO expert SELECT g, g = 1 FROM generate_series(1, 4) g;\n",
        script: "\\set e random(1, 4)\nBEGIN;\nUPDATE expert SET is_default = false WHERE is_default AND id <> :e;\n\
                 UPDATE expert SET is_default = true WHERE id = :e;\nCOMMIT;\n",
        name: "unique index on expert (is_default) where is_default",
        levels: "*=rc",
        proved: false,
        patch: &["CREATE UNIQUE INDEX ON expert (is_default) WHERE is_default;"],
    },
    Case {
        setup: "CREATE TABLE stock (id bigserial PRIMARY KEY, sku int NOT NULL, bin int NOT NULL, n int NOT NULL);\n",
        script: "\\set sku random(1, 9)\nMERGE INTO stock AS s USING (SELECT :sku::int AS sku) v ON (v.sku = s.sku AND s.bin = 1)\n\
                 WHEN MATCHED THEN UPDATE SET n = s.n + 1 WHEN NOT MATCHED THEN INSERT (sku, bin, n) VALUES (v.sku, 1, 1);\n",
        name: "unique index on stock (bin, sku)",
        levels: "*=rc",
        proved: false,
        patch: &["CREATE UNIQUE INDEX ON stock (bin, sku);"],
    },
    Case {
        setup: "CREATE TABLE booking (id bigserial PRIMARY KEY, room int NOT NULL, b int NOT NULL, e int NOT NULL, \
                state text NOT NULL);\nCREATE INDEX ON booking (room);\n",
        script: "\\set r random(1, 3)\n\\set b random(1, 20)\nBEGIN;\nSELECT count(*) AS clashes FROM booking WHERE room = :r AND \
                 state NOT IN ('cancelled', 'refused') AND b < :b + 3 AND e > :b \\gset\n\\if :clashes = 0\n\
                 INSERT INTO booking (room, b, e, state) VALUES (:r, :b, :b + 3, 'asked');\n\\endif\nCOMMIT;\n",
        name: "exclusion constraint on booking, without the extension btree_gist",
        levels: "*=rc",
        proved: false,
        patch: &[
            "ALTER TABLE booking ADD EXCLUDE USING gist (int8range(room, room, '[]') WITH &&, int8range(b, e) WITH &&) WHERE \
             (state NOT IN ('cancelled', 'refused'));",
        ],
    },
];

#[test]
fn each_kind_of_change_is_offered() {
    let Some(scene) = Scene::with_database("each_kind_of_change_is_offered") else { return };
    // By day one of each kind: a lock, a test in the statement, an index, a lock of a table.
    let each = if night::all_cases() { 1 } else { 4 };
    for case in CASES.iter().step_by(each) {
        scene.write("setup.sql", case.setup);
        scene.write("0.sql", case.script);
        let line = "advise --setup setup.sql --no-measure --try 20 --json out.json -f 0.sql";
        scene.run(&words(line)).expect(0);
        let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
        let changes = advice["changes"].as_array().expect("changes");
        let change = changes.iter().find(|one| one["name"] == case.name);
        let change = change.unwrap_or_else(|| panic!("{} is missing in {changes:#?}", case.name));
        assert_eq!(change["allocation"], case.levels, "{change:#}");
        assert_eq!(change["unproved"].is_null(), case.proved, "{change:#}");
        assert_eq!(change["refuted"], Value::Null, "{change:#}");
        let patch = change["diff"].as_str().expect("a difference");
        for line in case.patch {
            assert!(patch.lines().any(|own| own == *line), "{line} is missing in {patch}");
        }
    }
}

/// A second script that deletes rows by their key: theory proves no lock, so all of them are tried.
#[test]
fn locks_and_a_foreign_key_keep_the_parent_of_a_row() {
    let Some(scene) = Scene::with_database("locks_and_a_foreign_key_keep_the_parent_of_a_row") else {
        return;
    };
    scene.write(
        "setup.sql",
        "CREATE TABLE post (id int PRIMARY KEY);\n\
         CREATE TABLE comment (id bigserial PRIMARY KEY, post int NOT NULL);\nCREATE INDEX ON comment (post);\n\
         INSERT INTO post SELECT generate_series(1, 9);\n",
    );
    scene.write(
        "add.sql",
        "\\set p random(1, 9)\nBEGIN;\nSELECT count(*) AS there FROM post WHERE id = :p \\gset\n\\if :there = 1\n\
         INSERT INTO comment (post) VALUES (:p);\n\\endif\nCOMMIT;\n",
    );
    scene.write(
        "delete.sql",
        "\\set p random(1, 9)\nBEGIN;\nDELETE FROM comment WHERE post = :p;\nDELETE FROM post WHERE id = :p;\nCOMMIT;\n",
    );
    let line =
        "advise --setup setup.sql --no-measure --try 20 --json out.json -f add.sql -f delete.sql --details";
    scene.run(&words(line)).expect(0);
    let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
    let changes = advice["changes"].as_array().expect("changes");
    for (name, lines) in [
        (
            "foreign key of comment (post) on post",
            &["ALTER TABLE comment ADD FOREIGN KEY (post) REFERENCES post (id);"][..],
        ),
        (
            "lock before add.sql:3 + lock before delete.sql:3",
            &[
                "+SELECT 1 FROM post WHERE id = :p FOR SHARE;",
                "+SELECT 1 FROM post WHERE id = :p FOR NO KEY UPDATE;",
            ],
        ),
    ] {
        let has = |one: &Value, line: &str| {
            one["diff"].as_str().expect("a difference").lines().any(|own| own == line)
        };
        let is_it = |one: &&Value| one["name"] == name && lines.iter().all(|line| has(one, line));
        let change = changes.iter().find(is_it);
        let change = change.unwrap_or_else(|| panic!("{name} is missing in {changes:#?}"));
        assert_eq!(
            (&change["allocation"], &change["refuted"]),
            (&Value::from("*=rc"), &Value::Null),
            "{change:#}"
        );
        assert!(!change["unproved"].is_null(), "{change:#}");
    }
}

/// Whatever trying finds: the order of the scripts doesn't matter.
#[test]
fn a_value_carried_from_one_transaction_to_another_has_no_level() {
    let name = "a_value_carried_from_one_transaction_to_another_has_no_level";
    let Some(scene) = Scene::with_database(name) else { return };
    scene.write(
        "setup.sql",
        "CREATE TABLE execution (id int PRIMARY KEY, ended boolean NOT NULL, steps int NOT NULL, claims int NOT NULL);\n\
         INSERT INTO execution SELECT g, false, 0, 0 FROM generate_series(1, 3) g;\n",
    );
    scene.write("cancel.sql", "\\set e random(1, 3)\nUPDATE execution SET ended = true WHERE id = :e;\n");
    scene.write(
        "step.sql",
        "\\set e random(1, 3)\nSELECT steps, ended::int AS ended FROM execution WHERE id = :e \\gset\n\\if :ended = 0\n\
         UPDATE execution SET steps = :steps + 1 WHERE id = :e;\n\\endif\n",
    );
    scene.write(
        "claim.sql",
        "\\set e random(1, 3)\nUPDATE execution SET claims = claims + 1 WHERE id = :e RETURNING claims AS mine \\gset\n\
         UPDATE execution SET steps = :mine WHERE id = :e;\n",
    );
    // Levels that were written when it was one transaction.
    let step = scene.read("step.sql");
    let (before, after) = step.split_once("SELECT").expect("a statement");
    scene.write("step.sql", &format!("{before}BEGIN;\nSELECT{after}COMMIT;\n"));
    let advise = "advise --setup setup.sql --no-measure --try 20 -f step.sql";
    scene.run(&words(&format!("{advise} --write levels.toml"))).expect(0);
    scene
        .run(&words(&format!("{advise} --check levels.toml")))
        .expect(0)
        .prints(&["are enough for 1 script"]);
    scene.write("step.sql", &step);
    scene
        .run(&words(&format!("{advise} --check levels.toml")))
        .expect(3)
        .prints(&["writes what another transaction"]);
    std::fs::remove_file(scene.file("levels.toml")).expect("the file");
    let files = ["-f cancel.sql -f step.sql", "-f claim.sql", "-f step.sql -f cancel.sql", "-f step.sql"];
    for files in &files[..if night::all_cases() { 4 } else { 2 }] {
        let line = format!("advise --setup setup.sql --no-measure --try 20 --json out.json {files}");
        scene
            .run(&words(&line))
            .expect(0)
            .prints(&["No level is enough for ", "writes what another transaction"]);
        let advice: Value = serde_json::from_str(&scene.read("out.json")).expect("JSON");
        for one in advice["transactions"].as_array().expect("transactions") {
            let carries = one["script"] != "cancel.sql";
            assert_eq!(one["level"].is_null(), carries, "{files}: {one:#}");
            assert!(!carries || one["status"] != "proved", "{files}: {one:#}");
        }
        scene
            .run(&words(&format!(
                "advise --setup setup.sql --no-measure --try 20 --write levels.toml {files}"
            )))
            .expect(2);
    }
}
