//! Messages as text, one per line: `F` for those of the client (frontend), `B` for those of the
//! server (backend).

use isobench_pgwire::backend::{self, Message};
use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{Frame, FrameBuffer};

/// A trace under construction.
#[derive(Default)]
pub struct Trace {
    text: String,
    started: bool,
    masks: Vec<(String, &'static str)>,
}

impl Trace {
    /// Replaces `value`, which differs between runs, by `name`.
    pub fn mask(&mut self, value: impl Into<String>, name: &'static str) {
        self.masks.push((value.into(), name));
    }

    /// Adds messages of the client; the first is the start-up packet.
    pub fn frontend(&mut self, mut bytes: &[u8]) {
        if !self.started && !bytes.is_empty() {
            let (message, size) = server::parse_initial(bytes).expect("well-formed").expect("whole");
            self.line(&format!("F {}", frontend_text(&message)));
            bytes = &bytes[size..];
            self.started = true;
        }
        each(bytes, |frame| {
            let message = server::parse(frame).expect("well-formed");
            self.line(&format!("F {}", frontend_text(&message)));
        });
    }

    /// Adds messages of the server.
    pub fn backend(&mut self, bytes: &[u8]) {
        each(bytes, |frame| {
            let message = backend::parse(frame).expect("well-formed");
            self.line(&format!("B {}", backend_text(&message)));
        });
    }

    /// Adds a separate line.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The whole trace.
    pub fn text(&self) -> String {
        self.masks.iter().fold(self.text.clone(), |text, (value, name)| {
            text.replace(&value.as_bytes().escape_ascii().to_string(), name)
        })
    }
}

/// Calls `then` for each message in `bytes`.
pub fn each(bytes: &[u8], mut then: impl FnMut(Frame<'_>)) {
    let mut buffer = FrameBuffer::new();
    let mut frames = buffer.feed(bytes);
    while let Some(frame) = frames.next().expect("well-formed") {
        then(frame);
    }
}

fn show(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn frontend_text(message: &FrontendMessage<'_>) -> String {
    match message {
        FrontendMessage::Startup { parameters } => {
            parameters.iter().fold("Startup".to_owned(), |text, (name, value)| {
                format!("{text} {}={}", name.escape_ascii(), show(value))
            })
        }
        FrontendMessage::Password(body) => match server::sasl_initial_response(body) {
            Ok((mechanism, response)) => {
                format!("SASLInitialResponse {} {}", show(mechanism), show(response.unwrap_or_default()))
            }
            Err(_) => format!("Password {}", show(body)),
        },
        FrontendMessage::Query(sql) => format!("Query {}", show(sql)),
        other => format!("{other:?}"),
    }
}

fn backend_text(message: &Message<'_>) -> String {
    match message {
        Message::Authentication(backend::Authentication::Sasl(mechanisms)) => mechanisms
            .iter()
            .fold("AuthenticationSASL".to_owned(), |text, name| format!("{text} {}", show(name))),
        Message::Authentication(backend::Authentication::SaslContinue(data)) => {
            format!("AuthenticationSASLContinue {}", show(data))
        }
        Message::Authentication(backend::Authentication::SaslFinal(data)) => {
            format!("AuthenticationSASLFinal {}", show(data))
        }
        Message::ErrorResponse(error) => format!("ErrorResponse{}", fields(error)),
        Message::NoticeResponse(notice) => format!("NoticeResponse{}", fields(notice)),
        other => format!("{other:?}"),
    }
}

fn fields(message: &backend::ServerMessage<'_>) -> String {
    message
        .fields()
        .fold(String::new(), |text, (letter, value)| format!("{text} {}={}", char::from(letter), show(value)))
}
