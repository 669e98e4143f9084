//! The program while it runs, and its output when it has ended.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Once};
use std::thread::{self, JoinHandle};

use isobench_testkit::installed::program_under_test;
use rustix::process::{Pid, Signal, kill_process};

use super::terminal::Terminal;
use super::wait_for;

/// The path of isobench.
pub fn isobench() -> String {
    program_under_test(env!("CARGO_BIN_EXE_isobench"))
}

/// A running program, whose output is read continuously. Dropping it ends it.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<()>>,
    stderr: Option<JoinHandle<()>>,
    printed: Arc<Mutex<String>>,
    said: Arc<Mutex<String>>,
}

/// The output and exit status of a program.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Tests that run under `nohup` ignore SIGHUP, and so would the programs that they start. A signal
/// that is caught is back to its default in them.
fn do_not_ignore_hang_ups() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default()).expect("a handler");
    });
}

/// The first complete line with a text.
fn whole_line(all: &str, text: &str) -> Option<String> {
    let whole = &all[..all.rfind('\n')?];
    whole.lines().find(|line| line.contains(text)).map(str::to_owned)
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running::start_on(command, Stdio::piped())
    }

    /// The same with standard error connected to something other than a pipe, such as a terminal.
    pub fn start_on(command: &mut Command, stderr: Stdio) -> Running {
        Running::start_with(command, Stdio::null(), stderr)
    }

    /// The same with standard input and standard error connected to a terminal.
    pub fn start_at(command: &mut Command, terminal: &Terminal) -> Running {
        Running::start_with(command, terminal.keyboard(), terminal.end())
    }

    fn start_with(command: &mut Command, stdin: Stdio, stderr: Stdio) -> Running {
        do_not_ignore_hang_ups();
        let child = command.stdin(stdin).stdout(Stdio::piped()).stderr(stderr).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (printed, said) = (Arc::default(), Arc::default());
        let stdout = child.stdout.take().map(|pipe| collect(pipe, &printed));
        let stderr = child.stderr.take().map(|pipe| collect(pipe, &said));
        Running { child, stdout, stderr, printed, said }
    }

    /// Waits until a text appears on standard error.
    pub fn wait_for_stderr(&self, text: &str) {
        wait_for(text, || said(&self.said).contains(text).then_some(()));
    }

    /// Waits until a line with this text appears on standard output, and returns it.
    pub fn wait_for_stdout(&self, text: &str) -> String {
        wait_for(text, || whole_line(&said(&self.printed), text))
    }

    /// Waits until a line with this text appears on standard error, and returns it.
    pub fn wait_for_line_of_stderr(&self, text: &str) -> String {
        wait_for(text, || whole_line(&said(&self.said), text))
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the program runs");
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    /// Waits for the end.
    pub fn finish(self) -> Finished {
        self.finish_as("the program")
    }

    /// The same, with a name for the message if it never ends.
    pub fn finish_as(mut self, name: &str) -> Finished {
        let what = format!("the end of {name}");
        let status = wait_for(&what, || self.child.try_wait().expect("wait"));
        for reader in [self.stdout.take(), self.stderr.take()].into_iter().flatten() {
            reader.join().expect("its output");
        }
        Finished { status, stdout: said(&self.printed), stderr: said(&self.said) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal(Signal::KILL);
            // Drop can't report errors; the worst result is a zombie.
            let _ = self.child.wait();
        }
    }
}

impl Finished {
    /// The exit status; `None` for a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails with all output unless the exit status is this one.
    pub fn expect(self, code: i32) -> Finished {
        assert_eq!(
            self.code(),
            Some(code),
            "{}\n--- stdout\n{}--- stderr\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Fails unless standard error has all of these texts.
    pub fn says(self, texts: &[&str]) -> Finished {
        for text in texts {
            assert!(self.stderr.contains(text), "\"{text}\" is missing in\n{}", self.stderr);
        }
        self
    }

    /// Fails unless standard output has all of these texts.
    pub fn prints(self, texts: &[&str]) -> Finished {
        for text in texts {
            assert!(self.stdout.contains(text), "\"{text}\" is missing in\n{}", self.stdout);
        }
        self
    }
}

fn said(text: &Mutex<String>) -> String {
    text.lock().expect("no reader panics").clone()
}

fn collect(pipe: impl Read + Send + 'static, into: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let into = Arc::clone(into);
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        // A broken pipe has ended, too.
        while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            into.lock().expect("no reader panics").push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}
