//! Starts real servers: the installed one, and a fetched version 18.
//!
//! Each server runs in a child process, which executes this test program again, so it can have a
//! different temporary folder, user and environment, and it can be killed. The child runs [`child`]
//! and reports to its parent in lines `@name=value`.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isobench_pgserver::{Server, ServerError, ServerOptions, Shutdown};
use rustix::process::{Pid, Signal, getpgid, kill_process};

/// The task of the child.
const ROLE: &str = "ISOBENCH_PGSERVER_TEST_ROLE";
/// The child's options: a version, settings separated by semicolons, or a folder of programs.
const VERSION: &str = "ISOBENCH_PGSERVER_TEST_VERSION";
const SETTINGS: &str = "ISOBENCH_PGSERVER_TEST_SETTINGS";
const BIN: &str = "ISOBENCH_PGSERVER_TEST_BIN";
const STANDBYS: &str = "ISOBENCH_PGSERVER_TEST_STANDBYS";
/// An ordinary user that exists on every system, or at least its number.
const ORDINARY_USER: u32 = 65534;

// ---- the child's part

/// Not a test in itself: executes the task in [`ROLE`], if any.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "sweep" {
        return isobench_pgserver::sweep_leftovers();
    }
    let server = match Server::start(&child_options(), &mut |line| println!("@note={line}")) {
        Ok(server) => server,
        Err(ServerError::Fetch { message, .. }) => return println!("@skipped={message}"),
        Err(error) => return println!("@error={error}"),
    };
    tell(&server);
    match role.as_str() {
        "serve" => check_service(&server),
        "hold" => drop(std::io::stdin().read_to_end(&mut Vec::new())),
        "panic" => panic!("on purpose"),
        "kill-server" => kill_server(&server),
        "fail" => fail_in_all_ways(&server),
        "fail-over" => fail_over(&server),
        other => panic!("no such role: {other}"),
    }
    let (pid, folder) = (server.pid(), run_folder(&server).to_owned());
    server.stop().expect("stops");
    assert!(!is_alive(pid) && !folder.exists(), "the server or its folder remains");
    println!("@stopped=yes");
}

fn child_options() -> ServerOptions {
    let variable = |name| std::env::var(name).ok();
    let settings = variable(SETTINGS).unwrap_or_default();
    let settings = settings.split_terminator(';').filter_map(|setting| setting.split_once('='));
    ServerOptions {
        standbys: variable(STANDBYS).map_or(0, |number| number.parse().expect("a number")),
        relayed: false,
        bin: variable(BIN).map(PathBuf::from),
        version: variable(VERSION).map(|version| version.parse().expect("a version")),
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// The folder of a run.
fn run_folder(server: &Server) -> &Path {
    server.data_dir().parent().expect("a folder around it")
}

fn tell(server: &Server) {
    println!("@pid={}", server.pid());
    println!("@folder={}", run_folder(server).display());
    println!("@port={}", server.port());
    println!("@version={}", server.version());
    println!("@origin={}", server.origin());
    println!("@psql={}", server.psql_line());
    println!("@ready=yes");
}

fn check_service(server: &Server) {
    assert!(server.is_running());
    assert!(server.log_tail().contains("ready to accept connections"), "{}", server.log_tail());
    let meta = fs::metadata(server.socket_dir()).expect("the folder");
    assert_eq!(meta.permissions().mode() & 0o777, 0o700, "the socket's folder is open to others");
    check_owners(server);
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    assert_eq!(getpgid(Some(pid)), Ok(pid), "Ctrl-C in the terminal would reach the server");
    let uid = fs::metadata(format!("/proc/{}", server.pid())).expect("the process").uid();
    assert_eq!(uid, meta.uid(), "the folder belongs to another user than the server's");
    let cwd = fs::read_link(format!("/proc/{}/cwd", server.pid())).expect("the process's folder");
    assert_eq!(cwd, server.data_dir());
    let socket = server.socket_dir().join(format!(".s.PGSQL.{}", server.port()));
    UnixStream::connect(socket).expect("the socket answers");
    for (index, sql) in ["show fsync", "show listen_addresses", "show work_mem"].iter().enumerate() {
        if let Some(answer) = psql(&server.psql_line(), sql) {
            println!("@answer{index}={answer}");
        }
    }
}

/// The data is in folders of the caller that are closed to others, and belongs to the server.
fn check_owners(server: &Server) {
    let us = rustix::process::geteuid().as_raw();
    let them = fs::metadata(server.data_dir()).expect("the data").uid();
    let folder = run_folder(server);
    let mut seen = Vec::new();
    for (path, mode) in
        [(folder.to_owned(), 0o027), (folder.join("owner"), 0o077), (server.log_path(), 0o077)]
    {
        let meta = fs::symlink_metadata(&path).expect("it is there");
        assert_eq!((meta.uid(), meta.mode() & mode), (us, 0), "{}", path.display());
        seen.push(path);
    }
    for entry in fs::read_dir(folder).expect("the folder").flatten() {
        assert!(seen.contains(&entry.path()) || entry.path() == server.data_dir(), "{entry:?}");
    }
    for entry in fs::read_dir(server.data_dir()).expect("the data").flatten() {
        let uid = entry.metadata().expect("metadata").uid();
        assert_eq!(uid, them, "{} is not the server's own", entry.path().display());
    }
}

/// Kills the main process, as the system does when it is out of memory, and checks what remains.
fn kill_server(server: &Server) {
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid())).expect("the process");
    let shared = maps.split_whitespace().find(|word| word.starts_with("/dev/shm/PostgreSQL."));
    println!("@shared={}", shared.unwrap_or_default());
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::KILL).expect("kill");
    let end = Instant::now() + Duration::from_secs(10);
    while server.is_running() && Instant::now() < end {
        sleep(Duration::from_millis(2));
    }
    assert!(!server.is_running(), "a killed server still counts as running");
}

/// Whether a process of the server has the title of a local client's session.
fn serves_a_client(server: &Server) -> bool {
    let children = format!("/proc/{0}/task/{0}/children", server.pid());
    let children = fs::read_to_string(children).expect("the process");
    let title = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    children.split_whitespace().any(|pid| String::from_utf8_lossy(&title(pid)).contains("[local]"))
}

/// Lets the server fail in all ways, after each of which it has what was committed.
fn fail_in_all_ways(server: &Server) {
    let line = server.psql_line();
    if psql(&line, "create table t (v text)").is_none() {
        return println!("@skipped=psql is not installed");
    }
    let first = server.pid();
    let survives = |name: &str| {
        let count =
            psql(&line, &format!("insert into t values ($${name}$$) returning (select count(*) from t)"));
        println!("@{name}={}", count.unwrap_or_default());
    };
    survives("before");
    server.kill(0).expect("killed");
    assert!(!server.is_running() && !is_alive(first));
    server.start_again(0).expect("it recovers");
    survives("killed");
    for (name, how) in [("fast", Shutdown::Fast), ("immediate", Shutdown::Immediate)] {
        server.shut_down(0, how).expect("stopped");
        assert!(!server.is_running());
        server.start_again(0).expect("it starts");
        survives(name);
    }
    server.freeze(0);
    let waiting = Command::new("sh").args(["-c", &format!("{line} -XAtc 'select 1'")]).spawn();
    let mut waiting = waiting.expect("a shell");
    sleep(Duration::from_millis(300));
    assert!(matches!(waiting.try_wait(), Ok(None)), "a frozen server answered");
    server.thaw(0);
    assert!(waiting.wait().expect("psql").success());
    survives("thawed");
    // The session of a psql that has ended ends a little later.
    let end = Instant::now() + Duration::from_secs(30);
    while serves_a_client(server) {
        assert!(Instant::now() < end, "a session doesn't end");
        sleep(Duration::from_millis(2));
    }
    assert!(!server.kill_backend(0), "there is no client");
    let mut client = Command::new("sh").args(["-c", &format!("{line} -XAtc 'select pg_sleep(100)'")]).spawn();
    let client = client.as_mut().expect("a shell");
    let end = Instant::now() + Duration::from_secs(30);
    while !server.kill_backend(0) {
        assert!(Instant::now() < end, "no client connects");
        sleep(Duration::from_millis(10));
    }
    assert!(!client.wait().expect("psql").success(), "its session was killed");
    server.renew(&mut |_| ()).expect("anew");
    assert_eq!(psql(&line, "select to_regclass($$t$$) is null").as_deref(), Some("t"), "the data are new");
    // The end of a server that stands still mustn't take long.
    server.freeze(0);
}

/// Kills the server, and promotes its standby.
fn fail_over(server: &Server) {
    let line = server.psql_line();
    for number in 1..=server.standbys() {
        let slot = format!("select pg_create_physical_replication_slot($${}$$, true)", server.slot(number));
        if psql(&line, &slot).is_none() {
            return println!("@skipped=psql is not installed");
        }
    }
    server.start_standbys().expect("a standby");
    psql(&line, "create table t as select 1 as v");
    let of_standby = line
        .replace(&*server.socket_dir().to_string_lossy(), &server.standby_socket_dir(1).to_string_lossy());
    let mut follows = None;
    let end = Instant::now() + Duration::from_secs(30);
    while follows.as_deref() != Some("1 on") {
        follows = psql(&of_standby, "select v || $$ $$ || current_setting($$transaction_read_only$$) from t");
        assert!(Instant::now() < end, "the standby doesn't follow: {follows:?}");
        sleep(Duration::from_millis(20));
    }
    server.kill(0).expect("killed");
    let promoted = psql(&of_standby, "select pg_promote(true, 30)");
    println!("@promoted={}", promoted.unwrap_or_default());
    println!("@writes={}", psql(&of_standby, "insert into t values (2) returning v").unwrap_or_default());
}

/// Runs a SQL command with psql, if installed. If it fails, its messages are the result.
fn psql(line: &str, sql: &str) -> Option<String> {
    let found = Command::new("psql").arg("--version").output().is_ok_and(|output| output.status.success());
    let command = format!("{line} -XAtc '{sql}' 2>&1");
    found.then(|| {
        let output = Command::new("sh").args(["-c", &command]).output().expect("a shell");
        String::from_utf8_lossy(&output.stdout).trim().replace('\n', " ")
    })
}

// ---- the parent's part

/// A temporary folder for the servers of one test.
struct Fixture {
    temporary: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        // Short, because a socket's path must be, and accessible to all users, like /tmp.
        let temporary = tempfile::Builder::new().prefix("isob").tempdir_in("/tmp").expect("a folder");
        fs::set_permissions(temporary.path(), Permissions::from_mode(0o1777)).expect("chmod");
        Self { temporary }
    }

    fn command(&self, role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["child", "--exact", "--nocapture"]).env(ROLE, role);
        command.env("TMPDIR", self.temporary.path()).env_remove(VERSION);
        command.env_remove(SETTINGS).env_remove(BIN);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The entries left in the temporary folder.
    fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.temporary.path()).expect("the folder").flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn assert_clean(&self) {
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "something is left behind");
    }
}

/// Prints the reason and returns true if the child reports that the test can't run.
fn skips(test: &str, said: &str) -> bool {
    let reason = value(said, "skipped");
    if let Some(reason) = &reason {
        println!("skipped: {test}: no PostgreSQL can be fetched here: {reason}");
    }
    reason.is_some()
}

fn value(text: &str, name: &str) -> Option<String> {
    let start = format!("@{name}=");
    // libtest may print something before the child's first line.
    text.lines().find_map(|line| line.split_once(&start).map(|(_, value)| value.to_owned()))
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|stream| String::from_utf8_lossy(stream).into_owned()).join("\n")
}

/// Runs a child that has to succeed, and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("the child starts");
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// Starts a child and waits until its server is ready; `None` if the test is skipped.
fn hold(fixture: &Fixture, test: &str) -> Option<(Child, String)> {
    let mut child = fixture.command("hold").stdin(Stdio::piped()).spawn().expect("the child starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut said = String::new();
    while !said.contains("@ready=") {
        if lines.read_line(&mut said).expect("a line") == 0 {
            child.wait().expect("wait");
            assert!(skips(test, &said), "the child ended: {said}");
            return None;
        }
    }
    // The rest is read in the background, so that the child can't block on a full pipe.
    std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
    Some((child, said))
}

fn pid(said: &str) -> u32 {
    value(said, "pid").expect("a process id").parse().expect("a number")
}

/// True if a process exists and isn't just waiting to be reaped.
fn is_alive(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn serves_and_leaves_nothing(test: &str, fixture: &Fixture, command: &mut Command) -> Option<String> {
    let said = run(command);
    if skips(test, &said) {
        return None;
    }
    assert_eq!(value(&said, "stopped").as_deref(), Some("yes"), "{said}");
    fixture.assert_clean();
    Some(said)
}

#[test]
fn an_installed_server_serves_and_leaves_nothing() {
    let fixture = Fixture::new();
    let test = "an_installed_server_serves_and_leaves_nothing";
    let Some(said) = serves_and_leaves_nothing(test, &fixture, &mut fixture.command("serve")) else { return };
    assert_eq!(value(&said, "port").as_deref(), Some("5432"));
    if let Some(answer) = value(&said, "answer0") {
        assert_eq!(answer, "on", "fsync is PostgreSQL's default");
        assert_eq!(value(&said, "answer1").as_deref(), Some(""), "no TCP");
        assert_eq!(value(&said, "answer2").as_deref(), Some("4MB"), "settings are PostgreSQL's defaults");
    }
}

#[test]
fn a_fetched_server_serves_and_leaves_nothing() {
    let fixture = Fixture::new();
    let test = "a_fetched_server_serves_and_leaves_nothing";
    let mut command = fixture.command("serve");
    let Some(said) = serves_and_leaves_nothing(test, &fixture, command.env(VERSION, "18")) else { return };
    assert_eq!(value(&said, "origin").as_deref(), Some("fetched"));
    assert!(value(&said, "version").is_some_and(|version| version.starts_with("18.")), "{said}");
}

#[test]
fn settings_reach_the_server() {
    let fixture = Fixture::new();
    let mut command = fixture.command("serve");
    command.env(SETTINGS, "work_mem=7MB;port=5999");
    let Some(said) = serves_and_leaves_nothing("settings_reach_the_server", &fixture, &mut command) else {
        return;
    };
    assert_eq!(value(&said, "port").as_deref(), Some("5999"));
    if let Some(answer) = value(&said, "answer2") {
        assert_eq!(answer, "7MB");
    }
}

#[test]
fn bad_settings_are_told_in_the_servers_words() {
    let fixture = Fixture::new();
    for (setting, words) in [
        ("no_such=1", "unrecognized configuration parameter \"no_such\""),
        ("work_mem=many", "invalid value for parameter \"work_mem\": \"many\""),
        ("hba_file=/x", "can't be changed"),
    ] {
        let said = run(fixture.command("serve").env(SETTINGS, setting));
        if skips("bad_settings_are_told_in_the_servers_words", &said) {
            return;
        }
        let error = value(&said, "error").expect("an error");
        assert!(error.starts_with(&format!("--server-setting {setting}: ")), "{error}");
        assert!(error.contains(words), "{error}");
        fixture.assert_clean();
    }
}

#[test]
fn over_tcp_the_password_is_needed() {
    let test = "over_tcp_the_password_is_needed";
    let fixture = Fixture::new();
    let mut command = fixture.command("hold");
    command.env(SETTINGS, "listen_addresses=127.0.0.1");
    command.stdin(Stdio::piped());
    let mut child = command.spawn().expect("the child starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output"));
    let mut said = String::new();
    while !said.contains("@ready=") && lines.read_line(&mut said).expect("a line") > 0 {}
    if skips(test, &said) {
        child.wait().expect("wait");
        return;
    }
    let line = value(&said, "psql").expect("how to connect");
    let port = value(&said, "port").expect("a port").parse::<u16>().expect("a number");
    TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    if let Some(answer) = psql(&line, "select 41 + 1") {
        assert_eq!(answer, "42");
        let (_, plain) = line.split_once(' ').expect("PGPASSWORD=… psql …");
        let wrong = psql(&format!("PGPASSWORD=wrong {plain}"), "select 1").expect("psql");
        assert!(wrong.contains("password authentication failed"), "{wrong}");
    } else {
        println!("skipped: {test}: there is no psql to try the password with");
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("wait").success());
    fixture.assert_clean();
}

#[test]
fn a_panic_stops_the_server() {
    let fixture = Fixture::new();
    let output = fixture.command("panic").output().expect("the child starts");
    let said = text(&output);
    if skips("a_panic_stops_the_server", &said) {
        return;
    }
    assert!(!output.status.success() && said.contains("on purpose"), "{said}");
    assert!(!is_alive(pid(&said)));
    fixture.assert_clean();
}

#[test]
fn a_killed_run_is_swept_by_the_next_and_a_living_one_is_not() {
    let test = "a_killed_run_is_swept_by_the_next_and_a_living_one_is_not";
    let fixture = Fixture::new();
    let Some((mut killed, killed_said)) = hold(&fixture, test) else { return };
    let Some((mut living, living_said)) = hold(&fixture, test) else { return };
    assert_ne!(value(&killed_said, "folder"), value(&living_said, "folder"), "two at once share a folder");
    killed.kill().expect("SIGKILL");
    killed.wait().expect("wait");
    assert!(is_alive(pid(&killed_said)), "the server outlives a killed run; else this tests nothing");
    assert_eq!(fixture.leftovers().len(), 2);

    let said = run(&mut fixture.command("serve"));
    assert!(value(&said, "stopped").is_some(), "{said}");
    assert!(!is_alive(pid(&killed_said)), "the killed run's server still runs");
    assert!(is_alive(pid(&living_said)), "a living run's server was stopped");
    assert_eq!(fixture.leftovers(), [PathBuf::from(value(&living_said, "folder").expect("a folder"))]);

    drop(living.stdin.take());
    assert!(living.wait().expect("wait").success());
    assert!(!is_alive(pid(&living_said)));
    fixture.assert_clean();
}

#[test]
fn a_server_survives_every_way_to_fail() {
    let fixture = Fixture::new();
    let said = run(&mut fixture.command("fail"));
    if skips("a_server_survives_every_way_to_fail", &said) {
        return;
    }
    let counts = ["before", "killed", "fast", "immediate", "thawed"];
    let found: Vec<Option<String>> = counts.iter().map(|name| value(&said, name)).collect();
    let counted = (0..counts.len()).map(|count| Some(format!("{count} INSERT 0 1")));
    assert_eq!(found, counted.collect::<Vec<_>>(), "{said}");
    assert_eq!(value(&said, "stopped").as_deref(), Some("yes"), "{said}");
    fixture.assert_clean();
}

#[test]
fn a_standby_takes_the_place_of_a_killed_server() {
    let fixture = Fixture::new();
    for version in [None, Some("18")] {
        let mut command = fixture.command("fail-over");
        command.env(STANDBYS, "2");
        version.map(|version| command.env(VERSION, version));
        let said = run(&mut command);
        if skips("a_standby_takes_the_place_of_a_killed_server", &said) {
            return;
        }
        assert_eq!(value(&said, "promoted").as_deref(), Some("t"), "{said}");
        assert_eq!(value(&said, "writes").as_deref(), Some("2 INSERT 0 1"), "{said}");
        assert_eq!(value(&said, "stopped").as_deref(), Some("yes"), "{said}");
    }
    fixture.assert_clean();
}

#[test]
fn a_killed_server_leaves_no_shared_memory() {
    let fixture = Fixture::new();
    let said = run(&mut fixture.command("kill-server"));
    if skips("a_killed_server_leaves_no_shared_memory", &said) {
        return;
    }
    assert_eq!(value(&said, "stopped").as_deref(), Some("yes"), "{said}");
    let shared = value(&said, "shared").expect("a name");
    assert!(!shared.is_empty(), "it had no shared memory; else this tests nothing");
    assert!(!Path::new(&shared).exists(), "{shared} is left behind");
    fixture.assert_clean();
}

#[test]
fn root_runs_the_server_as_somebody_else() {
    let test = "root_runs_the_server_as_somebody_else";
    if !is_root() {
        return println!("skipped: {test}: not root");
    }
    let fixture = Fixture::new();
    let Some((mut child, said)) = hold(&fixture, test) else { return };
    let status = fs::read_to_string(format!("/proc/{}/status", pid(&said))).expect("the process");
    let line = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!line("Uid:").contains(&"0".to_owned()), "the server runs as root");
    assert!(!line("Gid:").contains(&"0".to_owned()), "the server runs in root's group");
    assert_eq!(line("Groups:"), Vec::<String>::new(), "the server keeps root's groups");
    drop(child.stdin.take());
    assert!(child.wait().expect("wait").success());
    fixture.assert_clean();
}

/// Creates a program that all users can run.
fn write_program(path: &Path, text: &str) {
    fs::write(path, text).expect("write");
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("chmod");
}

#[test]
fn a_leftover_that_somebody_else_planted_is_left_alone() {
    let test = "a_leftover_that_somebody_else_planted_is_left_alone";
    if !is_root() {
        return println!("skipped: {test}: not root");
    }
    let fixture = Fixture::new();
    // The targets that root's sweep would run and write to, if it could be tricked.
    let secrets = tempfile::tempdir().expect("a folder");
    let (mark, victim) = (secrets.path().join("mark"), secrets.path().join("victim"));
    let program = secrets.path().join("postgres");
    write_program(&program, &format!("#!/bin/sh\ntouch '{}'\n", mark.display()));
    fs::set_permissions(secrets.path(), Permissions::from_mode(0o777)).expect("chmod");
    let passwd = fs::read_to_string("/etc/passwd").expect("the users");
    let servers =
        passwd.lines().find_map(|line| line.strip_prefix("postgres:x:")?.split(':').next()?.parse().ok());
    let mut planted = Vec::new();
    // The first folder is root's, but others can write in it; the others belong to the users who
    // run root's servers, and to other users.
    for (number, uid) in
        [Some(0), servers, Some(ORDINARY_USER), Some(4_000_000)].into_iter().flatten().enumerate()
    {
        let folder = fixture.temporary.path().join(format!("isobench-pg-planted{number}"));
        fs::create_dir_all(folder.join("data")).expect("create");
        fs::write(folder.join("owner"), program.as_os_str().as_encoded_bytes()).expect("write");
        fs::write(folder.join("data/postmaster.pid"), "1\n").expect("write");
        std::os::unix::fs::symlink(&victim, folder.join("server.log")).expect("link");
        for path in
            [folder.join("data/postmaster.pid"), folder.join("owner"), folder.join("data"), folder.clone()]
        {
            std::os::unix::fs::chown(&path, Some(uid), None).expect("chown");
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("chmod");
        planted.push(folder);
    }
    let said = run(&mut fixture.command("serve"));
    if skips(test, &said) {
        return;
    }
    assert!(!mark.exists(), "a program that somebody else named was run");
    assert!(!victim.exists(), "root wrote to a file of somebody else's choice");
    let mut left = fixture.leftovers();
    left.sort();
    assert_eq!(left, planted);
}

#[test]
fn links_planted_while_a_server_starts_are_not_followed() {
    let test = "links_planted_while_a_server_starts_are_not_followed";
    let Some(real) = installed_programs() else {
        return println!("skipped: {test}: there is no pg_config");
    };
    if !is_root() {
        return println!("skipped: {test}: not root");
    }
    let fixture = Fixture::new();
    let victim = fixture.temporary.path().join("victim");
    fs::write(&victim, "root's own\n").expect("write");
    fs::set_permissions(&victim, Permissions::from_mode(0o600)).expect("chmod");
    // The user who runs the servers replaces everything it can, as soon as it can.
    let programs = fixture.temporary.path().join("bin");
    fs::create_dir(&programs).expect("create");
    let plant = format!(
        "#!/bin/sh\n'{}/initdb' \"$@\" || exit 1\ncd \"$2\" || exit 1\n\
         for file in pg_hba.conf ../server.log ../owner postmaster.pid; do ln -sf '{}' $file; done\nexit 0\n",
        real.display(),
        victim.display()
    );
    write_program(&programs.join("initdb"), &plant);
    write_program(
        &programs.join("postgres"),
        &format!("#!/bin/sh\nexec '{}/postgres' \"$@\"\n", real.display()),
    );
    let said = run(fixture
        .command("serve")
        .env(BIN, &programs)
        .env("ISOBENCH_CACHE", fixture.temporary.path().join("cache"))
        .env(SETTINGS, "listen_addresses=127.0.0.1"));
    // It can't read the files that its own configuration refers to.
    assert!(value(&said, "error").is_some(), "{said}");
    assert_eq!(fs::read_to_string(&victim).expect("read"), "root's own\n", "a link was followed");
    assert_eq!(fs::metadata(&victim).expect("metadata").uid(), 0);
}

/// The folder of the programs of the installed PostgreSQL.
fn installed_programs() -> Option<PathBuf> {
    let output = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()))
}

#[test]
fn what_is_removed_is_removed_with_the_rights_of_its_owner() {
    let test = "what_is_removed_is_removed_with_the_rights_of_its_owner";
    if !is_root() {
        return println!("skipped: {test}: not root");
    }
    let fixture = Fixture::new();
    let Some((mut killed, said)) = hold(&fixture, test) else { return };
    // As if the server's user had moved files there that only root can remove.
    let data = PathBuf::from(value(&said, "folder").expect("a folder")).join("data");
    let moved = data.join("moved");
    fs::create_dir(&moved).expect("create");
    fs::write(moved.join("file"), "root's own").expect("write");
    killed.kill().expect("SIGKILL");
    killed.wait().expect("wait");
    run(&mut fixture.command("sweep"));
    assert!(!is_alive(pid(&said)), "the killed run's server still runs");
    assert!(!data.join("base").exists(), "nothing was removed");
    assert_eq!(fs::read_to_string(moved.join("file")).expect("read"), "root's own");
    fs::remove_dir_all(&moved).expect("remove");
    run(&mut fixture.command("sweep"));
    fixture.assert_clean();
}

#[test]
fn without_free_file_descriptors_nothing_is_fetched() {
    if installed_programs().is_none() {
        return println!("skipped: without_free_file_descriptors_nothing_is_fetched: there is no pg_config");
    }
    let fixture = Fixture::new();
    let mut failed = 0;
    for limit in 4..=12 {
        let child = fixture.command("serve");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit}; exec \"$0\" \"$@\"")]).arg(child.get_program());
        command.args(child.get_args());
        for (name, value) in child.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let said = text(&command.stdin(Stdio::null()).output().expect("a shell"));
        assert!(
            !said.contains("fetching PostgreSQL") && said.len() < 20_000,
            "with {limit} files: {said:.20000}"
        );
        failed += usize::from(value(&said, "error").is_some());
    }
    assert!(failed > 0, "the limit was never felt; else this tests nothing");
    run(&mut fixture.command("sweep"));
    fixture.assert_clean();
}

#[test]
fn an_ordinary_user_needs_no_home() {
    let test = "an_ordinary_user_needs_no_home";
    if !is_root() {
        return println!("skipped: {test}: only root can become another user");
    }
    let fixture = Fixture::new();
    // A copy, because the user may not have access to cargo's folder of programs.
    let programs = tempfile::tempdir().expect("a folder");
    fs::set_permissions(programs.path(), Permissions::from_mode(0o755)).expect("chmod");
    let program = programs.path().join("test");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("copy");
    let home = programs.path().join("home");
    fs::create_dir(&home).expect("create");
    for home in [home.as_path(), Path::new("/nonexistent")] {
        let template = fixture.command("serve");
        let mut command = Command::new(&program);
        command.args(template.get_args());
        for (name, value) in template.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env_remove("XDG_CACHE_HOME").env_remove("ISOBENCH_CACHE").env("HOME", home);
        command.current_dir("/").uid(ORDINARY_USER).gid(ORDINARY_USER);
        if serves_and_leaves_nothing(test, &fixture, &mut command).is_none() {
            return;
        }
    }
}

#[test]
fn a_folder_without_programs_is_named() {
    let options = ServerOptions { bin: Some("/nonexistent/bin".into()), ..ServerOptions::default() };
    let error = Server::start(&options, &mut |_| ()).expect_err("no server").to_string();
    assert!(error.contains("there is no postgres in /nonexistent/bin"), "{error}");
}
