//! SQL and files that nobody who starts isobench has written: they run no program, have no superuser's
//! rights on a server of isobench's own, and root reads nothing that others could have written.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use isobench_testkit::capture::{Tape, done, failed, row};

use crate::compare::words;
use crate::support::scene::Scene;

/// Fails for a superuser, wherever it is called from.
const TABLES: &str = "CREATE FUNCTION role() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n\
    IF current_setting('is_superuser') = 'on' THEN RAISE EXCEPTION 'called by a superuser'; END IF;\n\
    RETURN new; END $$;\n\
    CREATE TABLE t (id int PRIMARY KEY, v int);\n\
    INSERT INTO t VALUES (1, 0);\n\
    CREATE TRIGGER role BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION role();\n";

/// A capture of an update that is always made, and of one with a statement that fails before another try.
fn attacked(sql: &str) -> Vec<u8> {
    let mut tape = Tape::begin(false);
    for _ in 0..6 {
        tape.simple(1, "BEGIN", "BEGIN");
        tape.simple(1, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1");
        tape.send(1, "COMMIT", Vec::new(), vec![done("COMMIT")], 'I');
        tape.simple(1, "BEGIN", "BEGIN");
        let columns = [isobench_testkit::capture::column("v", 7, 2, 23)];
        let found = tape.rows(&columns, vec![row(&["1"])]);
        tape.send(1, "SELECT v FROM t WHERE id = 1", Vec::new(), vec![found], 'T');
        tape.simple(1, "SAVEPOINT a", "SAVEPOINT");
        tape.send(1, sql, Vec::new(), vec![failed("42601")], 'E');
        tape.send(1, "ROLLBACK TO SAVEPOINT a", Vec::new(), vec![done("ROLLBACK")], 'T');
        tape.send(1, "COMMIT", Vec::new(), vec![done("COMMIT")], 'I');
    }
    tape.end()
}

#[test]
fn recorded_sql_runs_no_program() {
    let Some(s) = Scene::with_server("recorded_sql_runs_no_program") else { return };
    let planted = s.file("planted");
    let shell = format!("\\shell touch {}", planted.display());
    s.write("tables.sql", TABLES);
    fs::write(s.file("app.capture"), attacked(&format!("SELECT 1 {shell}\n"))).expect("a capture");
    let line = "compare app.capture --levels rc -c 1 --time 200ms --rounds 1 --no-save --try 0";
    s.run(&words(&format!("{line} --setup tables.sql"))).expect(0).says(&[
        "Left out: select-t-something: its SQL has a backslash outside of quotation marks",
        "(6 transactions)",
    ]);
    assert!(!planted.exists());
    // A line that is added later is found whichever way the script is used.
    let script = format!("{}{shell}\n", s.read("app.scripts/update-t.sql"));
    s.write("app.scripts/update-t.sql", &script);
    let refused = "a script that begins with --@ recorded runs no program";
    for line in [
        line,
        "compare --plan app.scripts/workload.toml --no-save",
        "advise app.capture --no-measure",
        "compare -f app.scripts/update-t.sql --setup tables.sql --no-save",
    ] {
        s.run(&words(line)).expect(1).says(&[refused]);
    }
    // Without the mark it is the user's own, and no part of what a capture's name stands for.
    s.write("app.scripts/update-t.sql", script.split_once('\n').expect("lines").1);
    s.run(&words(line)).expect(1).says(&["update-t.sql doesn't begin with the line --@ recorded"]);
    assert!(!planted.exists());
    s.assert_clean();
}

#[test]
fn recorded_and_copied_sql_is_no_superusers() {
    let Some(s) = Scene::with_server("recorded_and_copied_sql_is_no_superusers") else { return };
    s.write("tables.sql", TABLES);
    fs::write(s.file("app.capture"), attacked("SELECT 2")).expect("a capture");
    // The replay, the trial and the measurement call the trigger.
    let made = s.run(&words("scripts app.capture -o app --setup tables.sql")).expect(0);
    assert!(!made.stdout.contains("called by a superuser"), "{}", made.stdout);
    let line =
        "compare --plan app/workload.toml --levels rc,ser -c 2 --time 200ms --rounds 1 --no-save --try 2";
    let compared = s.run(&words(line)).expect(0);
    assert!(!compared.stdout.contains("superuser"), "{}", compared.stdout);
    for (name, sql, said) in [
        ("program.sql", "COPY (SELECT 1) TO PROGRAM 'true';", "pg_execute_server_program"),
        ("file.sql", "SELECT pg_read_file('PG_VERSION');", "permission denied for function pg_read_file"),
        ("object.sql", "SELECT lo_import('PG_VERSION');", "permission denied for function lo_import"),
        ("system.sql", "ALTER SYSTEM SET work_mem = '1MB';", "permission denied"),
        ("role.sql", "SET ROLE postgres;", "permission denied to set role"),
    ] {
        s.write(name, &format!("--@ recorded\n{sql}\n"));
        let line =
            format!("compare -f {name} --setup tables.sql --levels rc --no-save --time 100ms --rounds 1");
        s.run(&words(&line)).says(&[said]);
    }
    for (name, sql) in [
        ("c.sql", "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'system';"),
        ("event.sql", "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION role();"),
    ] {
        s.write(name, &format!("--@ recorded\n{TABLES}{sql}\n"));
        let line = format!("compare -f app/update-t.sql --setup {name} --levels rc --no-save");
        s.run(&words(&line)).expect(1).says(&["permission denied", "without a superuser's rights"]);
    }
    // A specification that was saved of recorded scripts, and scripts that are tried alone.
    s.write("saved.spec", "# --@ recorded\nsession s\nstep a { COPY (SELECT 1) TO PROGRAM 'true'; }\n");
    s.run(&words("probe --spec saved.spec")).prints(&["pg_execute_server_program"]);
    let tried = s.run(&words("probe -f app/update-t.sql --setup app/setup.sql --levels rc --budget 1"));
    assert!(!tried.stdout.contains("superuser") && !tried.stderr.contains("superuser"), "{}", tried.stderr);
    // A script of the user's own runs as before.
    s.write("own.sql", "UPDATE t SET v = v + 1 WHERE id = 1;\n");
    let line = "compare -f own.sql --setup tables.sql --levels rc --no-save --time 100ms --rounds 1";
    s.run(&words(line)).says(&["called by a superuser"]);
    s.assert_clean();
}

#[test]
fn root_executes_nothing_that_others_could_have_written() {
    let name = "root_executes_nothing_that_others_could_have_written";
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: {name}: not root");
    }
    let Some(s) = Scene::with_server(name) else { return };
    s.write("in/tables.sql", TABLES);
    s.write("in/a.sql", "SELECT 1;\n");
    s.write("in/plan.toml", "file = [\"a.sql\"]\n");
    s.write("in/a.spec", "session s1\nstep a { SELECT 1; }\n");
    s.write("in/advice.json", "{}");
    fs::write(s.file("in/app.capture"), attacked("SELECT 2")).expect("a capture");
    s.write("own.sql", "SELECT 1;\n");
    fs::write(s.file("own.capture"), attacked("SELECT 2")).expect("a capture");
    let lines = [
        ("compare in/app.capture --setup own.sql", "in/app.capture"),
        ("advise in/app.capture --setup own.sql", "in/app.capture"),
        ("scripts in/app.capture -o out --setup own.sql", "in/app.capture"),
        ("scripts own.capture -o out --setup in/tables.sql", "in/tables.sql"),
        ("compare --plan in/plan.toml", "in/plan.toml"),
        ("advise --plan in/plan.toml", "in/plan.toml"),
        ("compare -f in/a.sql --setup own.sql", "in/a.sql"),
        ("compare -f own.sql --setup in/tables.sql", "in/tables.sql"),
        ("compare -w in/a.sql", "in/a.sql"),
        ("run -f in/a.sql -n", "in/a.sql"),
        ("probe --spec in/a.spec", "in/a.spec"),
        ("advise -f own.sql --setup own.sql --check in/advice.json", "in/advice.json"),
    ];
    for (folder, owner, why) in
        [(0o777, 0, "other users can write in"), (0o1777, 65534, "belongs to another user")]
    {
        fs::set_permissions(s.file("in"), fs::Permissions::from_mode(folder)).expect("chmod");
        for (line, file) in lines {
            chown(s.file(file), Some(owner), None).expect("chown");
            s.run(&words(line))
                .expect(1)
                .says(&["root executes nothing that others could have written", why]);
        }
    }
    s.assert_clean();
}
