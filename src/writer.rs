//! The writer thread: from the outgoing queue to the peer.
//!
//! Takes what the queue gives and writes each frame whole before the next, so that frames never
//! interleave. It ends with the queue or with the pipe, which it drops: that tells the peer of the
//! end.

use std::io::Write;

use crate::link::Link;
use crate::sync::using;
use crate::sys::block_sigpipe;

/// Writes what the queue gives until the queue or the pipe ends.
pub(crate) fn write_frames(link: &Link, mut writer: Box<dyn Write + Send>) {
    block_sigpipe();
    while let Some(out) = link.outbox.take() {
        let written = using(|| {
            // One `write` for nearly every frame; a larger one shows on its way that it is read.
            for piece in out.frame.as_bytes().chunks(PIECE) {
                writer.write_all(piece)?;
                link.outbox.note_progress();
            }
            writer.flush()
        });
        if let Err(error) = written {
            drop(writer);
            return link.input_ended(error, out.call);
        }
    }
}

// A pipe's own capacity on Linux, which a larger frame fills several times.
const PIECE: usize = 64 << 10;
