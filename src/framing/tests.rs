#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use super::*;
use std::io::{BufReader, Write};

/// Gives its bytes in pieces: one of `first` bytes, then all of `then` bytes.
struct Pieces<'a> {
    bytes: &'a [u8],
    piece: usize,
    then: usize,
    /// Fails before each piece, as a read does when a signal comes.
    interrupts: bool,
    interrupted: bool,
    fills: usize,
}

impl<'a> Pieces<'a> {
    fn new(bytes: &'a [u8], first: usize, then: usize) -> Self {
        Self {
            bytes,
            piece: first,
            then,
            interrupts: false,
            interrupted: false,
            fills: 0,
        }
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fills += 1;
        if self.interrupts && !self.interrupted {
            self.interrupted = true;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(&self.bytes[..self.piece.min(self.bytes.len())])
    }

    fn consume(&mut self, used: usize) {
        self.bytes = &self.bytes[used..];
        self.piece -= used;
        if self.piece == 0 {
            self.piece = self.then;
            self.interrupted = false;
        }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let used = self.fill_buf()?.read(into)?;
        self.consume(used);
        Ok(used)
    }
}

/// Everything a reader makes of a stream, one line each; its memory is checked after each frame.
fn drain(reader: &mut FrameReader, input: &mut dyn BufRead) -> Vec<String> {
    let most = reader.limit.max(HEADER_LIMIT).saturating_add(2);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ids = |sightings: Vec<Sighting>| {
        let ids: Vec<_> = sightings
            .into_iter()
            .map(|seen| seen.id.unwrap_or_default())
            .collect();
        ids.join(",")
    };
    let mut seen = Vec::new();
    loop {
        let line = match reader.next(input) {
            Ok(None) => return seen,
            Ok(Some(Frame::Body { text: body, .. })) => format!("body {}", text(body)),
            Ok(Some(Frame::Stray(line))) => format!("stray {}", text(line)),
            Ok(Some(Frame::Oversized {
                len,
                head,
                sightings,
            })) => {
                assert!(head.len() <= HEAD);
                format!("oversized {len} {}", ids(sightings))
            }
            Ok(Some(Frame::Cut { head, sightings })) => {
                assert!(head.len() <= HEAD);
                format!("cut {}", ids(sightings))
            }
            Err(error) => {
                seen.push(format!("{error:?}"));
                return seen;
            }
        };
        seen.push(line);
        assert!(reader.buffer.capacity() <= most);
    }
}

fn lines(limit: usize, stream: impl AsRef<[u8]>) -> Vec<String> {
    let mut reader = FrameReader::new(Framing::Lines, limit);
    drain(&mut reader, &mut stream.as_ref())
}

fn headed(limit: usize, stream: impl AsRef<[u8]>) -> Vec<String> {
    let mut reader = FrameReader::new(Framing::ContentLength, limit);
    drain(&mut reader, &mut stream.as_ref())
}

fn block(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

const LINES: &[u8] = b"Starting\n\xef\xbb\xbf{\"id\":1}\r\n\n\r\n   {\"id\":2}\n\0\0{\"id\":3,\"text\":\"this is too long\"}\r\n{\"id\":\"last\"}";

const HEADED: &[u8] = b"Listening...\n\x1b[1mWARN: x\x1b[0m\n \t \rContent-Length: 8\r\n\r\n{\"id\":1}debug: 1\ncontent-type: application/vscode-jsonrpc; charset=utf8\nX-A: b:c\nCONTENT-LENGTH :  43\n\n{\"id\":2,\"x\":\"Content-Length: 5\\r\\n\\r\\n567\"}Content-Length: 0\r\n\r\n\r\nContent-Length: 53\r\n\r\n{\"id\":3,\"text\":\"this is much, much, much too long..\"}Content-Length: 9\r\nContent-Type: x\r\n\r\n\xef\xbb\xbf\n[] \r\n";

const HEADED_SEEN: [&str; 10] = [
    "stray Listening...",
    "stray \u{1b}[1mWARN: x\u{1b}[0m",
    "stray  \t ",
    "body {\"id\":1}",
    "stray debug: 1",
    "stray X-A: b:c",
    "body {\"id\":2,\"x\":\"Content-Length: 5\\r\\n\\r\\n567\"}",
    "body ",
    "oversized 53 3",
    "body []",
];

#[test]
fn a_line_is_a_frame_without_what_surrounds_it() {
    let expected = [
        "body Starting",
        "body {\"id\":1}",
        "body {\"id\":2}",
        "oversized 36 3",
        "body {\"id\":\"last\"}",
    ];
    assert_eq!(lines(20, LINES), expected);
}

#[test]
fn header_variants_and_stray_text_are_survived() {
    assert_eq!(headed(50, HEADED), HEADED_SEEN);
}

#[test]
fn every_split_gives_the_same_frames() {
    for (framing, limit, stream) in [
        (Framing::Lines, 20, LINES),
        (Framing::ContentLength, 50, HEADED),
    ] {
        let read = |input: &mut dyn BufRead| {
            let mut reader = FrameReader::new(framing, limit);
            drain(&mut reader, input)
        };
        let whole = read(&mut { stream });
        for at in 1..stream.len() {
            let mut split = Pieces::new(stream, at, stream.len());
            assert_eq!(read(&mut split), whole, "split at {at}");
            let mut pieces = Pieces::new(stream, at, at);
            pieces.interrupts = true;
            assert_eq!(read(&mut pieces), whole, "interrupted pieces of {at}");
            let mut buffered = BufReader::with_capacity(at, stream);
            assert_eq!(read(&mut buffered), whole, "a buffer of {at}");
        }
    }
}

#[test]
fn every_prefix_gives_a_prefix_of_the_frames() {
    for end in 0..LINES.len() {
        let seen = lines(20, &LINES[..end]);
        assert!(seen.len() <= 5);
    }
    for end in 0..HEADED.len() {
        let mut seen = headed(50, &HEADED[..end]);
        // Only the last one differs: a stray line that is not whole, or the frame that was cut.
        let last = seen.pop().unwrap_or_default();
        assert_eq!(seen, HEADED_SEEN[..seen.len()], "cut at {end}");
        assert!(
            last.is_empty()
                || last.starts_with("stray ")
                || last.starts_with("cut")
                || last == HEADED_SEEN[seen.len()],
            "{last} at {end}"
        );
    }
}

#[test]
fn no_single_byte_change_is_fatal_to_the_reader() {
    for at in 0..HEADED.len() {
        for byte in [0, b'\n', b'\r', b' ', b':', b'9', b'{', b'"', 0x80, 0xff] {
            let mut stream = HEADED.to_vec();
            stream[at] = byte;
            headed(50, &stream);
            lines(50, &stream);
        }
    }
}

#[test]
fn the_limit_is_the_largest_frame() {
    let first = format!("{{\"id\":17,\"x\":\"{}\"}}", "x".repeat(984));
    let last = format!("{{\"x\":\"{}\",\"id\":17}}", "x".repeat(984));
    assert_eq!((first.len(), last.len()), (1000, 1000));
    for text in [first, last] {
        for end in ["\n", "\r\n"] {
            let stream = format!("{text}{end}{{}}\n");
            let kept = [format!("body {text}"), "body {}".to_owned()];
            assert_eq!(lines(1001, &stream), kept);
            assert_eq!(lines(1000, &stream), kept);
            assert_eq!(lines(999, &stream), ["oversized 1000 17", "body {}"]);
            assert_eq!(lines(900, &stream)[1], "body {}");
        }
        let stream = block(&text) + &block("{}");
        let kept = [format!("body {text}"), "body {}".to_owned()];
        assert_eq!(headed(1001, &stream), kept);
        assert_eq!(headed(1000, &stream), kept);
        assert_eq!(headed(999, &stream), ["oversized 1000 17", "body {}"]);
    }
}

#[test]
fn odd_limits_do_not_overflow() {
    assert_eq!(lines(0, "\n{}\n\n"), ["oversized 2 "]);
    assert_eq!(lines(usize::MAX, "{}\n"), ["body {}"]);
    assert_eq!(headed(0, block("")), ["body "]);
    assert_eq!(headed(0, block("{}")), ["Declared { length: 2, limit: 0 }"]);
    assert_eq!(headed(usize::MAX, block("{}")), ["body {}"]);
    let most = format!("Content-Length: {}\n\n{{\"id\":1,", u64::MAX);
    assert_eq!(headed(usize::MAX, most), ["cut 1"]);
}

#[test]
fn an_endless_line_takes_constant_memory() {
    let start: &[u8] = b"{\"id\":5,\"x\":\"";
    let mut input = BufReader::new(start.chain(io::repeat(b'x')).take(32 << 20));
    let mut reader = FrameReader::new(Framing::Lines, 100_000);
    assert_eq!(drain(&mut reader, &mut input), ["cut 5"]);
    assert!(reader.buffer.capacity() <= 100_002);
}

#[test]
fn a_batch_over_the_limit_names_each_of_its_messages() {
    let batch = r#"[{"id":1,"result":0},{"result":0,"id":2}]"#;
    assert_eq!(lines(10, format!("{batch}\n")), ["oversized 41 1,2"]);
    assert_eq!(headed(10, block(batch)), ["oversized 41 1,2"]);
}

#[test]
fn a_cut_frame_names_its_message() {
    let text = r#"{"id":1,"result":"#;
    assert_eq!(lines(10, text), ["cut 1"]);
    assert_eq!(lines(100, text), [format!("body {text}")]);
    assert_eq!(headed(100, "Content-Length: 99\n\n{\"id\":1,"), ["cut 1"]);
    assert_eq!(headed(10, "Content-Length: 99\n\n{\"id\":1,"), ["cut 1"]);
    assert_eq!(headed(10, "Content-Length: 9"), ["cut "]);
    assert_eq!(headed(10, "Content-Length: 9\n"), ["cut "]);
    assert_eq!(headed(10, "Content-Le"), ["stray Content-Le"]);
}

#[test]
fn a_declared_length_allocates_nothing_by_itself() {
    let mut reader = FrameReader::new(Framing::ContentLength, 64 << 20);
    let stream: &[u8] = b"Content-Length: 67000000\n\n{\"id\":1,";
    let frame = reader.next(&mut { stream }).unwrap().unwrap();
    assert!(matches!(frame, Frame::Cut { .. }));
    assert!(reader.buffer.capacity() <= KEPT);
}

#[test]
fn a_length_over_16_limits_is_an_error() {
    assert_eq!(headed(10, block(&"x".repeat(160))), ["oversized 160 "]);
    assert_eq!(
        headed(10, block(&"x".repeat(161))),
        ["Declared { length: 161, limit: 10 }"]
    );
}

#[test]
fn a_bad_length_is_quoted() {
    for value in ["", "x", "-1", "+1", "1 2", "1.0", "18446744073709551616"] {
        let seen = headed(10, format!("Content-Length: {value}\r\n\r\n"));
        let line = format!("Content-Length: {value}");
        let expected = format!("BadLength {{ header: {:?} }}", line.trim());
        assert_eq!(seen, [expected]);
    }
    let twice = headed(10, "Content-Length: 2\ncontent-length:3\n\n{}");
    assert_eq!(twice, ["BadLength { header: \"content-length:3\" }"]);
    let same = headed(10, "Content-Length: 2\nContent-Length: 02\n\n{}");
    assert_eq!(same, ["body {}"]);
}

#[test]
fn a_missing_length_is_told_with_the_header_that_was_there() {
    let seen = headed(10, "\n\nContent-Type: text/x\r\n\r\n{}");
    assert_eq!(seen, ["MissingLength { header: \"Content-Type: text/x\" }"]);
}

#[test]
fn header_junk_is_bounded() {
    let too_long = ["HeaderTooLong { limit: 8192 }"];
    // A long line is stray in pieces, until it is too much; what it says of a frame is read.
    let junk = "j".repeat(1 << 20);
    let seen = headed(10, &junk);
    assert_eq!(seen.last().unwrap(), "HeaderTooLong { limit: 262144 }");
    assert_eq!(seen.len(), 262_144 / 8194 + 1);
    let long = format!("{}\r\nContent-Length: 2\r\n\r\n{{}}", &junk[..9000]);
    let seen = headed(10, long);
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2], "body {}");
    // A header is a line of its own.
    let header = format!("Content-Length: 2{}", " ".repeat(8193));
    assert_eq!(headed(10, header), too_long);
    let seen = headed(10, "some line\n".repeat(100_000));
    assert_eq!(seen.last().unwrap(), "HeaderTooLong { limit: 262144 }");
    assert_eq!(seen.len(), 262_144 / 9 + 1);
    let seen = headed(
        10,
        "Content-Length: 2\n".to_owned() + &"x: y\n".repeat(10_000),
    );
    assert_eq!(seen.last().unwrap(), too_long[0]);
    // The count starts again after each frame.
    let calm = "a stray line\n".repeat(10_000) + &block("{}");
    assert_eq!(headed(10, calm.repeat(4)).len(), 40_004);
}

#[test]
fn a_line_rewritten_in_place_does_not_hide_the_header() {
    assert_eq!(
        headed(10, "10%\r20%\rContent-Length: 2\r\r\n\r\r\n{}"),
        ["stray 10%\r20%", "body {}"]
    );
    assert_eq!(headed(10, "10%\r20%\r\n"), ["stray 10%\r20%"]);
    assert_eq!(headed(10, "\rContent-Length: 2\n\n{}"), ["body {}"]);
    assert_eq!(
        headed(10, b"\xef\xbb\xbf  Content-Length: 2\n\n{}"),
        ["body {}"]
    );
}

#[test]
fn a_peer_with_headers_is_noticed_by_one_that_reads_lines() {
    let mismatch = "Mismatch { expected: Lines }";
    assert_eq!(lines(100, block("{}")), [mismatch]);
    assert_eq!(
        lines(100, "[INFO] hello\ncontent-length:5\r\n"),
        ["body [INFO] hello", mismatch]
    );
    // It is told at once: the peer may be waiting, and no line end follows its body.
    let mut rest: &[u8] = b"Content-Length: 2\r\n\r\n{}";
    let mut reader = FrameReader::new(Framing::Lines, 100);
    assert!(reader.next(&mut rest).is_err());
    assert_eq!(rest, b"\r\n{}");
    // A peer that has sent a message in a line is only talking about headers.
    assert_eq!(
        lines(100, "{}\nContent-Length: 2\n")[1],
        "body Content-Length: 2"
    );
    let long = format!("{{\"x\":\"{}\"}}\nContent-Length: 2\n", "x".repeat(100));
    assert_eq!(lines(100, long)[1], "body Content-Length: 2");
    assert_eq!(lines(100, "Content-Length: two\n").len(), 1);
}

#[test]
fn a_peer_with_lines_is_noticed_by_one_that_reads_headers() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1}\n";
    let mismatch = "Mismatch { expected: ContentLength }";
    assert_eq!(headed(100, format!("hi\n{line}")), ["stray hi", mismatch]);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"x\":\"{}", "x".repeat(100_000));
    assert_eq!(headed(100, long), [mismatch]);
    let later = headed(100, block("{}") + line);
    assert_eq!(later[1], format!("stray {}", line.trim_end()));
    assert_eq!(headed(100, "{\"level\":\"info\"}\n").len(), 1);
}

fn unmarked(text: &[u8]) -> Frame<'_> {
    let marked = false;
    Frame::Body { text, marked }
}

#[test]
fn what_is_taken_off_a_text_is_told_unless_it_is_blank() {
    for (line, marked) in [
        ("{}\n", false),
        (" \t{} \r\n", false),
        ("\u{feff}{}\n", true),
        ("{}\0\n", true),
    ] {
        let mut reader = FrameReader::new(Framing::Lines, 100);
        let frame = reader.next(&mut line.as_bytes()).unwrap();
        assert_eq!(
            frame,
            Some(Frame::Body {
                text: b"{}",
                marked
            }),
            "{line:?}"
        );
    }
}

#[test]
fn a_large_frame_is_read_in_linear_time() {
    let text = format!("{{\"x\":\"{}\"}}", "x".repeat(4 << 20));
    for (framing, stream) in [
        (Framing::Lines, format!("{text}\n")),
        (Framing::ContentLength, block(&text)),
    ] {
        let mut input = Pieces::new(stream.as_bytes(), 4096, 4096);
        let mut reader = FrameReader::new(framing, text.len());
        let frame = reader.next(&mut input).unwrap();
        assert_eq!(frame, Some(unmarked(text.as_bytes())));
        assert!(reader.buffer.capacity() <= text.len() + 2);
        // Each piece is fetched once; a few fetches more come from the growing buffer.
        assert!(input.fills < stream.len() / 4096 + 64, "{}", input.fills);
        // The memory goes back before the reader waits for the next frame.
        assert_eq!(reader.next(&mut input).unwrap(), None);
        assert!(reader.buffer.capacity() <= KEPT);
    }
}

#[test]
fn a_failed_read_is_told_with_its_source() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    for (framing, start) in [
        (Framing::Lines, "{"),
        (Framing::Lines, "{too long"),
        (Framing::ContentLength, "Content-"),
        (Framing::ContentLength, "Content-Length: 3\n\n{"),
        (Framing::ContentLength, "Content-Length: 30\n\n{too long"),
    ] {
        let mut input = BufReader::new(start.as_bytes().chain(Broken));
        let error = FrameReader::new(framing, 4).next(&mut input).unwrap_err();
        let FrameError::Io(source) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(source.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(error.to_string(), "reading from the peer failed");
    }
}

#[test]
fn an_error_names_what_was_expected_and_what_came() {
    let error = FrameError::Mismatch {
        expected: Framing::Lines,
    };
    assert_eq!(
        error.to_string(),
        "expected newline-delimited frames, but the peer sends `Content-Length` ones: set that framing"
    );
}

fn write(framing: Framing, body: &str) -> Result<Encoded, BreaksFraming> {
    let mut writer = FrameWriter::new(framing, usize::MAX);
    writer.write_all(body.as_bytes()).unwrap();
    writer.finish()
}

#[test]
fn what_is_written_is_read_back() {
    let bodies = [
        "{}".to_owned(),
        "[1,2]".to_owned(),
        r#"{"text":"\n\r\u0000 Content-Length: 5\r\n\r\n  é","a b":" "}"#.to_owned(),
        format!("{{\"x\":\"{}\"}}", "é".repeat(100_000)),
    ];
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut stream = Vec::new();
        for body in &bodies {
            let encoded = write(framing, body).unwrap();
            assert_eq!(encoded.as_bytes().len(), encoded.len());
            stream.extend_from_slice(encoded.as_bytes());
        }
        let mut reader = FrameReader::new(framing, 1 << 20);
        let mut input = stream.as_slice();
        for body in &bodies {
            let frame = reader.next(&mut input).unwrap();
            assert_eq!(frame, Some(unmarked(body.as_bytes())));
        }
        assert_eq!(reader.next(&mut input).unwrap(), None);
    }
}

#[test]
fn a_frame_is_exactly_its_header_or_line_end_and_its_body() {
    assert_eq!(write(Framing::Lines, "{}").unwrap().as_bytes(), b"{}\n");
    for len in [0, 9, 10, 12_345] {
        let body = "x".repeat(len);
        let encoded = write(Framing::ContentLength, &body).unwrap();
        assert_eq!(encoded.as_bytes(), block(&body).as_bytes());
    }
    let mut room = [b'.'; write::HEADER_ROOM];
    assert_eq!(write::put_header(&mut room, usize::MAX), 0);
}

#[test]
fn white_space_outside_strings_is_not_sent_when_it_breaks_lines() {
    let pretty = "{\r\n\t\"a b\": \" \\\" \\\\\",\n  \"c\": [ 1, 2 ]\n}\n";
    let compact = r#"{"a b":" \" \\","c":[1,2]}"#;
    let encoded = write(Framing::Lines, pretty).unwrap();
    assert_eq!(encoded.as_bytes(), format!("{compact}\n").as_bytes());
    let encoded = write(Framing::ContentLength, pretty).unwrap();
    assert_eq!(encoded.as_bytes(), block(compact).as_bytes());
}

#[test]
fn a_control_byte_inside_a_string_is_refused() {
    for byte in 0..0x20 {
        let body = format!("{{\"a\": \"x{}y\"}}", char::from(byte));
        for framing in [Framing::Lines, Framing::ContentLength] {
            assert_eq!(write(framing, &body).unwrap_err(), BreaksFraming);
        }
    }
}

#[test]
fn the_writer_stops_at_its_limit_and_remembers() {
    for framing in [Framing::Lines, Framing::ContentLength] {
        let mut writer = FrameWriter::new(framing, 10);
        writer.write_all(b"{\"a\":1}").unwrap();
        writer.write_all(b"   ").unwrap();
        assert!(!writer.over_limit());
        let error = writer.write_all(b" ").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(writer.over_limit());
        // What a serialiser writes after the piece that was refused would leave a hole.
        writer.truncate_body(20);
        assert_eq!(writer.len(), 10);
        assert!(writer.write_all(b"far too much").is_err());
        assert!(writer.write_all(b"").is_ok());
        writer.truncate_body(7);
        assert_eq!(writer.body(), b"{\"a\":1}");
        assert!(writer.finish().is_ok());
    }
    let mut writer = FrameWriter::new(Framing::Lines, 2);
    assert!(writer.write_all(b"{},").is_err());
    assert!(writer.write_all(b"{}").is_err());
    assert_eq!(writer.finish().unwrap_err(), BreaksFraming);
}
