//! A terminal that a program writes on, and what can be seen on it.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::num::NonZero;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::wait_for;

/// A pseudo-terminal, whose other end is watched as a terminal would be.
pub struct Terminal {
    master: File,
    screen: Arc<Mutex<vt100::Parser>>,
    watching: Mutex<Option<JoinHandle<()>>>,
}

impl Terminal {
    pub fn new(rows: u16, columns: u16) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("its other end is ours");
        unlockpt(&master).expect("its other end can be opened");
        let terminal = Terminal {
            master: File::from(master),
            screen: Arc::new(Mutex::new(vt100::Parser::new(size(rows), size(columns), 0))),
            watching: Mutex::default(),
        };
        terminal.resize(rows, columns);
        terminal
    }

    /// The end that programs write on.
    pub fn end(&self) -> Stdio {
        let name = ptsname(&self.master, Vec::new()).expect("a name");
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let end = OpenOptions::new().read(true).write(true).open(path).expect("the other end");
        self.watch();
        Stdio::from(end)
    }

    /// Shows what is written, until nobody has the other end open.
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

    pub fn resize(&self, rows: u16, columns: u16) {
        let window = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.master.as_fd(), window).expect("a size");
        self.screen.lock().expect("no reader panics").screen_mut().set_size(size(rows), size(columns));
    }

    /// What is to be seen now.
    pub fn text(&self) -> String {
        self.screen.lock().expect("no reader panics").screen().contents()
    }

    /// What is to be seen when the program has ended, and whatever it wrote has been shown.
    pub fn at_the_end(&self) -> String {
        if let Some(watching) = self.watching.lock().expect("no reader panics").take() {
            watching.join().expect("no reader panics");
        }
        self.text()
    }

    /// Waits until all of these texts are to be seen at once.
    pub fn wait_for(&self, texts: &[&str]) {
        wait_for(&format!("{texts:?} on the terminal"), || {
            let shown = self.text();
            texts.iter().all(|text| shown.contains(text)).then_some(())
        });
    }

    /// Fails if the cursor is hidden, or the screen isn't the one with what was written before.
    pub fn assert_as_before(&self) {
        let screen = self.screen.lock().expect("no reader panics");
        let screen = screen.screen();
        assert!(!screen.hide_cursor() && !screen.alternate_screen());
    }
}

fn size(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("more than nothing")
}
