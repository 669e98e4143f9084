//! A terminal on which a program writes, and its visible contents.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::wait_for;

/// The end of a synchronized update (mode 2026): the screen at this point is one frame.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// A pseudo-terminal, whose other end is read as a terminal would.
pub struct Terminal {
    master: File,
    screen: Arc<Mutex<Screen>>,
    watching: Mutex<Option<JoinHandle<()>>>,
}

/// The current and earlier contents of the screen.
struct Screen {
    parser: vt100::Parser,
    /// The end of the output, as long as it may be the start of [`FRAME_END`].
    tail: Vec<u8>,
    /// The text of every frame so far, so that waiting for one doesn't depend on timing.
    frames: Vec<String>,
    /// Frames before this one have been waited for, or were drawn for another size.
    seen: usize,
}

impl Screen {
    fn process(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.parser.process(&[*byte]);
            self.tail.push(*byte);
            if self.tail == FRAME_END {
                self.frames.push(self.parser.screen().contents());
            }
            if !FRAME_END.starts_with(&self.tail) || self.tail == FRAME_END {
                self.tail.clear();
                // The byte may start a new mark.
                self.tail.extend(FRAME_END.starts_with(&[*byte]).then_some(*byte));
            }
        }
    }
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("its other end is ours");
        unlockpt(&master).expect("its other end can be opened");
        let terminal = Terminal {
            master: File::from(master),
            screen: Arc::new(Mutex::new(Screen {
                parser: vt100::Parser::new(size(rows), size(columns), 0),
                tail: Vec::new(),
                frames: Vec::new(),
                seen: 0,
            })),
            watching: Mutex::default(),
        };
        terminal.resize(rows, columns);
        terminal
    }

    /// The end on which programs write.
    pub fn end(&self) -> Stdio {
        let end = self.other_end();
        self.watch();
        Stdio::from(end)
    }

    /// The end from which programs read.
    pub fn keyboard(&self) -> Stdio {
        Stdio::from(self.other_end())
    }

    fn other_end(&self) -> File {
        let name = ptsname(&self.master, Vec::new()).expect("a name");
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let noctty = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).expect("a flag");
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(noctty).open(path).expect("the other end")
    }

    /// Types a line.
    pub fn enter(&self, line: &str) {
        let mut master = &self.master;
        master.write_all(format!("{line}\n").as_bytes()).expect("a key");
    }

    /// Shows the output until the other end is closed.
    fn watch(&self) {
        let mut master = self.master.try_clone().expect("a descriptor");
        let screen = Arc::clone(&self.screen);
        let watching = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = master.read(&mut bytes) {
                screen.lock().expect("no reader panics").process(&bytes[..count]);
            }
        });
        *self.watching.lock().expect("no reader panics") = Some(watching);
    }

    /// Changes the size. Frames drawn before are no longer waited for.
    pub fn resize(&self, rows: u16, columns: u16) {
        let mut screen = self.screen.lock().expect("no reader panics");
        let window = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.master.as_fd(), window).expect("a size");
        screen.parser.screen_mut().set_size(size(rows), size(columns));
        screen.seen = screen.frames.len();
    }

    /// Returns the current contents.
    pub fn text(&self) -> String {
        self.screen.lock().expect("no reader panics").parser.screen().contents()
    }

    /// Returns the contents when the program has ended and all its output has been shown.
    pub fn at_the_end(&self) -> String {
        if let Some(watching) = self.watching.lock().expect("no reader panics").take() {
            watching.join().expect("no reader panics");
        }
        self.text()
    }

    /// Waits for a frame with all of these texts: the frame found last, or a later one.
    pub fn wait_for(&self, texts: &[&str]) {
        wait_for(&format!("{texts:?} on the terminal"), || {
            let mut screen = self.screen.lock().expect("no reader panics");
            let later = screen.frames.iter().skip(screen.seen);
            let found = later.take_while(|frame| !texts.iter().all(|text| frame.contains(text))).count();
            let seen = screen.seen + found;
            (seen < screen.frames.len()).then(|| screen.seen = seen)
        });
    }

    /// Fails if any frame had this text.
    pub fn assert_never_shown(&self, text: &str) {
        let screen = self.screen.lock().expect("no reader panics");
        let with = screen.frames.iter().find(|frame| frame.contains(text));
        assert_eq!(with, None, "{text}");
    }

    /// Fails if the cursor is hidden, or the screen isn't the original one.
    pub fn assert_as_before(&self) {
        let screen = self.screen.lock().expect("no reader panics");
        let screen = screen.parser.screen();
        assert!(!screen.hide_cursor() && !screen.alternate_screen());
    }
}

fn size(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("more than nothing")
}
