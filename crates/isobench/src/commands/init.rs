//! `isobench init`: creates and fills the TPC-B-like tables, or those of a checked workload, on a
//! named server.

use isobench_database::{InitProgress, detect, init as make, is_standby};
use isobench_pgbench::Version;
use isobench_pgbench::initialize::Lines;
use isobench_pgwire::Connection;

use crate::options::InitArguments;
use crate::servers::named_server;
use isobench_comparison::refusal;
use isobench_comparison::{Failure, Outcome};

/// Creates the tables, with pgbench's progress lines on standard error.
///
/// # Errors
/// No server is named, wrong options, or the server refuses.
pub fn init(arguments: &InitArguments) -> Outcome {
    let options = arguments.resolve()?;
    let workload = arguments.workload.as_deref().map(isobench_workloads::find).transpose();
    let workload = workload.map_err(Failure::setup)?;
    let Some(server) = named_server(&arguments.connection, arguments.database.as_deref())? else {
        return Err(Failure::setup(
            "init needs a server that outlives it: name one (-h, PGHOST, a connection string), or start one with \
             \"isobench server\"; \"isobench compare\" and \"isobench run\" make their tables on the embedded one \
             themselves",
        ));
    };
    let mut connection = Connection::open(&server).map_err(Failure::setup)?;
    let database = detect(&mut connection).map_err(Failure::setup)?;
    if is_standby(&mut connection, &database).map_err(Failure::setup)? {
        return Err(refusal(&server.describe(), "tables can't be made there"));
    }
    if let Some(chosen) = workload {
        let helpers: Result<Vec<_>, _> = (1..chosen.sessions()).map(|_| Connection::open(&server)).collect();
        let mut helpers = helpers.map_err(Failure::setup)?;
        let notes = isobench_workloads::make_among_others(&mut connection, &mut helpers, &database, &chosen);
        let notes = notes.map_err(Failure::setup)?;
        helpers.into_iter().for_each(Connection::close);
        for note in notes {
            eprintln!("note: {note}");
        }
        eprintln!("made tables {} of workload {}", chosen.tables().join(", "), chosen.name());
        connection.close();
        return Ok(());
    }
    let mut lines = Lines::new(Version::default(), options.quiet);
    let mut show = |progress: InitProgress| eprint!("{}", lines.of(&progress));
    let timings = make(&mut connection, &database, &options, &mut show).map_err(Failure::setup)?;
    eprint!("{}", Lines::summary(&timings));
    connection.close();
    Ok(())
}
