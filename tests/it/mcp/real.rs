//! What real servers were seen to do, played by scripts.

use std::time::Duration;

use landline::mcp::{Era, Options};
use serde_json::json;

use super::server::{connect, presentation};

/// The TypeScript SDK's (2.4.0): its answer to a probe does not bind it, so that it takes a
/// greeting that is behind it, and is legacy from then on.
#[test]
fn a_greeting_is_waited_for_where_the_probe_was_answered_late() {
    let options = Options::new("test", "1").probe_timeout(Duration::from_millis(1));
    let (client, script) = connect(&options, |script| {
        let probe = script.recv();
        let initialize = script.recv();
        script.answer(&probe, presentation(json!({})));
        // Longer than the probe's limit, measured in turns of the client.
        for turn in 0..100 {
            script.send(json!({"jsonrpc": "2.0", "id": turn, "method": "ping"}));
            assert_eq!(script.recv()["id"], turn);
        }
        let greeted = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "script", "version": "1"},
        });
        script.answer(&initialize, greeted);
        assert_eq!(script.recv()["method"], "notifications/initialized");
    });
    let client = client.unwrap();
    assert_eq!(client.server().era(), Era::Legacy);
    drop(client);
    assert_eq!(script.rest(), "");
}
