//! Words of the child's, made fit to stand in an error text: what it wrote to stderr, stray lines
//! of its stdout, and the messages of its errors.
//!
//! Takes bytes or text as they came and gives text without terminal escapes and control characters.
//! The raw bytes have their own accessors elsewhere; nothing here is fit to be parsed.

use std::borrow::Cow;

/// Gives the text without terminal escape sequences and control characters; line ends and tabs
/// stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unwanted) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != ESCAPE {
            out.extend(Some(c).filter(|c| !is_unwanted(*c)));
            continue;
        }
        // The whole sequence goes: what is left of half of one would split the words around it.
        match chars.next() {
            Some('[') => {
                while chars
                    .next_if(|c| !('\u{40}'..='\u{7e}').contains(c))
                    .is_some()
                {}
            }
            Some(']') => while chars.next_if(|c| !matches!(*c, BELL | ESCAPE)).is_some() {},
            _ => continue,
        }
        // The sequence's last character, unless it is an escape that begins another one.
        chars.next_if(|c| *c != ESCAPE);
    }
    Cow::Owned(out)
}

/// As [`clean`], from bytes that need not be UTF-8.
pub fn clean_bytes(bytes: &[u8]) -> String {
    clean(&String::from_utf8_lossy(bytes)).into_owned()
}

/// The end of what a program wrote to stderr, as text that fits on a screen: without a line cut at
/// its beginning, unless that is all there is.
pub fn last_words(stderr: &[u8]) -> String {
    let (gone, end) = stderr.split_at(stderr.len().saturating_sub(SCREENFUL));
    match gone.last() {
        None | Some(b'\n') => clean_bytes(end),
        Some(_) => match whole_words(end) {
            b"" => clean_bytes(end),
            whole => clean_bytes(whole),
        },
    }
}

/// What is left of a text cut at its beginning without the line that was cut, or, of one line
/// alone, without the word that was cut.
pub(crate) fn whole_words(cut: &[u8]) -> &[u8] {
    let line_end = cut.iter().position(|byte| *byte == b'\n');
    let blank = || cut.iter().position(u8::is_ascii_whitespace);
    line_end
        .filter(|at| at + 1 < cut.len())
        .or_else(blank)
        .map_or(&[], |at| &cut[at + 1..])
}

fn is_unwanted(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
}

// In bytes; the whole tail has its own accessors elsewhere.
const SCREENFUL: usize = 1 << 10;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_go_whole_and_line_ends_stay() {
        assert_eq!(clean("plain é\n\ttext"), "plain é\n\ttext");
        assert_eq!(clean("bad s3cr\u{1b}[31m3t\u{1b}[0m\r\n"), "bad s3cr3t\n");
        assert_eq!(clean("a\u{1b}]0;title\u{7}b\u{1b}]0;t\u{1b}\\c"), "abc");
        assert_eq!(clean("a\u{1b}(\u{0}b\u{9b}c"), "abc");
    }

    #[test]
    fn a_sequence_cut_anywhere_is_survived() {
        let whole = "x\u{1b}[1;31mred\u{1b}]0;t\u{7}\u{1b}";
        for end in (0..=whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(!clean(&whole[..end]).contains(ESCAPE), "cut at {end}");
        }
    }

    #[test]
    fn a_text_cut_at_its_beginning_loses_what_was_cut() {
        for (cut, whole) in [
            ("cret\nFATAL: no key\n", "FATAL: no key\n"),
            ("cret\n", ""),
            ("cret is all of this line\n", "is all of this line\n"),
            ("cret is all of this line", "is all of this line"),
            ("cret", ""),
            ("\nwhole", "whole"),
            ("", ""),
        ] {
            assert_eq!(whole_words(cut.as_bytes()), whole.as_bytes(), "{cut:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        assert_eq!(clean_bytes(b"caf\xe9\0!"), "caf\u{fffd}!");
    }
}
