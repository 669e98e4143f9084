//! Starts a server, prints how long it took, and stops it at a line or the end of standard input.
//!
//! `cargo run -p isobench-pgserver --example serve [VERSION | FOLDER] [NAME=VALUE …]`

use std::time::Instant;

use isobench_pgserver::{Server, ServerOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = ServerOptions::default();
    for argument in std::env::args().skip(1) {
        if let Some((name, value)) = argument.split_once('=') {
            options.settings.push((name.to_owned(), value.to_owned()));
        } else if argument.contains('/') {
            options.bin = Some(argument.into());
        } else {
            options.version = Some(argument.parse()?);
        }
    }
    let start = Instant::now();
    let server = Server::start(&options, &mut |line| println!("{line}"))?;
    println!(
        "PostgreSQL {} ({}), ready after {:.3} s",
        server.version(),
        server.origin(),
        start.elapsed().as_secs_f64()
    );
    println!("{}", server.psql_line());
    std::io::stdin().read_line(&mut String::new())?;
    let start = Instant::now();
    server.stop()?;
    println!("stopped after {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
