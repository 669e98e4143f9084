//! A server that accepts everything and records the SQL it receives, which is all that pgbench
//! needs to execute scripts.

use std::path::Path;
use std::sync::{Arc, Mutex};

use isobench_pgwire::TransactionStatus;
use isobench_pgwire::server::{self, FrontendMessage};
use isobench_testkit::handler::{self, Peer};

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// The texts of Query and Parse messages received since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic while locked"))
    }

    fn note(&self, sql: &[u8]) {
        self.0.lock().expect("no panic while locked").push(String::from_utf8_lossy(sql).into_owned());
    }
}

/// Listens on the socket that `-h folder` selects. The thread ends with the process.
pub fn start(folder: &Path) -> std::io::Result<Log> {
    let log = Log::default();
    let noted = log.clone();
    handler::serve_all(&folder.join(".s.PGSQL.5432"), move |peer, _| serve(peer, &noted))?;
    Ok(log)
}

fn serve(peer: &mut Peer, log: &Log) {
    peer.welcome();
    loop {
        let Some(Some(answer)) = peer.next(|message| answer(&message, log)) else { return };
        peer.send(|out| out.extend(answer));
    }
}

/// The answer to a message; `None` closes the connection.
fn answer(message: &FrontendMessage<'_>, log: &Log) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match message {
        FrontendMessage::Query(sql) => {
            log.note(sql);
            server::command_complete(&mut out, "SELECT 0");
            server::ready_for_query(&mut out, TransactionStatus::Idle);
        }
        FrontendMessage::Parse { sql, .. } => {
            log.note(sql);
            server::parse_complete(&mut out);
        }
        FrontendMessage::Bind { .. } => server::bind_complete(&mut out),
        FrontendMessage::Describe(_) => server::no_data(&mut out),
        FrontendMessage::Execute { .. } => server::command_complete(&mut out, "SELECT 0"),
        FrontendMessage::Sync => server::ready_for_query(&mut out, TransactionStatus::Idle),
        _ => return None,
    }
    Some(out)
}
