//! Failures that a run of the example can hardly bring about, and what becomes of them.

use std::time::Duration;

use landline::mcp;

use super::print::{Failure, Line};

#[test]
fn a_limit_that_runs_out_between_rounds_is_a_timeout_like_any_other() {
    let error = mcp::Error::OutOfTime {
        method: "tools/call".into(),
        after: Duration::from_secs(2),
        rounds: 3,
    };
    let line = r#"{"error":{"kind":"timeout","message":"`tools/call` was abandoned after 3 rounds: they took longer than 2s","delivery":"answered"}}"#;
    assert_eq!(Line::Failed(Failure::from(error)).to_string(), line);
}
