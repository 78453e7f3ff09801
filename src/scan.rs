//! Finds out whose message a text is when the text is too large to keep or does not parse.
//!
//! Takes the text in pieces of any size and keeps next to nothing of it: a depth, the name of the
//! member it is in, the text of an `id`. Gives one [`Sighting`] per message object. A member counts
//! only at the depth of a message's own members, wherever it stands among them, so that an `id`
//! inside a result or inside a string is never taken for the message's. Malformed text gives what
//! can be known of it; no text makes the scanner fail.

use serde_json::value::RawValue;

/// What is known of one message whose text is too large or does not parse.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sighting {
    /// The `id` as it was written, if it is a complete scalar of at most 64 bytes.
    pub(crate) id: Option<String>,
    pub(crate) method: bool,
    pub(crate) jsonrpc: bool,
    pub(crate) result: bool,
    pub(crate) error: bool,
}

/// The state between two pieces of a text.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// How many brackets and braces are open. Their kinds are not kept: that would take memory by
    /// depth, and a text which mixes them up is beyond certainty anyway.
    depth: u64,
    /// The depth of the open message's members: 1, or 2 in an array.
    base: u64,
    open: Option<Sighting>,
    place: Place,
    in_string: bool,
    escaped: bool,
    capture: Capture,
    done: Vec<Sighting>,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            let used = if self.in_string {
                self.string(rest)
            } else if self.depth > self.surface() {
                self.nested(rest)
            } else {
                self.member(first);
                1
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    /// Ends the text. A message that is still open is reported as far as it came.
    pub(crate) fn finish(mut self) -> Vec<Sighting> {
        if self.open.is_some() {
            // The text may have been cut inside the id, and the first digits of 12 are another
            // call's id. Only a closed string or a blank behind the value proves that it is whole.
            let whole = self.place == Place::IdEnded
                || (!self.in_string && self.capture.text.ends_with(b"\""));
            if !whole {
                self.capture.spoil();
            }
            self.close();
        }
        self.done
    }

    /// Skips to the end of a string, or as far as the bytes go.
    fn string(&mut self, bytes: &[u8]) -> usize {
        if self.escaped {
            self.escaped = false;
            self.capture.push(&bytes[..1]);
            return 1;
        }
        let Some(at) = find_either(bytes, b'"', b'\\') else {
            self.capture.push(bytes);
            return bytes.len();
        };
        self.capture.push(&bytes[..at]);
        if bytes[at] == b'\\' {
            self.escaped = true;
            self.capture.push(b"\\");
        } else {
            self.in_string = false;
            if self.place == Place::Key && self.among_members() {
                self.place = Place::Colon;
                self.capture.on = false;
            } else {
                self.capture.push(b"\"");
            }
        }
        at + 1
    }

    /// Skips what lies deeper than any member of a message, up to the next string or the way back.
    fn nested(&mut self, bytes: &[u8]) -> usize {
        let surface = self.surface();
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.in_string = true;
                    return at + 1;
                }
                b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == surface {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        bytes.len()
    }

    /// Takes one byte that stands between the members of a message, or outside any message.
    fn member(&mut self, byte: u8) {
        match byte {
            b'"' => self.quote(),
            b'{' | b'[' => self.descend(byte),
            b'}' | b']' => {
                if self.open.is_some() {
                    self.close();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b',' if self.open.is_some() => self.end_value(),
            b':' if self.place == Place::Colon => self.begin_value(),
            b' ' | b'\t' | b'\n' | b'\r' => {
                if self.place == Place::Id && !self.capture.text.is_empty() {
                    self.place = Place::IdEnded;
                }
            }
            _ => match self.place {
                Place::Id => self.capture.push(&[byte]),
                Place::IdEnded => self.capture.spoil(),
                Place::Method => {
                    // A method that is null is none, as in a message that parses.
                    if let Some(open) = self.open.as_mut().filter(|_| byte == b'n') {
                        open.method = false;
                    }
                    self.place = Place::Value;
                }
                Place::Key | Place::Colon | Place::Value => {}
            },
        }
    }

    fn quote(&mut self) {
        if self.open.is_none() {
            // In an array a quote opens a string. Outside of everything it is part of some log
            // line, and taking it for a string would hide the message behind it.
            self.in_string = self.depth > 0;
            return;
        }
        self.in_string = true;
        match self.place {
            Place::Key | Place::Colon => {
                self.place = Place::Key;
                self.capture.start();
            }
            Place::Id => self.capture.push(b"\""),
            Place::IdEnded => self.capture.spoil(),
            Place::Method => self.place = Place::Value,
            Place::Value => {}
        }
    }

    fn descend(&mut self, byte: u8) {
        self.depth = self.depth.saturating_add(1);
        if self.open.is_some() {
            // No id is an object or an array.
            self.capture.spoil();
        } else if byte == b'{' {
            self.open = Some(Sighting::default());
            self.base = self.depth;
            self.place = Place::Key;
        }
    }

    fn begin_value(&mut self) {
        self.place = Place::Value;
        let Some(open) = &mut self.open else { return };
        match self.capture.name().as_deref() {
            Some("id") => {
                open.id = None;
                self.place = Place::Id;
                self.capture.start();
            }
            Some("method") => {
                open.method = true;
                self.place = Place::Method;
            }
            Some("jsonrpc") => open.jsonrpc = true,
            Some("result") => open.result = true,
            Some("error") => open.error = true,
            _ => {}
        }
    }

    fn end_value(&mut self) {
        if matches!(self.place, Place::Id | Place::IdEnded) {
            let id = self.capture.scalar();
            if let Some(open) = &mut self.open {
                open.id = id;
            }
        }
        self.capture.on = false;
        self.place = Place::Key;
    }

    fn close(&mut self) {
        self.end_value();
        if let Some(sighting) = self.open.take() {
            if self.done.len() < MAX_SIGHTINGS {
                self.done.push(sighting);
            }
        }
    }

    fn among_members(&self) -> bool {
        self.open.is_some() && self.depth == self.base
    }

    /// The depth down to which every byte is looked at: the members of the open message, or the
    /// elements of an array in which the next message may open.
    fn surface(&self) -> u64 {
        if self.open.is_some() { self.base } else { 1 }
    }
}

/// Where among the members of the open message the scanner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Before a name, or in it.
    #[default]
    Key,
    /// After a name.
    Colon,
    /// In a value that is of no interest.
    Value,
    /// In the value of an `id`.
    Id,
    /// Before the value of a `method`.
    Method,
    /// In the blanks after the value of an `id`.
    IdEnded,
}

/// The text of one name or one id.
#[derive(Debug, Default)]
struct Capture {
    on: bool,
    spoiled: bool,
    text: Vec<u8>,
}

impl Capture {
    fn start(&mut self) {
        self.on = true;
        self.spoiled = false;
        self.text.clear();
    }

    fn push(&mut self, bytes: &[u8]) {
        if !self.on {
            return;
        }
        if self.text.len().saturating_add(bytes.len()) > MAX_CAPTURE {
            self.spoil();
        } else {
            self.text.extend_from_slice(bytes);
        }
    }

    fn spoil(&mut self) {
        self.on = false;
        self.spoiled = true;
    }

    fn text(&self) -> Option<&str> {
        let text = (!self.spoiled).then_some(&self.text)?;
        std::str::from_utf8(text).ok()
    }

    /// A member's name with its escapes resolved: `"\u0069d"` is an odd spelling, but it is an
    /// `id`.
    fn name(&self) -> Option<String> {
        let text = self.text()?;
        if text.contains('\\') {
            serde_json::from_str(&format!("\"{text}\"")).ok()
        } else {
            Some(text.to_owned())
        }
    }

    fn scalar(&self) -> Option<String> {
        let text = self.text()?;
        serde_json::from_str::<&RawValue>(text).ok()?;
        Some(text.to_owned())
    }
}

/// Finds the first of two bytes, a block at a time: a block is compared as a whole, without a
/// branch per byte.
pub(crate) fn find_either(bytes: &[u8], one: u8, other: u8) -> Option<usize> {
    let mut skipped = 0;
    for block in bytes.chunks_exact(32) {
        let hit = block
            .iter()
            .fold(false, |hit, &byte| hit | (byte == one) | (byte == other));
        if hit {
            break;
        }
        skipped += block.len();
    }
    let at = bytes[skipped..]
        .iter()
        .position(|&byte| byte == one || byte == other)?;
    Some(skipped + at)
}

/// Messages reported of one text, as many as one array may have; it bounds the memory.
const MAX_SIGHTINGS: usize = 1 << 16;

/// Bytes kept of a name or an id. The longest name looked for takes 42 when every letter is
/// escaped.
const MAX_CAPTURE: usize = 64;

#[cfg(test)]
mod tests;
