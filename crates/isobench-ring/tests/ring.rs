//! The ring with pairs of connected sockets. Where the kernel has no `io_uring`, or forbids it,
//! there is nothing to test; the tests say so and pass.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use isobench_ring::{Arrival, Removed, Ring};

/// A ring with the first socket of each pair, and the second ones; `None`: not possible here.
fn ring(count: usize) -> Option<(Ring, Vec<UnixStream>, Vec<UnixStream>)> {
    let mut ring = match Ring::new(count) {
        Ok(ring) => ring,
        Err(error) => {
            eprintln!("not tested, because there is no io_uring here: {error}");
            return None;
        }
    };
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..count).map(|_| UnixStream::pair().unwrap()).unzip();
    for (slot, socket) in ours.iter().enumerate() {
        ring.add(slot, socket).unwrap();
    }
    Some((ring, ours, theirs))
}

/// What has arrived until `enough` says so.
fn collect(ring: &mut Ring, enough: impl Fn(&[(usize, Seen)]) -> bool) -> Vec<(usize, Seen)> {
    let mut all = Vec::new();
    let began = Instant::now();
    while !enough(&all) {
        assert!(began.elapsed() < Duration::from_mins(1), "only {all:?} has arrived");
        ring.wait(Some(Duration::from_millis(50))).unwrap();
        while let Some(slot) = ring.next() {
            let seen = match ring.arrival().unwrap() {
                Arrival::Bytes(bytes) => Seen::Bytes(bytes.to_vec()),
                Arrival::End => Seen::End,
                Arrival::Failed(error) => Seen::Failed(error.kind()),
            };
            all.push((slot, seen));
        }
    }
    all
}

#[derive(Debug, PartialEq)]
enum Seen {
    Bytes(Vec<u8>),
    End,
    Failed(io::ErrorKind),
}

/// All bytes of a slot, in the order of their arrival.
fn bytes_of(all: &[(usize, Seen)], slot: usize) -> Vec<u8> {
    let of_slot = all.iter().filter(|(at, _)| *at == slot);
    of_slot
        .flat_map(|(_, seen)| if let Seen::Bytes(bytes) = seen { bytes.as_slice() } else { &[] })
        .copied()
        .collect()
}

/// Bytes in which a lost, repeated or exchanged part is noticed.
fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 7 + at / 251 + seed * 31) % 256).to_le_bytes()[0]).collect()
}

#[test]
fn questions_are_answered_again_and_again() {
    let Some((mut ring, _ours, mut theirs)) = ring(5) else { return };
    for round in 0..100 {
        for slot in 0..5 {
            ring.send(slot, &pattern(40, slot + round)).unwrap();
        }
        ring.wait(Some(Duration::ZERO)).unwrap();
        for (slot, peer) in theirs.iter_mut().enumerate() {
            let mut question = [0; 40];
            peer.read_exact(&mut question).unwrap();
            assert_eq!(question[..], pattern(40, slot + round));
            peer.write_all(&pattern(100, slot + 2 * round)).unwrap();
        }
        let all = collect(&mut ring, |all| (0..5).all(|slot| bytes_of(all, slot).len() == 100));
        for slot in 0..5 {
            assert_eq!(bytes_of(&all, slot), pattern(100, slot + 2 * round));
        }
    }
}

#[test]
fn two_sends_of_one_turn_arrive_in_order() {
    let Some((mut ring, _ours, mut theirs)) = ring(1) else { return };
    ring.send(0, b"first ").unwrap();
    ring.send(0, b"second ").unwrap();
    ring.send(0, b"third").unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    let mut got = [0; 18];
    theirs[0].read_exact(&mut got).unwrap();
    assert_eq!(&got, b"first second third");
}

#[test]
fn a_full_socket_takes_the_rest_later() {
    let Some((mut ring, _ours, mut theirs)) = ring(2) else { return };
    let parts: Vec<Vec<u8>> = (0..4).map(|seed| pattern(1 << 20, seed)).collect();
    for part in &parts {
        ring.send(0, part).unwrap();
        ring.wait(Some(Duration::ZERO)).unwrap();
    }
    // The other socket isn't kept waiting by the full one.
    theirs[1].write_all(b"hello").unwrap();
    let all = collect(&mut ring, |all| !all.is_empty());
    assert_eq!(all, [(1, Seen::Bytes(b"hello".to_vec()))]);
    let mut reader = theirs.swap_remove(0);
    let whole = thread::spawn(move || {
        let mut got = vec![0; 4 << 20];
        reader.read_exact(&mut got).unwrap();
        reader.write_all(b"done").unwrap();
        got
    });
    collect(&mut ring, |all| bytes_of(all, 0) == b"done");
    assert_eq!(whole.join().unwrap(), parts.concat());
}

#[test]
fn long_answers_take_many_buffers_and_receives_start_again() {
    let Some((mut ring, _ours, mut theirs)) = ring(3) else { return };
    // Far more than the buffers of a ring hold together.
    let answers: Vec<Vec<u8>> = (0..3).map(|seed| pattern(2 << 20, seed)).collect();
    let writers: Vec<_> = theirs
        .drain(..)
        .zip(answers.clone())
        .map(|(mut peer, answer)| {
            thread::spawn(move || {
                peer.write_all(&answer).unwrap();
                peer
            })
        })
        .collect();
    let all = collect(&mut ring, |all| {
        all.iter().map(|(_, seen)| if let Seen::Bytes(bytes) = seen { bytes.len() } else { 0 }).sum::<usize>()
            >= 6 << 20
    });
    for (slot, answer) in answers.iter().enumerate() {
        assert!(bytes_of(&all, slot) == *answer, "the bytes of slot {slot} differ");
    }
    drop(writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>());
}

#[test]
fn an_end_comes_after_the_last_bytes_and_once() {
    let Some((mut ring, _ours, mut theirs)) = ring(2) else { return };
    theirs[1].write_all(b"farewell").unwrap();
    drop(theirs.pop());
    let all = collect(&mut ring, |all| all.iter().any(|(_, seen)| *seen == Seen::End));
    assert_eq!(all, [(1, Seen::Bytes(b"farewell".to_vec())), (1, Seen::End)]);
    theirs[0].write_all(b"still here").unwrap();
    let all = collect(&mut ring, |all| !all.is_empty());
    assert_eq!(all, [(0, Seen::Bytes(b"still here".to_vec()))]);
}

#[test]
fn sending_to_a_peer_that_has_gone_is_an_arrival() {
    let Some((mut ring, _ours, mut theirs)) = ring(1) else { return };
    drop(theirs.pop());
    ring.send(0, b"is anybody there?").unwrap();
    let all = collect(&mut ring, |all| all.len() >= 2);
    let lost = Seen::Failed(io::ErrorKind::BrokenPipe);
    assert!(all.contains(&(0, lost)) && all.contains(&(0, Seen::End)), "{all:?}");
}

#[test]
fn a_wait_ends_in_time() {
    let Some((mut ring, _ours, _theirs)) = ring(1) else { return };
    let began = Instant::now();
    ring.wait(Some(Duration::from_micros(1500))).unwrap();
    assert!(began.elapsed() >= Duration::from_micros(1500) && ring.next().is_none());
}

#[test]
fn news_is_seen_without_waiting() {
    let Some((mut ring, _ours, mut theirs)) = ring(1) else { return };
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert!(!ring.has_news());
    theirs[0].write_all(b"x").unwrap();
    let began = Instant::now();
    while !ring.has_news() {
        assert!(began.elapsed() < Duration::from_mins(1), "nothing is noticed");
        thread::yield_now();
    }
    ring.wait(None).unwrap();
    assert_eq!(ring.next(), Some(0));
}

#[test]
fn a_socket_that_is_taken_out_is_given_back_with_all_its_bytes() {
    let Some((mut ring, mut ours, mut theirs)) = ring(3) else { return };
    for peer in &mut theirs {
        peer.write_all(b"unread").unwrap();
    }
    // Those of the others aren't lost.
    ring.wait(None).unwrap();
    assert_eq!(ring.remove(1).unwrap(), Removed { received: b"unread".to_vec(), unsent: false });
    assert_eq!(ring.remove(1).unwrap(), Removed::default(), "it is free already");
    theirs[1].write_all(b"later").unwrap();
    let all = collect(&mut ring, |all| all.len() >= 2);
    assert_eq!((bytes_of(&all, 0), bytes_of(&all, 2)), (b"unread".to_vec(), b"unread".to_vec()));
    // It is an ordinary socket again.
    let mut got = [0; 5];
    ours[1].read_exact(&mut got).unwrap();
    assert_eq!(&got, b"later");
    drop(ours.remove(1));
    assert_eq!(theirs[1].read(&mut got).unwrap(), 0, "the ring keeps no reference");
    // And the slot can be used again.
    let (fresh, mut peer) = UnixStream::pair().unwrap();
    ring.add(1, &fresh).unwrap();
    peer.write_all(b"new").unwrap();
    let all = collect(&mut ring, |all| !all.is_empty());
    assert_eq!(all, [(1, Seen::Bytes(b"new".to_vec()))]);
}

#[test]
fn a_send_that_waits_is_cancelled_with_its_socket() {
    let Some((mut ring, _ours, mut theirs)) = ring(2) else { return };
    for slot in 0..2 {
        ring.send(slot, &pattern(1 << 20, slot)).unwrap();
    }
    ring.wait(Some(Duration::ZERO)).unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(ring.remove(0).unwrap(), Removed { received: Vec::new(), unsent: true });
    // The other one's goes on.
    let mut reader = theirs.pop().unwrap();
    let whole = thread::spawn(move || {
        let mut got = vec![0; 1 << 20];
        reader.read_exact(&mut got).unwrap();
        reader.write_all(b"done").unwrap();
        got
    });
    collect(&mut ring, |all| bytes_of(all, 1) == b"done");
    assert!(whole.join().unwrap() == pattern(1 << 20, 1));
}

#[test]
fn what_is_queued_leaves_before_its_socket_is_taken_out() {
    let Some((mut ring, _ours, mut theirs)) = ring(1) else { return };
    ring.send(0, b"last words").unwrap();
    assert_eq!(ring.remove(0).unwrap(), Removed::default());
    let mut got = [0; 10];
    theirs[0].read_exact(&mut got).unwrap();
    assert_eq!(&got, b"last words");
}

#[test]
fn a_ring_is_dropped_with_everything_outstanding() {
    for _ in 0..5 {
        let Some((mut ring, ours, mut theirs)) = ring(20) else { return };
        for slot in 0..20 {
            ring.send(slot, &pattern(if slot < 10 { 1 << 20 } else { 30 }, slot)).unwrap();
        }
        ring.wait(Some(Duration::ZERO)).unwrap();
        for peer in &mut theirs {
            peer.write_all(b"unread").unwrap();
        }
        ring.wait(Some(Duration::from_millis(10))).unwrap();
        assert!(ring.next().is_some(), "one is being read");
        ring.send(19, b"not handed over").unwrap();
        drop(ring);
        drop(ours);
        // The kernel has let go of the sockets.
        let mut rest = Vec::new();
        theirs.pop().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest[30..], *b"not handed over");
    }
}

#[test]
fn another_thread_can_only_drop_it() {
    let Some((mut ring, ours, mut theirs)) = ring(2) else { return };
    ring.send(0, b"question").unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    theirs[1].write_all(b"unread").unwrap();
    let refused = thread::spawn(move || {
        ring.send(1, b"never sent").and_then(|()| ring.wait(Some(Duration::ZERO))).is_err()
    });
    assert!(refused.join().unwrap());
    drop(ours);
    let mut rest = Vec::new();
    theirs[0].read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"question");
}

#[test]
fn a_process_started_meanwhile_makes_no_difference() {
    let Some((mut ring, _ours, mut theirs)) = ring(1) else { return };
    ring.send(0, b"question").unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    assert!(std::process::Command::new("true").status().unwrap().success());
    theirs[0].write_all(b"answer").unwrap();
    let all = collect(&mut ring, |all| !all.is_empty());
    assert_eq!(all, [(0, Seen::Bytes(b"answer".to_vec()))]);
}
