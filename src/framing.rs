//! Bytes ⇄ frames.
//!
//! [`FrameReader`] takes any `BufRead` and gives one frame at a time, in either of two framings;
//! [`FrameWriter`], in a file of its own, takes the pieces of one JSON text and gives the bytes of
//! one frame. Neither knows of messages.
//!
//! Invariants: memory is bounded by the limit whatever the peer sends, and grows by what has
//! arrived, not by what was announced; every byte is looked at a fixed number of times; what is
//! written is always exactly one frame.

mod write;

use crate::scan::{Scanner, Sighting, find_either};
use std::fmt;
use std::io::{self, BufRead, Read};
pub(crate) use write::{BreaksFraming, Encoded, FrameWriter};

/// How messages are told apart on a stream.
///
/// # Examples
///
/// ```
/// assert_eq!(landline::Framing::default(), landline::Framing::Lines);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Framing {
    /// One compact JSON text per line, ended by a line feed: the stdio transport of the Model
    /// Context Protocol, every revision.
    #[default]
    Lines,
    /// A `Content-Length` header before each text: the base protocol of the Language Server
    /// Protocol 3.17.
    ContentLength,
}

impl Framing {
    fn other(self) -> Self {
        match self {
            Self::Lines => Self::ContentLength,
            Self::ContentLength => Self::Lines,
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "newline-delimited",
            Self::ContentLength => "`Content-Length`",
        })
    }
}

/// Why a stream cannot be read any further. Each of these ends the connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The operating system failed to read.
    #[error("reading from the peer failed")]
    Io(#[source] io::Error),
    /// The peer announced a frame too large even to be skipped.
    #[error("a frame of {length} bytes was declared, over 16 times the limit of {limit}")]
    Declared {
        /// The declared length, in bytes.
        length: u64,
        /// The frame limit, in bytes.
        limit: u64,
    },
    /// A `Content-Length` that is no number, is beyond 64 bits, or contradicts the one before it.
    #[error("unusable length in the header {header:?}")]
    BadLength {
        /// The header line, at most its first 256 bytes.
        header: String,
    },
    /// A header block that ended without a `Content-Length`.
    #[error("no `Content-Length` beside the header {header:?}")]
    MissingLength {
        /// The header that was there, at most its first 256 bytes.
        header: String,
    },
    /// A header line or block, or the text between two frames, went on for too long.
    #[error("no frame within {limit} bytes of header or stray text")]
    HeaderTooLong {
        /// The limit that was reached, in bytes.
        limit: usize,
    },
    /// The peer speaks the other framing.
    #[error("expected {expected} frames, but the peer sends {} ones: set that framing", .expected.other())]
    Mismatch {
        /// The framing this side was told to speak.
        expected: Framing,
    },
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// One text, without what stood around it. Never empty in lines: an empty line is a keep-alive.
    Body {
        text: &'a [u8],
        /// Whether that was more than blanks: a byte order mark, or NULs.
        marked: bool,
    },
    /// A line, or a piece of it, outside any `Content-Length` frame.
    Stray(&'a [u8]),
    /// A frame over the limit. It was discarded, and the stream goes on behind it.
    Oversized {
        len: u64,
        head: &'a [u8],
        sightings: Vec<Sighting>,
    },
    /// The input ended inside a `Content-Length` frame or an oversized line.
    Cut {
        head: &'a [u8],
        sightings: Vec<Sighting>,
    },
}

/// Reads frames from any `BufRead`; the bytes of the latest frame live in it.
#[derive(Debug)]
pub(crate) struct FrameReader {
    framing: Framing,
    limit: usize,
    buffer: Vec<u8>,
    /// Whether the peer has proved that it speaks the expected framing; after that, nothing is a
    /// mismatch.
    proved: bool,
    block: Block,
}

impl FrameReader {
    /// `limit` counts the bytes of one frame without its header or line end.
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        Self {
            framing,
            limit,
            buffer: Vec::new(),
            proved: false,
            block: Block::default(),
        }
    }

    /// Blocks until the next frame; `None` is the end of the input.
    pub(crate) fn next<'a>(
        &'a mut self,
        input: &mut dyn BufRead,
    ) -> Result<Option<Frame<'a>>, FrameError> {
        let step = match self.framing {
            Framing::Lines => self.line(input)?,
            Framing::ContentLength => self.headed(input)?,
        };
        let buffer = self.buffer.as_slice();
        Ok(match step {
            Step::End => None,
            Step::Body => {
                let text = strip(buffer);
                let marked = text.len() < buffer.trim_ascii().len();
                Some(Frame::Body { text, marked })
            }
            Step::Stray(end) => Some(Frame::Stray(&buffer[..end])),
            Step::Oversized(len, sightings) => Some(Frame::Oversized {
                len,
                head: head(buffer),
                sightings,
            }),
            Step::Cut(sightings) => Some(Frame::Cut {
                head: head(buffer),
                sightings,
            }),
        })
    }

    fn line(&mut self, input: &mut dyn BufRead) -> Result<Step, FrameError> {
        loop {
            self.release();
            let stop = read_line(input, &mut self.buffer, self.limit)?;
            let text = strip(&self.buffer);
            // Both ends are looked at, since `[INFO] starting` proves nothing.
            self.proved |= matches!(text, [b'{', .., b'}'] | [b'[', .., b']']);
            if self.buffer.len() > self.limit {
                return self.oversized_line(input, stop);
            }
            if text.is_empty() {
                if stop == Stop::Input {
                    return Ok(Step::End);
                }
                continue;
            }
            if !self.proved && is_length_header(text) {
                return Err(FrameError::Mismatch {
                    expected: self.framing,
                });
            }
            return Ok(Step::Body);
        }
    }

    fn oversized_line(&mut self, input: &mut dyn BufRead, stop: Stop) -> Result<Step, FrameError> {
        let mut len = self.buffer.len() as u64;
        let last = self.buffer.last().copied();
        let mut scanner = self.scan_and_keep_head();
        let mut ended = stop == Stop::Newline;
        if stop == Stop::Full {
            let rest = discard(input, Some(b'\n'), &mut scanner)?;
            len += rest.len;
            ended = rest.found;
            // As in a line that was kept, the carriage return belongs to the line end.
            if rest.last.or(last) == Some(b'\r') {
                len -= 1;
            }
        }
        let sightings = scanner.finish();
        self.proved |= !sightings.is_empty();
        Ok(if ended {
            Step::Oversized(len, sightings)
        } else {
            Step::Cut(sightings)
        })
    }

    /// Reads lines until they have announced a frame or turned out to be stray. What a block has
    /// said so far is kept in `self.block`, because a stray line inside it is handed out before the
    /// block ends.
    fn headed(&mut self, input: &mut dyn BufRead) -> Result<Step, FrameError> {
        loop {
            self.release();
            let stop = read_line(input, &mut self.buffer, HEADER_LIMIT)?;
            let text = strip(&self.buffer);
            if !self.proved && text.starts_with(b"{") && contains(text, b"\"jsonrpc\"") {
                return Err(FrameError::Mismatch {
                    expected: self.framing,
                });
            }
            let size = self.buffer.len();
            let (before, header) = split_header(&self.buffer);
            if size > HEADER_LIMIT && header.is_some() {
                return Err(FrameError::HeaderTooLong {
                    limit: HEADER_LIMIT,
                });
            }
            if stop == Stop::Input && (header.is_some() || self.block.is_open()) {
                // The header may itself be cut short, so its number is not to be believed.
                self.block = Block::default();
                return Ok(Step::Cut(Vec::new()));
            }
            if text.is_empty() {
                if stop == Stop::Input {
                    return Ok(Step::End);
                }
                if self.block.is_open() {
                    return self.body(input);
                }
                continue;
            }
            match header {
                Some(header) => {
                    self.block.take(header)?;
                    self.block.charge(size)?;
                    if before > 0 {
                        return Ok(Step::Stray(before));
                    }
                }
                None => {
                    self.block.charge(size)?;
                    return Ok(Step::Stray(size));
                }
            }
        }
    }

    /// Reads the body that the block before it has announced.
    fn body(&mut self, input: &mut dyn BufRead) -> Result<Step, FrameError> {
        let length = std::mem::take(&mut self.block).length()?;
        self.proved = true;
        self.buffer.clear();
        let limit = self.limit as u64;
        if length > limit {
            if length > limit.saturating_mul(DECLARED_FACTOR) {
                return Err(FrameError::Declared { length, limit });
            }
            read_exactly(input, &mut self.buffer, length.min(HEAD as u64))?;
            let mut scanner = self.scan_and_keep_head();
            let left = length.saturating_sub(self.buffer.len() as u64);
            let rest = discard(&mut input.take(left), None, &mut scanner)?;
            let sightings = scanner.finish();
            return Ok(if rest.len == left {
                Step::Oversized(length, sightings)
            } else {
                Step::Cut(sightings)
            });
        }
        if read_exactly(input, &mut self.buffer, length)? {
            return Ok(Step::Body);
        }
        let scanner = self.scan_and_keep_head();
        Ok(Step::Cut(scanner.finish()))
    }

    /// Forgets the frame that was handed out, and its memory if that frame was large.
    fn release(&mut self) {
        self.buffer.clear();
        if self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
        }
    }

    /// Gives what has been read to a scanner before it is thrown away; what follows may be endless.
    fn scan_and_keep_head(&mut self) -> Scanner {
        let mut scanner = Scanner::new();
        scanner.feed(&self.buffer);
        self.buffer.truncate(HEAD);
        self.buffer.shrink_to(KEPT);
        scanner
    }
}

/// What was read, before it borrows the buffer.
#[derive(Debug)]
enum Step {
    End,
    Body,
    /// So many bytes of the buffer.
    Stray(usize),
    Oversized(u64, Vec<Sighting>),
    Cut(Vec<Sighting>),
}

/// What the lines since the last frame have said.
#[derive(Debug, Default)]
struct Block {
    length: Option<u64>,
    content_type: Option<String>,
    size: usize,
    stray: usize,
}

impl Block {
    fn is_open(&self) -> bool {
        self.length.is_some() || self.content_type.is_some()
    }

    fn take(&mut self, header: Header<'_>) -> Result<(), FrameError> {
        match header.name {
            // The charset is not looked at: every peer in the field writes UTF-8, whatever it says.
            Name::Type => self.content_type = Some(quote(header.line)),
            Name::Length => {
                let length = header.number().filter(|number| {
                    // A repeated header is harmless as long as both say the same.
                    self.length.is_none_or(|before| before == *number)
                });
                self.length = Some(length.ok_or_else(|| FrameError::BadLength {
                    header: quote(header.line),
                })?);
            }
        }
        Ok(())
    }

    /// Counts a line against the limit of the block, or of the text before it.
    fn charge(&mut self, size: usize) -> Result<(), FrameError> {
        let (count, limit) = if self.is_open() {
            (&mut self.size, HEADER_LIMIT)
        } else {
            (&mut self.stray, STRAY_LIMIT)
        };
        *count = count.saturating_add(size);
        if *count > limit {
            return Err(FrameError::HeaderTooLong { limit });
        }
        Ok(())
    }

    fn length(self) -> Result<u64, FrameError> {
        self.length.ok_or_else(|| FrameError::MissingLength {
            header: self.content_type.unwrap_or_default(),
        })
    }
}

/// A header that frames a body; all others are stray text here.
#[derive(Debug, Clone, Copy)]
struct Header<'a> {
    name: Name,
    value: &'a [u8],
    line: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Length,
    Type,
}

impl<'a> Header<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let line = strip(line);
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = strip(&line[..colon]);
        let name = if name.eq_ignore_ascii_case(b"content-length") {
            Name::Length
        } else if name.eq_ignore_ascii_case(b"content-type") {
            Name::Type
        } else {
            return None;
        };
        let value = strip(&line[colon + 1..]);
        Some(Self { name, value, line })
    }

    fn number(&self) -> Option<u64> {
        // `parse` alone would take a sign.
        if !self.value.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(self.value).ok()?.parse().ok()
    }
}

/// Finds the header in a line, and how many bytes of stray text stand before it: a progress bar
/// that was rewritten in place leaves its last state and a carriage return in front of the next
/// line.
fn split_header(line: &[u8]) -> (usize, Option<Header<'_>>) {
    let end = line.trim_ascii_end().len();
    let inner = line[..end].iter().rposition(|&byte| byte == b'\r');
    match inner {
        Some(at) => (at, Header::parse(&line[at + 1..])),
        None => (0, Header::parse(line)),
    }
}

fn is_length_header(line: &[u8]) -> bool {
    Header::parse(line)
        .is_some_and(|header| header.name == Name::Length && header.number().is_some())
}

/// What ended the reading of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Newline,
    Input,
    /// The line is over the limit, and has not ended yet.
    Full,
}

/// Reads one line without its line feed and the carriage return before it. The buffer grows by
/// doubling as everywhere, but never beyond the limit and the two bytes of the line end.
fn read_line(
    input: &mut dyn BufRead,
    buffer: &mut Vec<u8>,
    limit: usize,
) -> Result<Stop, FrameError> {
    let most = limit.saturating_add(2);
    loop {
        let room = make_room(buffer, most, FIRST_CAPACITY);
        let got = (&mut *input)
            .take(room as u64)
            .read_until(b'\n', buffer)
            .map_err(FrameError::Io)?;
        let stop = if buffer.last() == Some(&b'\n') {
            buffer.pop();
            Stop::Newline
        } else if got < room {
            Stop::Input
        } else if buffer.len() == most {
            return Ok(Stop::Full);
        } else {
            continue;
        };
        if buffer.last() == Some(&b'\r') {
            buffer.pop();
        }
        return Ok(stop);
    }
}

/// Reads `length` bytes; false if the input ends before.
fn read_exactly(
    input: &mut dyn BufRead,
    buffer: &mut Vec<u8>,
    length: u64,
) -> Result<bool, FrameError> {
    let most = usize::try_from(length).unwrap_or(usize::MAX);
    while buffer.len() < most {
        let room = make_room(buffer, most, KEPT);
        let got = (&mut *input)
            .take(room as u64)
            .read_to_end(buffer)
            .map_err(FrameError::Io)?;
        if got < room {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Doubles a full buffer, within `first` and `most` bytes in all; gives the bytes that can be read
/// into it now.
fn make_room(buffer: &mut Vec<u8>, most: usize, first: usize) -> usize {
    let left = most.saturating_sub(buffer.len());
    if buffer.len() == buffer.capacity() {
        buffer.reserve_exact(buffer.len().max(first).min(left));
    }
    left.min(buffer.capacity() - buffer.len())
}

struct Discarded {
    /// The bytes before the stop byte.
    len: u64,
    last: Option<u8>,
    found: bool,
}

/// Scans and forgets what comes, up to a stop byte or the end of the input.
fn discard(
    input: &mut dyn BufRead,
    stop: Option<u8>,
    scanner: &mut Scanner,
) -> Result<Discarded, FrameError> {
    let (mut len, mut last) = (0_u64, None);
    loop {
        let (used, found) = match input.fill_buf() {
            Ok([]) => (0, false),
            Ok(bytes) => {
                let end = stop.and_then(|stop| find_either(bytes, stop, stop));
                let used = end.unwrap_or(bytes.len());
                scanner.feed(&bytes[..used]);
                last = bytes[..used].last().copied().or(last);
                (used, end.is_some())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(FrameError::Io(error)),
        };
        len = len.saturating_add(used as u64);
        input.consume(used + usize::from(found));
        if found || used == 0 {
            return Ok(Discarded { len, last, found });
        }
    }
}

/// Takes off what peers are known to put around a text: a byte order mark, blanks, carriage
/// returns, NULs.
fn strip(text: &[u8]) -> &[u8] {
    let mut text = text;
    loop {
        text = match text {
            [b' ' | b'\t' | b'\n' | b'\r' | 0, rest @ ..] => rest,
            [0xef, 0xbb, 0xbf, rest @ ..] => rest,
            [rest @ .., b' ' | b'\t' | b'\n' | b'\r' | 0] => rest,
            _ => return text,
        };
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

fn quote(line: &[u8]) -> String {
    String::from_utf8_lossy(head(line)).into_owned()
}

/// Bytes of one header line, and of one block. Real blocks have under 100.
const HEADER_LIMIT: usize = 8 * 1024;

/// Bytes of stray text between two frames. A peer that logs this much there is not speaking the
/// protocol.
const STRAY_LIMIT: usize = 256 * 1024;

/// A frame declared up to this many limits is skipped; waiting for a longer one to pass would be
/// waiting for nothing.
const DECLARED_FACTOR: u64 = 16;

/// Bytes kept of a frame that is not kept.
const HEAD: usize = 256;

/// Memory that may stay between frames, and that a declared length alone may allocate.
const KEPT: usize = 1024 * 1024;

/// Most messages fit; the few that do not cost some doublings.
const FIRST_CAPACITY: usize = 1024;

#[cfg(test)]
mod tests;
