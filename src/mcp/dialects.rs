//! The dialects of the protocol, as the connection below knows them: one for each stage of
//! connecting, and of each era.

use serde_json::json;

use crate::mcp::revision::Revision;
use crate::{Arrays, Dialect, OnCancel};

/// While the era is unknown: nothing is answered, since a modern client writes no answers, and an
/// error without an id answers the probe, as it is the only request.
pub(crate) fn probing() -> Dialect {
    modern().lone_errors(true)
}

/// A modern server asks for nothing, and is answered nothing (revision 2026-07-28).
pub(crate) fn modern() -> Dialect {
    common().answer_requests(false)
}

/// During the handshake an error without an id answers it, as it is the only request.
pub(crate) fn greeting() -> Dialect {
    legacy(None).lone_errors(true)
}

/// A legacy server may ask, is answered at once when it pings, and in one revision sends batches.
pub(crate) fn legacy(revision: Option<Revision>) -> Dialect {
    let dialect = common()
        .cancelled_requests(CANCELLED, "requestId", OnCancel::NoReply)
        .answer_at_once("ping", json!({}));
    if revision.is_some_and(Revision::has_batches) {
        dialect.arrays(Arrays::Batch)
    } else {
        dialect
    }
}

fn common() -> Dialect {
    Dialect::new()
        .cancel_calls(CANCELLED, "requestId")
        .route("notifications/progress", ["progressToken"])
}

const CANCELLED: &str = "notifications/cancelled";
