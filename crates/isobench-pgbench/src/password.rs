//! A password asked for at the terminal, which doesn't show it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Asks for a password at the program's terminal, wherever input and output go.
///
/// # Errors
/// There is no terminal, or nobody answers.
pub fn ask(prompt: &str) -> io::Result<String> {
    ask_at(&File::options().read(true).write(true).open("/dev/tty")?, prompt)
}

fn ask_at(mut terminal: &File, prompt: &str) -> io::Result<String> {
    let usual = tcgetattr(terminal)?;
    let mut hidden = usual.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    // The end of the line is shown.
    hidden.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(terminal, OptionalActions::Now, &hidden)?;
    let mut line = String::new();
    let answered =
        terminal.write_all(prompt.as_bytes()).and_then(|()| BufReader::new(terminal).read_line(&mut line));
    tcsetattr(terminal, OptionalActions::Now, &usual)?;
    match answered? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// The two ends of a terminal: the keyboard with the screen, and the program's.
    fn terminal() -> (File, File) {
        let outer = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&outer).and_then(|()| unlockpt(&outer)).expect("its other end");
        let name = ptsname(&outer, Vec::new()).expect("its name").into_string().expect("in UTF-8");
        let inner = File::options().read(true).write(true).open(name).expect("its other end");
        (File::from(outer), inner)
    }

    /// What is on the screen at the end, if someone types this once there is a prompt; and the
    /// answer.
    fn typed(keys: &'static [u8]) -> (String, io::Result<String>) {
        let (mut outer, inner) = terminal();
        let before = tcgetattr(&inner).expect("modes").local_modes;
        let user = thread::spawn(move || {
            let mut screen = vec![0; 10];
            outer.read_exact(&mut screen).expect("the prompt");
            outer.write_all(keys).expect("keys");
            (outer, screen)
        });
        let answer = ask_at(&inner, "Password: ");
        let (mut outer, mut screen) = user.join().expect("a user");
        (&inner).write_all(b"!").expect("a line");
        while screen.last() != Some(&b'!') {
            let mut more = [0; 1];
            outer.read_exact(&mut more).expect("the rest");
            screen.extend(more);
        }
        assert_eq!(tcgetattr(&inner).expect("modes").local_modes, before, "the modes are back");
        (String::from_utf8(screen).expect("UTF-8"), answer)
    }

    #[test]
    fn a_password_is_read_and_not_shown() {
        let (screen, password) = typed(b"s3cret of m\xC3\xBCller\n");
        assert_eq!(password.expect("a password"), "s3cret of m\u{fc}ller");
        assert_eq!(screen, "Password: \r\n!");
    }

    #[test]
    fn no_answer_and_text_in_no_encoding_are_errors() {
        let (screen, end) = typed(b"\x04");
        assert_eq!(end.expect_err("the end").kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(screen, "Password: !");
        assert_eq!(typed(b"\xFF\n").1.expect_err("no text").kind(), io::ErrorKind::InvalidData);
    }
}
