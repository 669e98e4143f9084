//! Executes a script once without a server: evaluates, branches, and records the SQL it would send.

use isobench_script::{
    Arrival, CommandKind, EvalContext, Piece, Prng, Script, Sql, Symbols, Value, Variables, branch,
    debug_line,
};

/// The seed, which tests pass to pgbench too.
pub const SEED: u64 = 42;

/// The initial state of a client of pgbench.
pub struct Client {
    pub variables: Variables,
    pub rng: Prng,
}

impl Client {
    /// Client number `id` of a run of `clients`, with the automatic variables set.
    pub fn new(id: usize, clients: usize, symbols: &mut Symbols) -> Self {
        let mut streams = isobench_script::Streams::new(SEED);
        let mut rngs: Vec<Prng> = (0..clients).map(|_| streams.split()).collect();
        let default_seed = streams.number();
        let mut variables = Variables::new(symbols);
        let seed = i64::try_from(SEED).expect("small");
        let id_value = i64::try_from(id).expect("small");
        for (name, value) in
            [("scale", 1), ("client_id", id_value), ("random_seed", seed), ("default_seed", default_seed)]
        {
            variables.set(symbols.intern(name), Value::Int(value));
        }
        Self { variables, rng: rngs.swap_remove(id) }
    }
}

/// The result of executing a script.
#[derive(Default)]
pub struct Execution {
    /// The lines of `debug()`.
    pub debug: Vec<String>,
    /// The SQL texts sent by the simple protocol.
    pub sent: Vec<String>,
    /// The message that ended the script early.
    pub error: Option<String>,
}

/// Executes the script once.
pub fn execute(script: &Script, symbols: &Symbols, client: &mut Client) -> Execution {
    let mut execution = Execution::default();
    let (mut pc, mut arrival) = (0, Arrival::Next);
    while let Some(command) = script.commands.get(pc) {
        let mut lines = Vec::new();
        let mut debug = |text: &str| lines.push(debug_line(0, pc + 1, text));
        let mut ctx = EvalContext {
            variables: &client.variables,
            names: symbols,
            rng: &mut client.rng,
            debug: &mut debug,
        };
        let result = match branch(script, pc, arrival, &mut ctx) {
            Err(error) => Err(error.to_string()),
            Ok(Some(next)) => Ok((next, None)),
            Ok(None) => match &command.kind {
                CommandKind::Set { slot, expr } => match expr.eval(&mut ctx) {
                    Err(error) => Err(error.to_string()),
                    Ok(_) if !symbols.is_assignable(*slot) => {
                        Err(format!("set: invalid variable name: \"{}\"", symbols.name(*slot)))
                    }
                    Ok(value) => Ok(((pc + 1, Arrival::Next), Some((*slot, value)))),
                },
                CommandKind::Sql(sql) => {
                    execution.sent.push(simple(sql, &client.variables));
                    Ok(((pc + 1, Arrival::Next), None))
                }
                _ => Ok(((pc + 1, Arrival::Next), None)),
            },
        };
        execution.debug.append(&mut lines);
        match result {
            Ok((next, assignment)) => {
                (pc, arrival) = next;
                if let Some((slot, value)) = assignment {
                    client.variables.set(slot, value);
                }
            }
            Err(error) => {
                execution.error = Some(error);
                break;
            }
        }
    }
    execution
}

/// The text for the simple protocol.
pub fn simple(sql: &Sql, variables: &Variables) -> String {
    let mut bytes = Vec::new();
    for piece in &sql.pieces {
        match piece {
            Piece::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Piece::Variable { slot, written } => {
                if !variables.write_text(*slot, &mut bytes) {
                    bytes.extend_from_slice(written.as_bytes());
                }
            }
        }
    }
    String::from_utf8(bytes).expect("variables hold text")
}
