//! The relay between scripted ends: every byte arrives unchanged, whatever happens to the recording
//! and to either end.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use isobench_capture::{Reader, Record, Statement};
use isobench_pgwire::TransactionStatus::{Failed, Idle, InTransaction};
use isobench_pgwire::{ConnectOptions, Host, server};
use isobench_record::{Listener, Recorder, Settings, Summary};

/// A recorder between a client and a server of the test.
struct Scene {
    folder: tempfile::TempDir,
    server: UnixListener,
    recorder: Recorder,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Scene {
        Scene::recording_to(|folder| File::create(folder.join("capture")).expect("a file"))
    }

    fn recording_to(file: impl Fn(&Path) -> File) -> Scene {
        let folder = isobench_testkit::folder::short();
        let server = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let listener = UnixListener::bind(folder.path().join("recorder")).expect("a socket");
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let said = Arc::clone(&notes);
        let settings = Settings {
            server: ConnectOptions::new(Host::unix(folder.path(), 5432), "nobody", "nothing"),
            redact: false,
            inject: None,
            version: "1".to_owned(),
        };
        let note = Arc::new(move |text: &str| said.lock().expect("no panic").push(text.to_owned()));
        let recorder = Recorder::start(file(folder.path()), settings, Listener::Unix(listener), note)
            .expect("a recorder");
        Scene { folder, server, recorder, notes }
    }

    fn client(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("recorder")).expect("a connection")
    }

    /// A client and the server's end of its session, both past start-up.
    fn session(&self) -> (UnixStream, UnixStream) {
        let mut client = self.client();
        let start = startup(b"user\0ada\0database\0shop\0\0");
        client.write_all(&start).expect("written");
        let (mut server, _) = self.server.accept().expect("a connection");
        assert_eq!(exactly(&mut server, start.len()), start, "the start-up packet is unchanged");
        let mut greeting = Vec::new();
        server::authentication_ok(&mut greeting);
        server::parameter_status(&mut greeting, "server_version", "18.4");
        server::backend_key_data(&mut greeting, 7, &[9; 32]);
        server::ready_for_query(&mut greeting, Idle);
        server.write_all(&greeting).expect("written");
        assert_eq!(exactly(&mut client, greeting.len()), greeting);
        (client, server)
    }

    fn finish(self) -> (Summary, Vec<Record>, Vec<String>) {
        let summary = self.recorder.finish();
        let file = File::open(self.folder.path().join("capture")).expect("a capture");
        let mut reader = Reader::begin(BufReader::new(file)).expect("a capture");
        let (mut records, mut texts) = (Vec::new(), Vec::new());
        while let Some(record) = reader.next_record().expect("a record") {
            if let Record::Statement(statement) = &record {
                texts.push(reader.text(statement.text).to_owned());
            }
            records.push(record);
        }
        (summary, records, texts)
    }
}

fn startup(parameters: &[u8]) -> Vec<u8> {
    let length = u32::try_from(8 + parameters.len()).expect("short");
    // Protocol 3.2.
    [&length.to_be_bytes()[..], &(3 << 16 | 2_u32).to_be_bytes(), parameters].concat()
}

fn exactly(stream: &mut UnixStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("as many bytes");
    bytes
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(4 + body.len()).expect("short");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// What a client sends, and the server answers, in pieces of this size.
fn exchange(client: &mut UnixStream, server: &mut UnixStream, sent: &[u8], answer: &[u8], piece: usize) {
    pass(client, server, sent, piece);
    pass(server, client, answer, piece);
}

fn pass(from: &mut UnixStream, to: &mut UnixStream, bytes: &[u8], piece: usize) {
    for piece in bytes.chunks(piece) {
        from.write_all(piece).expect("written");
        assert_eq!(exactly(to, piece.len()), piece, "bytes are unchanged");
    }
}

/// A pipeline with a named statement, a portal that is suspended, an error, and what it skips.
fn pipeline() -> (Vec<u8>, Vec<u8>) {
    let mut sent = Vec::new();
    sent.extend(message(b'P', b"s\0SELECT a FROM t WHERE a > $1\0\0\x01\0\0\0\x17"));
    sent.extend(message(b'D', b"Ss\0"));
    sent.extend(message(b'B', b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x05\0\x01\0\x01"));
    sent.extend(message(b'E', b"p\0\0\0\0\x01"));
    sent.extend(message(b'E', b"p\0\0\0\0\0"));
    sent.extend(message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x01x\0\0"));
    sent.extend(message(b'E', b"\0\0\0\0\0"));
    sent.extend(message(b'P', b"\0SELECT 2\0\0\0"));
    sent.extend(message(b'S', b""));
    let mut answer = Vec::new();
    server::parse_complete(&mut answer);
    server::parameter_description(&mut answer, &[23]);
    server::row_description(&mut answer, &[("a", 23)]);
    server::bind_complete(&mut answer);
    server::data_row(&mut answer, &[Some(&[0, 0, 0, 6])]);
    server::portal_suspended(&mut answer);
    server::notice_response(&mut answer, &[(b'M', "between")]);
    server::data_row(&mut answer, &[None]);
    server::command_complete(&mut answer, "SELECT 1");
    server::error_response(&mut answer, &[(b'S', "ERROR"), (b'C', "22P02"), (b'M', "no number")]);
    server::ready_for_query(&mut answer, Failed);
    (sent, answer)
}

fn statements(records: &[Record]) -> Vec<&Statement> {
    records
        .iter()
        .filter_map(|record| if let Record::Statement(statement) = record { Some(statement) } else { None })
        .collect()
}

#[test]
fn a_pipeline_is_relayed_and_recorded_in_any_pieces() {
    let mut all = Vec::new();
    for piece in [1, 3, 7, 10_000] {
        let scene = Scene::new();
        let (mut client, mut server) = scene.session();
        let (sent, answer) = pipeline();
        exchange(&mut client, &mut server, &sent, &answer, piece);
        let mut tail = Vec::new();
        server::command_complete(&mut tail, "ROLLBACK");
        server::ready_for_query(&mut tail, Idle);
        exchange(&mut client, &mut server, &message(b'Q', b"ROLLBACK\0"), &tail, piece);
        exchange(&mut client, &mut server, &message(b'X', b""), &[], piece);
        drop(client);
        assert_eq!(server.read(&mut [0]).expect("the end"), 0, "the end is passed on");
        drop(server);
        let (summary, records, texts) = scene.finish();
        assert_eq!((summary.sessions, summary.statements, summary.unseen), (1, 4, 0));
        let select = "SELECT a FROM t WHERE a > $1";
        assert_eq!(texts, [select, select, select, "ROLLBACK"]);
        let found = statements(&records);
        assert_eq!(serde_json::to_value(&found[0].parameters).expect("JSON"), serde_json::json!(["5"]));
        assert_eq!(
            serde_json::to_value(&found[0].answers[0].values).expect("JSON"),
            serde_json::json!([["6"]])
        );
        let shapes: Vec<_> = found
            .iter()
            .map(|one| {
                let answer = &one.answers[0];
                let code = answer.error.as_ref().map(|error| error.code.as_str());
                (answer.tag.as_deref(), answer.rows, one.continued, code, one.status)
            })
            .collect();
        assert_eq!(
            shapes,
            [
                (None, 1, false, None, None),
                (Some("SELECT 1"), 1, true, None, None),
                (None, 0, false, Some("22P02"), Some('E')),
                (Some("ROLLBACK"), 0, false, None, Some('I')),
            ]
        );
        // Times differ, nothing else does.
        let mut shown = found.into_iter().cloned().collect::<Vec<_>>();
        for statement in &mut shown {
            (statement.at, statement.took) = (0, 0);
        }
        all.push(shown);
    }
    assert!(all.iter().all(|one| *one == all[0]));
}

#[test]
fn what_isnt_understood_passes_and_is_named() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.session();
    let garbage = message(b'~', b"what a future protocol may send");
    exchange(&mut client, &mut server, &garbage, &garbage, 5);
    exchange(&mut client, &mut server, b"\0\0\0\0\0\0no messages at all", b"\xff\xff\xff\xff\xff\xff", 5);
    drop((client, server));
    let (summary, records, _) = scene.finish();
    assert_eq!((summary.statements, summary.unseen), (0, 1));
    assert!(
        records
            .iter()
            .any(|record| matches!(record, Record::Unseen(one) if one.what.contains("isn't understood")))
    );
}

#[test]
fn replication_passes_and_is_not_looked_at() {
    let scene = Scene::new();
    let mut client = scene.client();
    let start = startup(b"user\0ada\0replication\0database\0\0");
    client.write_all(&start).expect("written");
    let (mut server, _) = scene.server.accept().expect("a connection");
    assert_eq!(exactly(&mut server, start.len()), start);
    let mut greeting = Vec::new();
    server::authentication_ok(&mut greeting);
    server::ready_for_query(&mut greeting, Idle);
    server.write_all(&greeting).expect("written");
    assert_eq!(exactly(&mut client, greeting.len()), greeting);
    exchange(&mut client, &mut server, &message(b'Q', b"START_REPLICATION\0"), &message(b'W', b"\0\0\0"), 99);
    drop((client, server));
    let (summary, records, _) = scene.finish();
    assert_eq!((summary.statements, summary.unseen), (0, 1));
    assert!(
        records
            .iter()
            .any(|record| matches!(record, Record::Unseen(one) if one.what.contains("replication")))
    );
}

#[test]
fn authentication_passes_and_is_never_recorded() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.write_all(&startup(b"user\0ada\0\0")).expect("written");
    let (mut server, _) = scene.server.accept().expect("a connection");
    exactly(&mut server, 18);
    let mut asks = Vec::new();
    server::authentication_cleartext_password(&mut asks);
    server.write_all(&asks).expect("written");
    assert_eq!(exactly(&mut client, asks.len()), asks);
    // The password, and a statement that is sent ahead.
    let (password, ahead) = (message(b'p', b"geheim\0"), message(b'Q', b"SELECT 1\0"));
    client.write_all(&[&password[..], &ahead].concat()).expect("written");
    assert_eq!(exactly(&mut server, password.len()), password);
    let mut greeting = Vec::new();
    server::negotiate_protocol_version(&mut greeting, 0, &["_pq_.x"]);
    server::authentication_ok(&mut greeting);
    server::ready_for_query(&mut greeting, Idle);
    server.write_all(&greeting).expect("written");
    assert_eq!(exactly(&mut client, greeting.len()), greeting);
    assert_eq!(exactly(&mut server, ahead.len()), ahead);
    let mut answer = Vec::new();
    server::command_complete(&mut answer, "SELECT 1");
    server::ready_for_query(&mut answer, Idle);
    exchange(&mut client, &mut server, &[], &answer, 99);
    drop((client, server));
    let path = scene.folder.path().join("capture");
    let Scene { recorder, folder: _folder, .. } = scene;
    assert_eq!(recorder.finish().statements, 1);
    let text = std::fs::read_to_string(path).expect("a capture");
    assert!(text.contains("SELECT 1") && !text.contains("geheim"), "{text}");
}

#[test]
fn a_server_that_dies_has_the_last_word() {
    let scene = Scene::new();
    let (mut client, mut server) = scene.session();
    exchange(&mut client, &mut server, &message(b'Q', b"SELECT 1\0"), &[], 99);
    let mut last = Vec::new();
    server::error_response(&mut last, &[(b'S', "FATAL"), (b'C', "57P01"), (b'M', "terminating connection")]);
    server.write_all(&last).expect("written");
    drop(server);
    let mut all = Vec::new();
    client.read_to_end(&mut all).expect("the end");
    assert_eq!(all, last, "what the server sent, then the end");
    drop(client);
    let (summary, records, _) = scene.finish();
    assert_eq!(summary.why, None);
    assert!(records.iter().any(|record| matches!(record, Record::Closed(closed) if closed.why.is_some())));
}

#[test]
fn a_client_is_told_that_there_is_no_server() {
    let scene = Scene::new();
    std::fs::remove_file(scene.folder.path().join(".s.PGSQL.5432")).expect("removed");
    let mut client = scene.client();
    client.write_all(&startup(b"user\0ada\0\0")).expect("written");
    let mut all = Vec::new();
    client.read_to_end(&mut all).expect("the end");
    let text = String::from_utf8_lossy(&all);
    assert!(
        text.contains("FATAL") && text.contains("08001") && text.contains("Is the server running"),
        "{text}"
    );
    drop(client);
    let (_, records, _) = scene.finish();
    assert!(matches!(records.last(), Some(Record::Ended(_))));
}

/// Sends `count` bytes in a thread of its own.
fn flood(mut stream: UnixStream, count: usize) -> JoinHandle<io::Result<()>> {
    thread::spawn(move || {
        for _ in 0..count / 1000 {
            stream.write_all(&message(b'd', &[7; 995]))?;
        }
        stream.shutdown(Shutdown::Write)
    })
}

#[test]
fn a_client_that_stops_reading_slows_only_itself() {
    let scene = Scene::new();
    let (mut slow, slow_server) = scene.session();
    // More than all buffers hold, and nothing is read.
    let flooding = flood(slow_server, 64 << 20);
    let (mut client, mut server) = scene.session();
    let mut answer = Vec::new();
    server::command_complete(&mut answer, "BEGIN");
    server::ready_for_query(&mut answer, InTransaction);
    for _ in 0..100 {
        exchange(&mut client, &mut server, &message(b'Q', b"BEGIN\0"), &answer, 1000);
    }
    let mut total = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match slow.read(&mut buffer).expect("bytes") {
            0 => break,
            count => total += count,
        }
    }
    assert_eq!(total, (64 << 20) / 1000 * 1000, "nothing is lost");
    flooding.join().expect("no panic").expect("written");
    drop((slow, client, server));
    assert_eq!(scene.finish().0.statements, 100);
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let scene = Scene::recording_to(|folder| {
        File::create(folder.join("capture")).expect("a file");
        File::options().write(true).open("/dev/full").expect("/dev/full")
    });
    let (mut client, mut server) = scene.session();
    let mut answer = Vec::new();
    server::command_complete(&mut answer, "SELECT 0");
    server::ready_for_query(&mut answer, Idle);
    let sql = [vec![b'x'; 100_000], vec![0]].concat();
    for _ in 0..20 {
        exchange(&mut client, &mut server, &message(b'Q', &sql), &answer, 1 << 20);
    }
    drop((client, server));
    let Scene { recorder, notes, folder: _folder, .. } = scene;
    let summary = recorder.finish();
    assert!(summary.why.expect("a reason").contains("No space left"));
    let notes = notes.lock().expect("no panic").join("\n");
    assert!(notes.contains("recording stopped") && notes.contains("isn't affected"), "{notes}");
}

#[test]
fn cancel_requests_go_to_the_server_as_they_are() {
    let scene = Scene::new();
    let (client, server) = scene.session();
    let key = [&7_u32.to_be_bytes()[..], &[9; 32]].concat();
    let length = u32::try_from(8 + key.len()).expect("short").to_be_bytes();
    let request = [&length[..], &80_877_102_u32.to_be_bytes(), &key].concat();
    let mut canceller = scene.client();
    canceller.write_all(&request).expect("written");
    let (mut at_server, _) = scene.server.accept().expect("a connection");
    assert_eq!(exactly(&mut at_server, request.len()), request);
    drop(at_server);
    assert_eq!(canceller.read(&mut [0]).expect("the end"), 0);
    drop((client, server));
    scene.finish();
}
