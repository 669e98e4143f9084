//! `isobench scripts`: from a capture of a small shop to scripts, to a comparison and to advice.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use isobench_testkit::capture::{BASKETS, SHOP, Tape, baskets, done, shop};

use crate::compare::words;
use crate::support::named::Database;
use crate::support::program::Running;
use crate::support::scene::Scene;

const ORDER: &str = "insert-orders-line-update-stock-offer.sql";

fn scene(name: &str) -> Option<Scene> {
    let scene = Scene::with_server(name)?;
    fs::write(scene.file("shop.capture"), shop(40)).expect("a capture");
    scene.write("shop.sql", SHOP);
    Some(scene)
}

/// Orders at once lose the counter of an offer, which is saved as a whole: django-oscar #4580.
#[test]
fn a_recorded_shop_is_compared_and_advised_on() {
    let Some(s) = scene("a_recorded_shop_is_compared_and_advised_on") else { return };
    s.run(&words("scripts shop.capture -o shop --setup shop.sql")).expect(0).prints(&[
        "2 templates are 100.0 % of 80 transactions.",
        "isobench advise --plan shop/workload.toml",
    ]);
    let mode = fs::metadata(s.file("shop")).expect("the folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let line =
        "compare --plan shop/workload.toml --levels rc,rr -c 4 --time 300ms --rounds 2 --no-save --try 10";
    s.run(&words(line)).expect(0).prints(&[
        "Use REPEATABLE READ",
        "Read committed",
        "lost updates",
        &format!("{ORDER}:5"),
    ]);
    let line = "advise --plan shop/workload.toml --no-measure --details --try 10 --json out.json";
    s.run(&words(line)).expect(0);
    let advice: serde_json::Value = serde_json::from_str(&s.read("out.json")).expect("JSON");
    let transactions = advice["transactions"].as_array().expect("transactions");
    let level = |name: &str| {
        let of =
            |one: &&serde_json::Value| one["script"].as_str().is_some_and(|script| script.ends_with(name));
        transactions.iter().find(of).unwrap_or_else(|| panic!("{advice:#}"))["level"].clone()
    };
    assert_eq!(level(ORDER), "repeatable read", "{advice:#}");
    assert_eq!(level("select-stock.sql"), "read committed", "{advice:#}");
    s.assert_clean();
}

/// The replay that compares the scripts with the record pauses, too.
#[test]
fn pauses_of_the_application_are_kept_if_asked_for() {
    let Some(s) = scene("pauses_of_the_application_are_kept_if_asked_for") else { return };
    let mut tape = Tape::begin(false);
    for _ in 0..3 {
        tape.simple(1, "BEGIN", "BEGIN");
        tape.simple(1, "UPDATE stock SET allocated = 1 WHERE id = 1", "UPDATE 1");
        tape.pass(3_950);
        tape.simple(1, "COMMIT", "COMMIT");
    }
    fs::write(s.file("slow.capture"), tape.end()).expect("a capture");
    s.run(&words("scripts slow.capture -o slow --setup shop.sql --pauses")).expect(0);
    let script = s.read("slow/update-stock.sql");
    assert!(script.ends_with("WHERE id = 1;\n\\sleep 4000 us\nCOMMIT;\n"), "{script}");
    s.run(&words("scripts slow.capture -o fast --setup shop.sql --no-check")).expect(0);
    assert!(!s.read("fast/update-stock.sql").contains("sleep"));
}

#[test]
fn what_cannot_be_made_is_refused_and_nothing_is_written() {
    let Some(s) = scene("what_cannot_be_made_is_refused_and_nothing_is_written") else { return };
    s.write("full/mine.sql", "");
    s.write("other.capture", "{\"isobench_capture\": 99}\n");
    for (line, said) in [
        ("scripts shop.capture -o out", "Three ways: --copy-from CONNINFO"),
        ("scripts shop.capture -o full --setup shop.sql", "\"full\" isn't empty"),
        ("scripts shop.sql -o out --setup shop.sql", "this is no capture"),
        ("scripts other.capture -o out --setup shop.sql", "the capture has format 99"),
        ("scripts none.capture -o out --setup shop.sql", "could not open capture \"none.capture\""),
        ("scripts shop.capture -o out --setup none.sql", "--setup: could not read \"none.sql\""),
    ] {
        s.run(&words(line)).expect(1).says(&[said]);
    }
    assert!(!s.file("out").exists());
    // What breaks off is read up to there.
    let mut tape = Tape::begin(false);
    tape.simple(1, "CREATE TABLE t (v int)", "CREATE TABLE");
    tape.send(1, "DELETE FROM t WHERE v = 1", Vec::new(), vec![done("DELETE 0")], 'I');
    fs::write(s.file("broken.capture"), [&tape.into_bytes()[..], b"{\"state"].concat()).expect("a capture");
    s.run(&words("scripts broken.capture -o out --no-check")).expect(0).prints(&["The capture breaks off"]);
    assert!(s.read("out/setup.sql").contains("\nCREATE TABLE t (v int);\n"));
    s.assert_clean();
}

#[test]
fn scripts_that_do_other_things_than_the_application_claim_no_cost() {
    let Some(s) = scene("scripts_that_do_other_things_than_the_application_claim_no_cost") else { return };
    // The tables have none of the rows that the application found.
    s.write("empty.sql", &SHOP[..SHOP.find("INSERT").expect("rows")]);
    let said = "so no cost is claimed for the application";
    s.run(&words("scripts shop.capture -o shop --setup empty.sql")).expect(0).prints(&[said]);
    s.run(&words("advise --plan shop/workload.toml --no-measure --details --try 1")).says(&[said]);
    s.assert_clean();
}

#[test]
fn what_transactions_used_up_is_put_back_in_a_copy_that_was_made_afterwards() {
    let name = "what_transactions_used_up_is_put_back_in_a_copy_that_was_made_afterwards";
    let Some(s) = scene(name) else { return };
    fs::write(s.file("baskets.capture"), baskets(8)).expect("a capture");
    s.write("after.sql", BASKETS);
    s.run(&words("scripts baskets.capture -o baskets --setup after.sql")).expect(0).prints(&[
        "What transactions used up is put back in the copy, by 8 statements in setup.sql",
        "insert-purchase-update-basket.sql (4 of 8)",
        "Each input works once in insert-purchase-update-basket.sql",
    ]);
    let line = "advise --plan baskets/workload.toml --no-measure --details --try 5";
    s.run(&words(line)).expect(0).prints(&["insert-purchase-update-basket.sql"]);
    s.assert_clean();
}

#[test]
fn a_script_that_the_copy_does_not_permit_is_no_part_of_the_plan() {
    let Some(s) = scene("a_script_that_the_copy_does_not_permit_is_no_part_of_the_plan") else { return };
    // A later version of the application has another name for a column.
    s.write("less.sql", &SHOP.replace("placed timestamptz", "at timestamptz"));
    s.run(&words("scripts shop.capture -o shop --setup less.sql"))
        .expect(0)
        .prints(&[&format!("Left out of the plan, as the copy doesn't permit it: {ORDER}")]);
    let plan = s.read("shop/workload.toml");
    assert!(!plan.contains(ORDER) && plan.contains("select-stock.sql"), "{plan}");
    s.assert_clean();
}

/// The scripts are made once, in a folder next to the capture.
#[test]
fn a_capture_is_advised_on_and_compared_by_itself() {
    let Some(s) = scene("a_capture_is_advised_on_and_compared_by_itself") else { return };
    s.run(&words("advise shop.capture")).expect(1).says(&["Three ways: --copy-from CONNINFO"]);
    s.run(&words("advise shop.capture --setup shop.sql --no-measure --details --try 10"))
        .expect(0)
        .says(&["2 templates are 100.0 % of 80 transactions.", "shop.scripts/README.md"])
        .prints(&["shown unsafe at read committed"]);
    let line = "compare shop.capture --levels rc,rr -c 4 --time 300ms --rounds 2 --no-save --try 10";
    s.run(&words(line))
        .expect(0)
        .says(&["using the scripts in shop.scripts, which were made before"])
        .prints(&["Use REPEATABLE READ"]);
    for (line, said) in [
        ("advise shop.capture --setup shop.sql", "\"shop.scripts\" already has scripts and tables"),
        ("advise shop.capture --plan x.toml", "cannot be used with"),
        ("advise - --no-measure", "isobench scripts - -o FOLDER"),
        ("compare shop.capture --peers a:1,b:2 --rank 0", "make the scripts of a capture first"),
        ("compare none.capture", "could not open capture \"none.capture\""),
    ] {
        s.run(&words(line)).expect(1).says(&[said]);
    }
    let mode = |mode| fs::set_permissions(s.file("shop.scripts"), fs::Permissions::from_mode(mode));
    mode(0o777).expect("a folder");
    s.run(&words("advise shop.capture")).expect(1).says(&["isn't yours alone to write"]);
    mode(0o700).expect("a folder");
    let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
    let capture = fs::File::options().write(true).open(s.file("shop.capture")).expect("the capture");
    capture.set_modified(later).expect("a time");
    s.run(&words("advise shop.capture")).expect(1).says(&["scripts of an older capture"]);
    s.write("other.scripts/mine.sql", "");
    fs::copy(s.file("shop.capture"), s.file("other.capture")).expect("a copy");
    s.run(&words("advise other.capture --setup shop.sql")).expect(1).says(&["\"other.scripts\" isn't empty"]);
    s.assert_clean();
}

/// The arguments of `pg_dump` are visible to other users of the machine.
#[test]
fn a_copy_takes_no_password_that_others_could_see() {
    let Some(s) = scene("a_copy_takes_no_password_that_others_could_see") else { return };
    s.write("services", "[mine]\nhost=127.0.0.1\nport=1\n");
    for conninfo in [
        "host=127.0.0.1 port=1 password=GeheimQQXX",
        "host=127.0.0.1 port=1 sslpassword=GeheimQQXX",
        "postgresql://me:GeheimQQXX@127.0.0.1:1/shop",
        "postgresql://127.0.0.1:1/shop?pass%77ord=GeheimQQXX",
        // Only the environment names the file.
        "service=mine password=GeheimQQXX",
    ] {
        for words in [&["scripts", "shop.capture", "-o", "out"][..], &["advise", "shop.capture"]] {
            let mut command = s.isobench(words);
            command.args(["--copy-from", conninfo]).env("PGSERVICEFILE", s.file("services"));
            let finished = Running::start(&mut command).finish().expect(1);
            let finished = finished.says(&["--copy-from: other users", "PGPASSWORD", "~/.pgpass"]);
            assert!(!finished.stderr.contains("Geheim"), "{conninfo}: {}", finished.stderr);
        }
    }
    assert!(!s.file("out").exists());
}

/// A password that no argument shows is used.
#[test]
fn a_database_is_copied_with_a_password_of_the_environment_or_a_file() {
    let test = "a_database_is_copied_with_a_password_of_the_environment_or_a_file";
    let Some((s, database)) = scene(test).zip(Database::new(test)) else { return };
    database.connect().execute(SHOP).expect("the shop's tables");
    let (port, password) = database.tcp();
    let user = database.value("select current_user");
    let place = format!("host=127.0.0.1 port={port} dbname={} user={user}", database.name);
    let lines = place.replace(' ', "\n");
    s.write("services", &format!("[mine]\n{lines}\npassword={password}\n"));
    for (folder, conninfo, variables) in [
        ("one", place, [("PGPASSWORD", password)]),
        ("two", "service=mine".to_owned(), [("PGSERVICEFILE", s.file("services").display().to_string())]),
    ] {
        let mut command = s.isobench(&["scripts", "shop.capture", "--no-check", "-o", folder]);
        command.args(["--copy-from", &conninfo]).envs(variables);
        let finished = Running::start(&mut command).finish().expect(0);
        finished.says(&["copying ", " by pg_dump"]);
        assert!(s.read(&format!("{folder}/setup.sql")).contains("INSERT INTO stock"));
    }
}
