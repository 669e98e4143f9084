//! Support shared by the integration tests: every workload with each of its variants, and a server,
//! which may be missing.

use std::path::PathBuf;

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};
use isobench_testkit::installed::{postgresql_programs, skip};
use isobench_workloads::{Chosen, all, find};

/// Every workload, alone and with each variant.
pub fn every() -> Vec<Chosen> {
    let specs = all().iter().flat_map(|workload| {
        let variants = workload.variants.iter().map(|variant| format!("{}+{}", workload.name, variant.name));
        std::iter::once(workload.name.to_owned()).chain(variants)
    });
    specs.map(|spec| find(&spec).unwrap()).collect()
}

/// The same workload with smaller tables.
pub fn smaller(chosen: &Chosen) -> Chosen {
    let name = chosen.name();
    let sizes = match chosen.workload().name {
        "smallbank" => ":customers=100,hotspot=10",
        "tpcc" => ":warehouses=2,customers=30,items=100",
        _ => "",
    };
    find(&format!("{name}{sizes}")).unwrap()
}

/// A server of the installed PostgreSQL with its programs, or `None` after reporting that the test
/// is skipped.
pub fn postgresql(test: &str) -> Option<(Server, PathBuf)> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = ServerOptions { bin: Some(bin.clone()), ..Default::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    Some((server, bin))
}

/// A session on that server.
pub fn session(server: &Server) -> Connection {
    let host = Host::unix(server.socket_dir(), server.port());
    Connection::open(&ConnectOptions::new(host, server.user(), server.database())).unwrap()
}
