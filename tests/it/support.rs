//! What the tests share: a peer by script over in-memory pairs, and a guard that only a hang
//! reaches.
#![allow(unreachable_pub, reason = "whatever the other files need")]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use landline::{Call, CallOptions, Connection, Options};
use serde_json::{Value, json};

/// Far beyond anything that a test waits for, on the slowest machine: only a hang gets here.
pub const HANG: Duration = Duration::from_secs(60);

/// The other side of a connection, played by the test.
pub struct Script {
    pub input: BufReader<UnixStream>,
    pub output: UnixStream,
}

/// Connects to a scripted peer.
pub fn pair(options: &Options) -> (Connection, Script) {
    let (ours_out, peer_in) = UnixStream::pair().unwrap();
    let (peer_out, ours_in) = UnixStream::pair().unwrap();
    peer_in.set_read_timeout(Some(HANG)).unwrap();
    peer_out.set_write_timeout(Some(HANG)).unwrap();
    let connection = options.connect(ours_in, ours_out).unwrap();
    (
        connection,
        Script {
            input: BufReader::new(peer_in),
            output: peer_out,
        },
    )
}

impl Script {
    /// The next line as it was written; `None` at the end of the input.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.input.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    /// The next message.
    pub fn recv(&mut self) -> Value {
        let line = self.line().expect("the connection ended its output");
        assert!(line.ends_with('\n') && !line.ends_with("\r\n"), "{line:?}");
        serde_json::from_str(&line).unwrap()
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.output.write_all(bytes.as_ref()).unwrap();
    }

    /// Writes one message on a line.
    pub fn send(&mut self, message: Value) {
        self.raw(format!("{message}\n"));
    }

    /// Answers a request with a result.
    pub fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Makes a call and answers it, then another, and gives all that was written before the second.
    /// When the first is answered, all that was sent to the connection before has been read, and
    /// whatever the reader writes in reply goes ahead of the second.
    pub fn fence(&mut self, connection: &Connection) -> Vec<Value> {
        let mut before = Vec::new();
        for _ in 0..2 {
            let call = connection.start("fence", ()).unwrap();
            let request = loop {
                match self.recv() {
                    message if message["method"] == "fence" => break message,
                    message => before.push(message),
                }
            };
            self.answer(&request, json!("passed"));
            assert_eq!(call.wait::<String>().unwrap(), "passed");
        }
        before
    }

    /// Stops reading in the middle of a request that fills every buffer: whatever is sent now stays
    /// in the queue.
    pub fn clog(&mut self, connection: &Connection) -> Call {
        let patient = CallOptions::new().timeout(Duration::MAX);
        let large = "x".repeat(4 << 20);
        let call = connection.start_with("clog", &patient, |_| [large]);
        // The first bytes are there: the writer has taken it.
        assert!(!self.input.fill_buf().unwrap().is_empty());
        call.unwrap()
    }

    /// Reads everything until the connection ends its output.
    pub fn rest(mut self) -> String {
        let mut rest = String::new();
        self.input.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// The methods of messages.
pub fn methods(messages: &[Value]) -> Vec<&str> {
    let methods = messages.iter().map(|message| message["method"].as_str());
    methods.map(|method| method.unwrap_or("none")).collect()
}

/// Runs what might hang on a thread of its own and fails if it does.
pub fn guarded<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    let thread = thread::spawn(move || drop(done.send(run())));
    match wait.recv_timeout(HANG) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the value was sent"),
        },
    }
}

/// Waits until something that no message tells is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < HANG, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
