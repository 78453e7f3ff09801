//! One JSON text → one frame.
//!
//! The text is collected in one buffer, behind room for its header, so that the finished frame has
//! not been copied and goes out with one write. Whatever the caller serialises, the frame has no
//! raw line end in it.

use super::{FIRST_CAPACITY, Framing};
use crate::scan::find_either;
use std::io::{self, Write};

/// Collects the JSON text of one frame, then makes the frame of it in place.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    framing: Framing,
    limit: usize,
    /// The room for the header, then the body.
    bytes: Vec<u8>,
    over_limit: bool,
}

impl FrameWriter {
    /// `limit` counts the bytes of the body.
    pub(crate) fn new(framing: Framing, limit: usize) -> Self {
        let mut bytes = Vec::with_capacity(FIRST_CAPACITY);
        bytes.resize(header_room(framing), 0);
        Self {
            framing,
            limit,
            bytes,
            over_limit: false,
        }
    }

    /// Whether a write was refused, and the body lacks it, because it would have gone over the
    /// limit.
    pub(crate) fn over_limit(&self) -> bool {
        self.over_limit
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[header_room(self.framing)..]
    }

    pub(crate) fn len(&self) -> usize {
        self.body().len()
    }

    /// Takes back everything behind the first `len` bytes, and with it a write that was refused.
    pub(crate) fn truncate_body(&mut self, len: usize) {
        let end = header_room(self.framing).saturating_add(len);
        self.bytes.truncate(end);
        self.over_limit = false;
    }

    pub(crate) fn finish(mut self) -> Result<Encoded, BreaksFraming> {
        if self.over_limit {
            return Err(BreaksFraming);
        }
        let room = header_room(self.framing);
        if has_below(&self.bytes[room..], 0x21) {
            // JSON that the caller had in raw form may have blanks in it, or stand on several
            // lines.
            let len = compact(&mut self.bytes[room..]);
            self.bytes.truncate(room + len);
            if has_below(&self.bytes[room..], 0x20) {
                return Err(BreaksFraming);
            }
        }
        let start = match self.framing {
            Framing::Lines => {
                self.bytes.push(b'\n');
                0
            }
            Framing::ContentLength => {
                let (room, body) = self.bytes.split_at_mut(room);
                put_header(room, body.len())
            }
        };
        Ok(Encoded {
            bytes: self.bytes,
            start,
        })
    }
}

impl Write for FrameWriter {
    /// Takes all of `bytes`, or nothing and remembers it: what follows a refused piece is refused
    /// too, so that no serialiser that swallows errors leaves a text with a hole in it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.over_limit || bytes.len() > self.limit.saturating_sub(self.len()) {
            self.over_limit = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // The byte more is for the line feed: without it, the last push could move a whole frame.
        self.bytes.reserve(bytes.len().saturating_add(1));
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of one frame, as they go on the wire.
#[derive(Debug)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    start: usize,
}

impl Encoded {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.as_bytes().len()
    }
}

/// The text is not whole, or has a raw control byte inside a string, which no JSON parser accepts
/// and which could end the frame early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text cannot be sent as one frame")]
pub(crate) struct BreaksFraming;

fn has_below(text: &[u8], bound: u8) -> bool {
    // Without an early return, so that it compiles to wide comparisons.
    text.iter().fold(false, |any, &byte| any | (byte < bound))
}

/// Moves a JSON text together without the white space outside its strings; gives its new length.
fn compact(text: &mut [u8]) -> usize {
    let (mut len, mut at) = (0, 0);
    while let Some(&byte) = text.get(at) {
        let skipped = match byte {
            b'"' => string_len(&text[at..]),
            _ => 1,
        };
        if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            text.copy_within(at..at + skipped, len);
            len += skipped;
        }
        at += skipped;
    }
    len
}

/// The length of the string that the text begins with, its quotes included.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = find_either(&text[at..], b'"', b'\\') {
        at += found + 1;
        if text[at - 1] == b'"' {
            return at;
        }
        // What is escaped ends nothing.
        at = (at + 1).min(text.len());
    }
    text.len()
}

/// Writes the header for a body of `length` bytes at the end of its room; gives where it starts.
pub(super) fn put_header(room: &mut [u8], length: usize) -> usize {
    let mut header = [0; HEADER_ROOM];
    let mut left = header.as_mut_slice();
    // It cannot fail: the room holds the largest number there is.
    let _ = write!(left, "Content-Length: {length}\r\n\r\n");
    let used = HEADER_ROOM - left.len();
    let start = room.len().saturating_sub(used);
    room[start..].copy_from_slice(&header[..used]);
    start
}

fn header_room(framing: Framing) -> usize {
    match framing {
        Framing::Lines => 0,
        Framing::ContentLength => HEADER_ROOM,
    }
}

/// `Content-Length: `, the 20 digits of the largest length, and two line ends.
pub(super) const HEADER_ROOM: usize = 16 + 20 + 4;
