//! The check piece by piece against the check of the whole history at once: the same results, with
//! parts and pieces of the usual size and with the smallest possible, from memory, from a
//! recording, from the recordings of two machines, and by three machines together.

use std::io::{self, Cursor};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use isobench_isolation::History;
use isobench_isolation::check::{
    self, GrowingRecording, Options, Pieces, Report, Ways, check_recording, check_recording_together, render,
};
use isobench_isolation::history::Draft;
use isobench_isolation::history::binary::{self, Encoder};

/// Checks a history in all ways.
///
/// # Panics
/// If the results differ.
pub fn check(history: &History, options: &Options) -> Report {
    let with = |pieces| Options { pieces, ..options.clone() };
    let whole = check::check(history, &with(Pieces::Whole));
    for pieces in [Pieces::Usual, Pieces::Smallest] {
        let report = check::check(history, &with(pieces));
        assert_eq!(report, whole, "{pieces:?}, of {history:#?}");
    }
    if history.initial().is_empty() {
        recorded(history, &whole, options);
        if history.provenance().is_none() {
            on_two_machines(history, options);
        }
        // Threads take their time, so one history in four, and one way each.
        let pieces = [Pieces::Usual, Pieces::Smallest][history.operation_count() % 2];
        match (history.transactions().len() + history.operation_count()) % 8 {
            0 if history.provenance().is_none() => shared(history, &with(pieces), 3),
            0 | 1 => shared_file(history, &whole, &with(pieces), 2),
            _ => {}
        }
    }
    whole
}

/// Checks the recordings of two machines, which have half of the clients each, against the check of
/// their concatenation. (Where versions can't be told apart, the order of the transactions decides
/// which is which.)
fn on_two_machines(history: &History, options: &Options) {
    let mut machines = [Encoder::new(), Encoder::new()];
    let mut whole = History::new(history.tables().to_vec());
    whole.set_dropped(history.dropped());
    let mut draft = Draft::new();
    for (number, machine) in machines.iter_mut().enumerate() {
        for (index, transaction) in history.transactions().iter().enumerate() {
            if transaction.client as usize % 2 == number {
                draft.fill(history, index);
                machine.push(transaction, &draft);
                whole.push(*transaction, &draft);
            }
        }
    }
    let mut recording = GrowingRecording::new(history.tables());
    for mut machine in machines.into_iter().filter(|machine| !machine.is_empty()) {
        let mut adopted = Encoder::new();
        let chunk = machine.take();
        adopted.adopt(&chunk, history.tables(), 0).expect("a chunk");
        let again = adopted.take();
        assert_eq!(again, chunk, "nothing changes on the way");
        recording.add(&again).expect("a chunk");
    }
    let (report, _) = recording.check(history.dropped(), options).expect("memory can be read");
    assert_eq!(render(&report), render(&check::check(&whole, options)), "of {whole:#?}");
}

/// Checks the shares of several machines, which have some of the clients each, against the check of their
/// concatenation.
fn shared(history: &History, options: &Options, machines: u32) {
    let mut shares = vec![History::new(history.tables().to_vec()); machines as usize];
    let mut whole = History::new(history.tables().to_vec());
    whole.set_dropped(history.dropped());
    let mut draft = Draft::new();
    for number in 0..machines {
        for (index, transaction) in history.transactions().iter().enumerate() {
            if transaction.client % machines == number {
                draft.fill(history, index);
                shares[number as usize].push(*transaction, &draft);
                whole.push(*transaction, &draft);
            }
        }
    }
    let (report, witnesses) = together(machines as usize, |mut ways| {
        let mut bytes = Vec::new();
        binary::write(&shares[ways.rank], &mut bytes).expect("memory can be written");
        let mut recording = GrowingRecording::new(history.tables());
        recording.add_recording(bytes.as_slice()).expect("a recording");
        // What is missing is missing somewhere.
        let dropped = if ways.rank == 1 { history.dropped() } else { 0 };
        recording.check_together(dropped, options, &mut ways).expect("nobody is gone")
    });
    compare(report, &witnesses, &whole, &check::check(&whole, options));
}

/// Checks a recording of which several machines read a share each, against the check of the whole.
fn shared_file(history: &History, whole: &Report, options: &Options, machines: usize) {
    let mut bytes = Vec::new();
    binary::write(history, &mut bytes).expect("memory can be written");
    let (report, witnesses) = together(machines, |mut ways| {
        let checked = check_recording_together(Cursor::new(&bytes), false, options, &mut ways);
        checked.expect("nobody is gone").map(|checked| (checked.report, checked.witnesses))
    });
    compare(report, &witnesses, history, whole);
}

/// Lets several machines check, each in a thread. Returns what rank 0 does; the others return nothing.
fn together(
    machines: usize,
    check: impl Fn(Channels) -> Option<(Report, History)> + Sync,
) -> (Report, History) {
    thread::scope(|scope| {
        let check = &check;
        let all: Vec<_> =
            Channels::all(machines).into_iter().map(|ways| scope.spawn(move || check(ways))).collect();
        let mut all = all.into_iter().map(|thread| thread.join().expect("no panic"));
        let first = all.next().flatten().expect("rank 0 has the report");
        assert!(all.all(|other| other.is_none()));
        first
    })
}

/// Ways between threads.
struct Channels {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Channels {
    fn all(number: usize) -> Vec<Channels> {
        let mut all: Vec<Channels> =
            (0..number).map(|rank| Channels { rank, to: Vec::new(), from: Vec::new() }).collect();
        for from in 0..number {
            for to in 0..number {
                let (sender, receiver) = channel();
                all[from].to.push(sender);
                all[to].from.push(receiver);
            }
        }
        all
    }
}

impl Ways for Channels {
    fn rank(&self) -> usize {
        self.rank
    }

    fn number(&self) -> usize {
        self.to.len()
    }

    fn send(&mut self, to: usize, message: Vec<u8>) {
        // Who has ended doesn't take it.
        let _ = self.to[to].send(message);
    }

    fn receive(&mut self, from: usize) -> io::Result<Vec<u8>> {
        self.from[from].recv().map_err(|_| io::Error::other("gone"))
    }
}

/// Checks a recording of the history.
fn recorded(history: &History, whole: &Report, options: &Options) {
    let mut bytes = Vec::new();
    binary::write(history, &mut bytes).expect("memory can be written");
    let checked = check_recording(bytes.as_slice(), false, options).expect("a recording");
    assert!(checked.problem.is_none());
    compare(checked.report, &checked.witnesses, history, whole);
}

/// Compares a report about a history, and a history of its witnesses, with the expected one.
fn compare(mut report: Report, witnesses: &History, history: &History, whole: &Report) {
    assert_eq!(render(&report), render(whole), "of {history:#?}");
    let id = |index: usize| witnesses.transactions()[index].id;
    let own = |index: usize| history.transactions()[index].id;
    let broken = report.mixed.iter_mut().flat_map(|mixed| &mut mixed.broken).map(|it| &mut it.finding);
    let expected = whole.mixed.iter().flat_map(|mixed| &mixed.broken).map(|it| &it.finding);
    let expected = whole.findings.iter().chain(expected);
    for (finding, expected) in report.findings.iter_mut().chain(broken).zip(expected) {
        for (step, expected) in finding.witness.steps.iter_mut().zip(&expected.witness.steps) {
            assert_eq!((id(step.from), id(step.to)), (own(expected.from), own(expected.to)));
            (step.from, step.to) = (expected.from, expected.to);
        }
    }
    assert_eq!(report, *whole, "of {history:#?}");
}
