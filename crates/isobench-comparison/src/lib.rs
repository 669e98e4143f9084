//! Compares isolation levels on a server: resolves a plan, and measures one cell at a time.
//!
//! Prints nothing: the caller passes in a listener, a place to save the result, and a function that
//! shows messages. Not here: options, display, files (`isobench`), conclusions from the numbers
//! (`isobench-report`).
//!
//! | module | concept |
//! |---|---|
//! | `design` | the plan together with its scripts and tables: levels, works, cells, their order |
//! | `workload` | scripts: found, parsed, made into what the runner takes |
//! | `site` | the place of a cell's tables and sessions |
//! | `target` | the server, named or embedded, and the place on it where isobench works |
//! | `confined` | the role that runs copied and recorded SQL on a server of isobench's own |
//! | `tables`, `setup` | the tables of a cell in their starting state |
//! | `machines`, `serving` | several machines that measure as one: what rank 0 says, and the others do |
//! | `crew` | the clients of a measurement, on all machines |
//! | `sessions` | clients connected at a level that is read back |
//! | `session_state` | what scripts leave in their sessions that other sessions meet |
//! | `measurement` | one measurement from connecting to the round of the result |
//! | `onlooker` | what clients have done so far, for whoever looks on |
//! | `observed` | how transactions are observed: by the rows that statements show, or by annotations |
//! | `cell` | a cell of a comparison in one round |
//! | `block` | cells that are measured together, in turns or one in one piece |
//! | `endpoint` | further ways on which clients reach the server, such as a pooler |
//! | `remedy` | what to do about an error of a script |
//! | `comparison` | rounds of shuffled cells, and the search for the highest rates |
//! | `interleavings` | scripts tried against each other, on tables of their own |
//! | `relations` | a relation that scripts name, and that isn't there |
//! | `trial` | scripts tried in a rolled-back transaction, before anything is measured |
//! | `fault`, `settlement` | faults of the server, and what became of the attempts |
//! | `held_up` | clients held up for good by locks that sessions keep |
//! | `lag` | how far a standby is behind while clients read there |
//! | `server_side`, `evidence` | the server's side of a round, and contradictions to its level |
//! | `invariants`, `conditions`, `judgement` | what tables, the user's conditions and history prove |

mod background;
mod block;
mod catching_up;
mod cell;
mod comparison;
mod conditions;
pub mod confined;
mod crew;
mod design;
mod endpoint;
mod environment;
mod evidence;
mod failure;
mod fault;
mod held_up;
pub mod interleavings;
mod invariants;
mod judgement;
mod lag;
mod machines;
mod measurement;
mod messages;
mod modes;
mod observed;
mod onlooker;
mod plans;
mod relations;
mod remedy;
mod round;
mod round_trips;
mod server_side;
mod serving;
mod session_state;
mod sessions;
mod settlement;
mod setup;
mod site;
mod tables;
mod target;
mod trial;
mod workload;

pub use cell::WATCH_EVERY;
pub use comparison::{Followers, Judgements, Listener, Save, Surroundings, compare, take_part};
pub use conditions::{Condition, Conditions};
pub use design::phases::{Choice, Chosen, HotStandby, Placed};
pub use design::resolve::Resolved;
pub use design::{
    Candidate, CellPlan, Design, ServerPlan, Work, cell_entry, count, event_loop, milliseconds,
    no_serializable, pacing, protocol, refusal, seconds,
};
pub use endpoint::require_transactions;
pub use environment::{client, first_attempt, now};
pub use failure::{Failure, Outcome};
pub use judgement::Judging;
pub use machines::{MachineWays, Machines, Open, Portrait, RecordedAs};
pub use measurement::{Invariants, Measured, Measurement, Others};
pub use messages::Messages;
pub use observed::{
    Preview, Recorded, SecondSource, SeenWorkload, catalog, preview, read_statements, recorded_at,
    require_log, statement,
};
pub use onlooker::{Onlooker, Phase, SoFar};
pub use plans::AsWritten;
pub use relations::require_relations;
pub use server_side::observer;
pub use serving::{Entered, serve};
pub use sessions::job;
pub use setup::Setup;
pub use site::Site;
pub use tables::Tables;
pub use target::{Target, enough_connections};
pub use workload::{Source, Sources};
