//! The codec as a whole: encoded messages are decoded again, chunking doesn't change them, and no
//! input makes a decoder panic or use more memory than it received.

use isobench_pgwire::backend::{self, Authentication, Message, TransactionStatus};
use isobench_pgwire::server::{self, Describable, FrontendMessage};
use isobench_pgwire::{Frame, FrameBuffer, ProtocolError, SqlState, frontend};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// All messages of a stream that arrives at once, as type byte and body.
fn split(stream: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut buffer = FrameBuffer::new();
    let mut frames = buffer.feed(stream);
    let mut found = Vec::new();
    while let Some(frame) = frames.next().expect("the stream is well-formed") {
        found.push((frame.tag, frame.body.to_vec()));
    }
    drop(frames);
    assert!(buffer.is_empty(), "a partial message is left");
    found
}

/// Encodes a message, checks that it is a single one, and passes it to `check`.
fn round_trip(encode: impl FnOnce(&mut Vec<u8>), check: impl FnOnce(Frame<'_>)) {
    let mut out = vec![0xaa; 3];
    encode(&mut out);
    let frames = split(&out[3..]);
    assert_eq!(frames.len(), 1);
    check(Frame { tag: frames[0].0, body: &frames[0].1 });
}

/// Any text that a C string can contain.
fn text() -> impl Strategy<Value = String> {
    "[^\0]{0,20}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows(values in vec(option::of(bytes()), 0..20)) {
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        round_trip(|out| server::data_row(out, &values), |frame| {
            let Ok(Message::DataRow(row)) = backend::parse(frame) else { panic!("{frame:?}") };
            assert_eq!(row.columns().collect::<Vec<_>>(), values);
            assert_eq!(row.columns().len(), row.len());
        });
    }

    #[test]
    fn row_descriptions(columns in vec((text(), any::<u32>()), 0..20)) {
        let columns: Vec<(&str, u32)> = columns.iter().map(|(name, oid)| (name.as_str(), *oid)).collect();
        round_trip(|out| server::row_description(out, &columns), |frame| {
            let Ok(Message::RowDescription(description)) = backend::parse(frame) else { panic!("{frame:?}") };
            let found: Vec<_> = description.fields().map(|field| (field.name.into_owned(), field.data_type)).collect();
            let expected: Vec<_> = columns.iter().map(|(name, oid)| ((*name).to_owned(), *oid)).collect();
            assert_eq!(found, expected);
            assert_eq!(description.names().count(), description.len());
        });
    }

    #[test]
    fn parameter_descriptions(types in vec(any::<u32>(), 0..20)) {
        round_trip(|out| server::parameter_description(out, &types), |frame| {
            let Ok(Message::ParameterDescription(found)) = backend::parse(frame) else { panic!("{frame:?}") };
            assert_eq!(found.types().collect::<Vec<_>>(), types);
        });
    }

    #[test]
    fn errors_and_notices(fields in vec((1_u8.., text()), 0..20), code in "[0-9A-Z]{5}") {
        let mut fields: Vec<(u8, &str)> = fields.iter().map(|(letter, text)| (*letter, text.as_str())).collect();
        fields.retain(|(letter, _)| *letter != b'C');
        fields.push((b'C', &code));
        let expected: Vec<_> = fields.iter().map(|(letter, text)| (*letter, text.as_bytes())).collect();
        round_trip(|out| server::error_response(out, &fields), |frame| {
            assert_eq!(backend::sqlstate(frame.body), SqlState::from_bytes(code.as_bytes()));
            let Ok(Message::ErrorResponse(error)) = backend::parse(frame) else { panic!("{frame:?}") };
            assert_eq!(error.fields().collect::<Vec<_>>(), expected);
            assert_eq!(error.to_error().code.as_str(), code);
        });
        round_trip(|out| server::notice_response(out, &fields), |frame| {
            let Ok(Message::NoticeResponse(notice)) = backend::parse(frame) else { panic!("{frame:?}") };
            assert_eq!(notice.fields().collect::<Vec<_>>(), expected);
        });
    }

    #[test]
    fn texts_of_the_server(name in text(), value in text(), pid in any::<i32>(), key in bytes()) {
        round_trip(|out| server::command_complete(out, &name), |frame| {
            assert_eq!(backend::parse(frame), Ok(Message::CommandComplete { tag: &name }));
        });
        round_trip(|out| server::parameter_status(out, &name, &value), |frame| {
            let expected = Message::ParameterStatus { name: (&name).into(), value: (&value).into() };
            assert_eq!(backend::parse(frame), Ok(expected));
        });
        round_trip(|out| server::notification_response(out, pid, &name, &value), |frame| {
            let (channel, payload) = ((&name).into(), (&value).into());
            assert_eq!(backend::parse(frame), Ok(Message::NotificationResponse { pid, channel, payload }));
        });
        round_trip(|out| server::backend_key_data(out, pid, &key), |frame| {
            assert_eq!(backend::parse(frame), Ok(Message::BackendKeyData { pid, key: &key }));
        });
        round_trip(|out| server::copy_data(out, &key), |frame| {
            assert_eq!(backend::parse(frame), Ok(Message::CopyData(&key)));
        });
        round_trip(|out| server::negotiate_protocol_version(out, pid, &["_pq_.x"]), |frame| {
            let expected = Message::NegotiateProtocolVersion { minor: pid, unknown_options: 1 };
            assert_eq!(backend::parse(frame), Ok(expected));
        });
    }

    #[test]
    fn authentication(salt in any::<[u8; 4]>(), data in bytes(), code in 13..i32::MAX) {
        let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            encode(&mut out);
            out
        };
        let cases: Vec<(Authentication<'_>, Vec<u8>)> = [
            (Authentication::Ok, server::authentication_ok as fn(&mut Vec<u8>)),
            (Authentication::CleartextPassword, server::authentication_cleartext_password),
        ].into_iter().map(|(expected, encode)| (expected, encoded(&encode))).chain([
            (
                Authentication::Md5Password { salt },
                encoded(&|out| server::authentication_md5_password(out, salt)),
            ),
            (
                Authentication::SaslContinue(&data),
                encoded(&|out| server::authentication_sasl_continue(out, &data)),
            ),
            (
                Authentication::SaslFinal(&data),
                encoded(&|out| server::authentication_sasl_final(out, &data)),
            ),
            (Authentication::Other(code), encoded(&|out| server::authentication(out, code, &data))),
        ]).collect();
        for (expected, out) in cases {
            round_trip(|buffer| buffer.extend_from_slice(&out), |frame| {
                assert_eq!(backend::parse(frame), Ok(Message::Authentication(expected)));
            });
        }
    }

    #[test]
    fn queries(sql in text(), statement in text()) {
        round_trip(|out| frontend::query(out, sql.as_bytes()), |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Query(sql.as_bytes())));
        });
        let piecewise = |out: &mut Vec<u8>| {
            let mark = frontend::begin_query(out);
            out.extend_from_slice(sql.as_bytes());
            frontend::finish(out, mark);
        };
        round_trip(piecewise, |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Query(sql.as_bytes())));
        });
        round_trip(|out| frontend::parse(out, &statement, &sql), |frame| {
            let (statement, sql) = (statement.as_bytes(), sql.as_bytes());
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Parse { statement, sql, types: vec![] }));
        });
        round_trip(|out| frontend::describe_portal(out, &statement), |frame| {
            let portal = Describable::Portal(statement.as_bytes());
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Describe(portal)));
        });
    }

    #[test]
    fn binds(statement in text(), values in vec(option::of(bytes()), 0..20)) {
        let encode = |out: &mut Vec<u8>| {
            let count = u16::try_from(values.len()).expect("at most 20");
            let mark = frontend::begin_bind(out, &statement, count);
            for value in &values {
                match value {
                    Some(value) => frontend::param(out, |out| out.extend_from_slice(value)),
                    None => frontend::null_param(out),
                }
            }
            frontend::finish_bind(out, mark);
        };
        round_trip(encode, |frame| {
            let expected = FrontendMessage::Bind {
                portal: b"",
                statement: statement.as_bytes(),
                formats: vec![],
                parameters: values.iter().map(Option::as_deref).collect(),
                result_formats: vec![],
            };
            assert_eq!(server::parse(frame), Ok(expected));
        });
    }

    #[test]
    fn copying_and_passwords(data in bytes(), reason in text(), mechanism in text()) {
        round_trip(|out| frontend::copy_data(out, |out| out.extend_from_slice(&data)), |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::CopyData(&data)));
        });
        round_trip(|out| frontend::copy_fail(out, &reason), |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::CopyFail(reason.as_bytes())));
        });
        round_trip(|out| frontend::password(out, reason.as_bytes()), |frame| {
            let expected = [reason.as_bytes(), b"\0"].concat();
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Password(&expected)));
        });
        round_trip(|out| frontend::sasl_response(out, &data), |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Password(&data)));
        });
        round_trip(|out| frontend::sasl_initial(out, &mechanism, &data), |frame| {
            let Ok(FrontendMessage::Password(body)) = server::parse(frame) else { panic!("{frame:?}") };
            assert_eq!(server::sasl_initial_response(body), Ok((mechanism.as_bytes(), Some(&data[..]))));
        });
    }

    #[test]
    fn beginnings(
        parameters in vec(("[^\0]{1,9}", text()), 0..9),
        pid in any::<i32>(),
        key in bytes(),
        rest in bytes(),
    ) {
        let mut out = Vec::new();
        frontend::startup(&mut out, parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let size = out.len();
        for end in 0..size {
            prop_assert_eq!(server::parse_initial(&out[..end]), Ok(None));
        }
        out.extend_from_slice(&rest);
        let expected = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        let expected = FrontendMessage::Startup { parameters: expected };
        prop_assert_eq!(server::parse_initial(&out), Ok(Some((expected, size))));

        let mut out = Vec::new();
        frontend::cancel_request(&mut out, pid, &key);
        let expected = FrontendMessage::CancelRequest { pid, key: &key };
        prop_assert_eq!(server::parse_initial(&out), Ok(Some((expected, out.len()))));
    }

    /// A stream split anywhere, with some reads abandoned after a number of messages, gives the
    /// same messages.
    #[test]
    fn chunking_changes_nothing(
        messages in vec((any::<u8>(), bytes()), 0..20),
        reads in vec((1_usize..40, option::weighted(0.2, 0_usize..3)), 1..20),
    ) {
        let mut stream = Vec::new();
        for (tag, body) in &messages {
            let length = u32::try_from(body.len() + 4).expect("short");
            stream.push(*tag);
            stream.extend_from_slice(&length.to_be_bytes());
            stream.extend_from_slice(body);
        }
        let mut buffer = FrameBuffer::new();
        let mut found = Vec::new();
        let mut rest = &stream[..];
        let mut received = 0;
        for (size, stop_after) in reads.iter().cycle() {
            let finished = rest.is_empty();
            let (chunk, later) = rest.split_at((*size).min(rest.len()));
            rest = later;
            received += chunk.len();
            let mut frames = buffer.feed(chunk);
            let most = if finished { usize::MAX } else { stop_after.unwrap_or(usize::MAX) };
            for _ in 0..most {
                let Some(frame) = frames.next().expect("well-formed") else { break };
                found.push((frame.tag, frame.body.to_vec()));
            }
            drop(frames);
            prop_assert!(buffer.heap_size() <= 2 * received + 64, "{} for {received}", buffer.heap_size());
            if finished {
                break;
            }
        }
        prop_assert_eq!(found, messages);
        prop_assert!(buffer.is_empty());
        prop_assert_eq!(buffer.heap_size(), 0);
    }

    /// No input causes a panic, or uses more memory than it has bytes.
    #[test]
    fn arbitrary_bytes(chunks in vec(vec(any::<u8>(), 0..50), 0..10), tag in any::<u8>()) {
        let mut buffer = FrameBuffer::with_limit(1000);
        let mut received = 0;
        for chunk in &chunks {
            received += chunk.len();
            let mut frames = buffer.feed(chunk);
            while let Ok(Some(frame)) = frames.next() {
                decode(frame);
            }
            drop(frames);
            prop_assert!(buffer.heap_size() <= 2 * received + 64);
            decode(Frame { tag, body: chunk });
            let _ = server::parse_initial(chunk);
            let _ = server::sasl_initial_response(chunk);
        }
    }

    /// The same for input that resembles messages.
    #[test]
    fn plausible_bytes(
        tag in prop::sample::select(&b"RKSNEZTDCI123ntstGHWdcAVvQPBDESHXpf"[..]),
        body in vec(prop_oneof![Just(0_u8), Just(1), any::<u8>()], 0..60),
    ) {
        decode(Frame { tag, body: &body });
    }
}

/// Decodes a frame in both directions and iterates over its parts.
fn decode(frame: Frame<'_>) {
    backend::sqlstate(frame.body);
    match backend::parse(frame) {
        Ok(Message::DataRow(row)) => assert_eq!(row.columns().count(), row.len()),
        Ok(Message::RowDescription(description)) => {
            assert_eq!(description.fields().count(), description.len());
        }
        Ok(Message::ParameterDescription(types)) => assert_eq!(types.types().count(), types.len()),
        Ok(Message::ErrorResponse(error) | Message::NoticeResponse(error)) => {
            let error = error.to_error();
            error.report(Some("SELECT 1\nFROM nothing"));
        }
        Ok(Message::Authentication(Authentication::Sasl(mechanisms))) => {
            assert!(mechanisms.iter().count() <= frame.body.len());
        }
        _ => {}
    }
    if let Ok(FrontendMessage::Bind { parameters, .. }) = server::parse(frame) {
        assert!(parameters.capacity() <= frame.body.len() + 8, "memory for a number that was only claimed");
    }
}

#[test]
fn messages_without_content() {
    type Encode = fn(&mut Vec<u8>);
    let backend: [(Encode, Message<'_>); 8] = [
        (server::parse_complete, Message::ParseComplete),
        (server::bind_complete, Message::BindComplete),
        (server::close_complete, Message::CloseComplete),
        (server::no_data, Message::NoData),
        (server::portal_suspended, Message::PortalSuspended),
        (server::empty_query_response, Message::EmptyQueryResponse),
        (server::copy_done, Message::CopyDone),
        (
            |out| server::ready_for_query(out, TransactionStatus::Failed),
            Message::ReadyForQuery(TransactionStatus::Failed),
        ),
    ];
    for (encode, expected) in backend {
        round_trip(encode, |frame| assert_eq!(backend::parse(frame), Ok(expected)));
    }
    let frontend: [(Encode, FrontendMessage<'_>); 5] = [
        (frontend::sync, FrontendMessage::Sync),
        (frontend::flush, FrontendMessage::Flush),
        (frontend::terminate, FrontendMessage::Terminate),
        (frontend::copy_done, FrontendMessage::CopyDone),
        (frontend::execute, FrontendMessage::Execute { portal: b"", limit: 0 }),
    ];
    for (encode, expected) in frontend {
        round_trip(encode, |frame| assert_eq!(server::parse(frame), Ok(expected)));
    }
    let mut out = Vec::new();
    frontend::ssl_request(&mut out);
    assert_eq!(server::parse_initial(&out), Ok(Some((FrontendMessage::SslRequest, 8))));
}

#[test]
fn copy_responses() {
    type Encode = fn(&mut Vec<u8>, u16);
    let cases: [(Encode, u8); 3] = [
        (server::copy_in_response, b'G'),
        (server::copy_out_response, b'H'),
        (server::copy_both_response, b'W'),
    ];
    for (encode, tag) in cases {
        round_trip(
            |out| encode(out, 3),
            |frame| {
                assert_eq!(frame.tag, tag);
                let Ok(
                    Message::CopyInResponse(format)
                    | Message::CopyOutResponse(format)
                    | Message::CopyBothResponse(format),
                ) = backend::parse(frame)
                else {
                    panic!("{frame:?}")
                };
                assert_eq!((format.binary, format.columns), (false, 3));
            },
        );
    }
}

#[test]
fn a_nul_byte_ends_a_text() {
    round_trip(
        |out| frontend::query(out, b"SELECT 1\0; DROP TABLE t"),
        |frame| {
            assert_eq!(server::parse(frame), Ok(FrontendMessage::Query(b"SELECT 1")));
        },
    );
    let mut out = Vec::new();
    frontend::startup(&mut out, [("user", "me\0database\0other")]);
    let expected = FrontendMessage::Startup { parameters: vec![(&b"user"[..], &b"me"[..])] };
    assert_eq!(server::parse_initial(&out), Ok(Some((expected, out.len()))));
}

#[test]
fn impossible_lengths_end_the_stream() {
    for (length, expected) in [
        (3, ProtocolError::InvalidLength { tag: b'Z', length: 3 }),
        (-1, ProtocolError::InvalidLength { tag: b'Z', length: -1 }),
        (101, ProtocolError::TooLong { tag: b'Z', length: 101, limit: 100 }),
    ] {
        let mut stream = b"1\0\0\0\x04Z".to_vec();
        stream.extend_from_slice(&i32::to_be_bytes(length));
        stream.extend_from_slice(&[0; 200]);
        // All at once, and byte by byte.
        for size in [stream.len(), 1] {
            let mut buffer = FrameBuffer::with_limit(100);
            let mut frames_before = 0;
            let mut error = None;
            for chunk in stream.chunks(size) {
                let mut frames = buffer.feed(chunk);
                loop {
                    match frames.next() {
                        Ok(Some(_)) => frames_before += 1,
                        Ok(None) => break,
                        Err(found) => {
                            error = Some(found);
                            break;
                        }
                    }
                }
            }
            assert_eq!((frames_before, error), (1, Some(expected)), "pieces of {size}");
            assert!(buffer.feed(&[]).next().is_err(), "the error stays");
            assert!(buffer.heap_size() < 64, "nothing is collected after it");
        }
    }
}

#[test]
fn a_claimed_length_costs_no_memory() {
    let mut buffer = FrameBuffer::new();
    assert_eq!(buffer.feed(b"D\x0f\xff\xff\xff12345").next(), Ok(None));
    assert!(buffer.heap_size() < 64, "{}", buffer.heap_size());
    assert!(size_of::<FrameBuffer>() < 50);
}
