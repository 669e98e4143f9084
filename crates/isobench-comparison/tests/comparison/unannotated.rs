//! The scripts of all checked workloads without their lines `--@`: statements are sent, and rows
//! are read, as with them. So what was tested of the one is true of the other.

use isobench_database::detect;
use isobench_observation::{Observed, observe};
use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_script::{CommandKind, ObservedStatement, Script, Symbols, parse};
use isobench_sql::Catalog;
use isobench_testkit::installed::{postgresql_programs, skip};
use isobench_workloads::{Chosen, all, find};

/// A connection to a server of the installed PostgreSQL, or `None` after reporting why the test is
/// skipped.
fn installed(test: &str) -> Option<(Server, Connection)> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin), ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let host = Host::unix(server.socket_dir(), server.port());
    let options = ConnectOptions::new(host, server.user(), server.database());
    let connection = Connection::open(&options).expect("a connection");
    Some((server, connection))
}

/// Every workload, and every variant of it.
fn workloads() -> Vec<Chosen> {
    let names = all().iter().flat_map(|workload| {
        let variants = workload.variants.iter().map(|variant| format!("{}+{}", workload.name, variant.name));
        std::iter::once(workload.name.to_owned()).chain(variants)
    });
    names.map(|name| find(&name).expect("a workload")).collect()
}

fn without_annotations(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--@"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// A command as it is sent, in both forms, and what its results show.
type Sent = (String, String, Vec<ObservedStatement>);

/// The scripts as they are sent, and what is seen of them.
fn observed(mut scripts: Vec<Script>, catalog: &Catalog) -> (Vec<Sent>, Observed) {
    let mut observed = observe(scripts.iter_mut(), catalog);
    // The lines differ, of course.
    observed.statements.iter_mut().for_each(|statement| statement.line = 0);
    let commands = scripts.into_iter().flat_map(|script| script.commands);
    let sent = commands.filter_map(|command| match command.kind {
        CommandKind::Sql(sql) => Some((format!("{:?}", sql.pieces), sql.parameterized, sql.observed)),
        _ => None,
    });
    (sent.collect(), observed)
}

#[test]
fn workloads_without_their_annotations_are_observed_alike() {
    let test = "workloads_without_their_annotations_are_observed_alike";
    let Some((_server, mut connection)) = installed(test) else { return };
    let database = detect(&mut connection).expect("PostgreSQL");
    let (mut removed, mut rewritten) = (0, 0);
    for chosen in workloads() {
        let name = chosen.name();
        for statement in chosen.setup(&database).expect("a file of isobench") {
            connection.query(&statement).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let mut catalog =
            Catalog::load(&mut |sql| connection.query(sql).map(|result| result.rows)).expect("a catalog");
        // Variables have the same places, because they are looked up in one list.
        let mut symbols = Symbols::new();
        let mut scripts = |change: fn(&str) -> String| -> Vec<Script> {
            let scripts = chosen.scripts();
            let parsed =
                scripts.iter().map(|script| parse(&script.name, &change(&script.text), &mut symbols));
            parsed.map(|script| script.expect("a script")).collect()
        };
        let (annotated, plain) = (scripts(str::to_owned), scripts(without_annotations));
        removed += annotated.iter().map(|script| script.annotations().count()).sum::<usize>();
        assert!(plain.iter().all(|script| script.annotations().count() == 0), "{name}");
        for version in [150_000, 180_000] {
            catalog.version = version;
            let with = observed(annotated.clone(), &catalog);
            let without = observed(plain.clone(), &catalog);
            rewritten += with.1.statements.iter().filter(|statement| statement.rewritten).count();
            assert_eq!(with, without, "{name} on {version}");
        }
    }
    assert!(
        removed > 100 && rewritten > 100,
        "{removed} lines removed, {rewritten} statements sent differently"
    );
}
