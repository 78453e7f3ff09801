//! What the peer sends unasked: its notifications and requests, and whoever takes them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use landline::{
    Arrays, CallOptions, Closed, Connection, Dialect, Handler, Incoming, Limit, Notification,
    OnCancel, Options, Peer, Request, RpcError, Survived, Update,
};
use serde_core::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::{Value, json};

use crate::support::{HANG, Script, eventually, guarded, methods, pair};

/// Tells the test of everything it is told; blocks on what is called `block` until the test lets it
/// go.
struct Recorder {
    events: Sender<String>,
    gate: Mutex<Receiver<()>>,
}

/// What a test sees of a [`Recorder`].
struct Record {
    events: Receiver<String>,
    gate: Sender<()>,
}

fn recorder() -> (Recorder, Record) {
    let ((events, seen), (gate, wait)) = (mpsc::channel(), mpsc::channel());
    let gate_of_handler = Mutex::new(wait);
    let recorder = Recorder {
        events,
        gate: gate_of_handler,
    };
    (recorder, Record { events: seen, gate })
}

impl Record {
    fn next(&self) -> String {
        self.events.recv_timeout(HANG).unwrap()
    }

    fn release(&self, times: usize) {
        (0..times).for_each(|_| self.gate.send(()).unwrap());
    }
}

impl Recorder {
    fn tell(&self, event: String, method: &str) {
        // The test may have seen enough.
        let _ = self.events.send(event);
        if method == "block" {
            let gate = self.gate.lock().unwrap();
            // An error is the end of the test.
            let _ = gate.recv();
        }
    }
}

impl Handler for Recorder {
    fn request(&self, _: &Peer, request: Request) -> Result<Value, RpcError> {
        self.tell(format!("request {}", request.method()), request.method());
        Ok(json!(request.method()))
    }

    fn notification(&self, _: &Peer, notification: Notification) {
        let params = notification.params().map_or("", |params| params.get());
        self.tell(
            format!("{} {params}", notification.method()),
            notification.method(),
        );
    }

    fn lagged(&self, _: &Peer, lost: u64) {
        self.tell(format!("lost {lost}"), "");
    }

    fn closed(&self, why: &Closed) {
        self.tell(format!("closed: {why}"), "");
    }
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn request(id: impl Into<Value>, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method})
}

fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result})
}

// Notifications.

#[test]
fn p08_notifications_come_in_wire_order_and_the_end_once_after_the_last() {
    guarded(|| {
        let (recorder, record) = recorder();
        let options = Options::new().handler(recorder);
        let (connection, mut script) = pair(&options);
        for n in 0..500 {
            script.send(notification("n", json!([n])));
        }
        // The last one ends with the output.
        script.raw(notification("n", json!([500])).to_string());
        drop(script);
        for n in 0..=500 {
            assert_eq!(record.next(), format!("n [{n}]"));
        }
        assert_eq!(record.next(), "closed: the peer closed its output");
        drop(connection);
        drop(options);
        // The handler itself is gone, and was told nothing more.
        assert_eq!(record.events.iter().next(), None);
    });
}

#[test]
fn a_close_on_this_side_is_the_end_that_the_handler_learns() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    script.fence(&connection);
    drop(script);
    let why = record.next();
    connection.close();
    assert_eq!(
        why, "closed: the peer closed its output",
        "the first cause is kept"
    );

    let (recorder, record) = self::recorder();
    let waits = Options::new().close_waits(Duration::ZERO, Duration::ZERO);
    let (connection, _script) = pair(&waits.handler(recorder));
    connection.close();
    let closed = "closed: the connection was closed on this side before it sent any message";
    assert!(closed.starts_with(&record.next()));
}

#[test]
fn p08_a_flood_delays_no_answer_and_its_gap_is_told_in_its_place_with_its_size() {
    const FLOOD: u64 = 20_000;
    const LIMIT: usize = 64 << 10;
    let (recorder, record) = recorder();
    let options = Options::new().handler(recorder).notifications_limit(LIMIT);
    let (connection, mut script) = pair(&options);
    script.send(notification("block", json!([])));
    assert_eq!(record.next(), "block []");
    let pad = "x".repeat(100);
    for n in 0..FLOOD {
        script.send(notification("n", json!([n, pad])));
    }
    // The handler is still blocked, and nothing else is.
    script.fence(&connection);
    let lost = connection.survived().dropped_notifications;
    let kept = FLOOD - lost;
    assert!(kept > 0 && kept as usize * pad.len() <= LIMIT, "{kept}");
    record.release(1);
    assert_eq!(record.next(), format!("lost {lost}"));
    for n in lost..FLOOD {
        assert_eq!(record.next(), format!("n [{n},\"{pad}\"]"));
    }
    let mut expected = Survived::default();
    expected.dropped_notifications = lost;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn notifications_that_nobody_takes_are_counted() {
    let (connection, mut script) = pair(&Options::new());
    for _ in 0..3 {
        script.send(notification("n", json!({})));
    }
    script.fence(&connection);
    let mut expected = Survived::default();
    expected.unhandled_notifications = 3;
    assert_eq!(connection.survived(), expected);
}

#[test]
fn a_notification_is_given_as_it_was_written() {
    let (give, take) = mpsc::channel();
    let options = Options::new().on_notification(move |_, notification| {
        let raw = notification.params().map(|params| params.get().to_owned());
        let decoded = notification.decode::<Value>().ok();
        give.send((notification.method().to_owned(), raw, decoded))
            .unwrap();
    });
    let (_connection, mut script) = pair(&options);
    script.raw(
        "{\"jsonrpc\":\"2.0\",\"method\":\"m\\n\",\"params\":{\"n\": 1.50, \"a\\ud800\":2}}\n",
    );
    script.raw("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}\n");
    let (method, raw, decoded) = take.recv_timeout(HANG).unwrap();
    assert_eq!(method, "m\n");
    assert_eq!(raw.unwrap(), r#"{"n": 1.50, "a\ud800":2}"#);
    assert_eq!(decoded, Some(json!({"n": 1.5, "a\u{fffd}": 2})));
    let (_, raw, decoded) = take.recv_timeout(HANG).unwrap();
    assert_eq!((raw, decoded), (None, Some(Value::Null)));
}

// Handlers that do what they like.

/// Calls, pings and requests of the peer go on.
fn all_goes_on(connection: &Connection, script: &mut Script) {
    script.send(request("p", "ping"));
    assert_eq!(script.recv(), result("p", json!({})));
    script.fence(connection);
    script.send(request("q", "ask"));
    assert_eq!(script.recv(), result("q", json!("ask")));
}

fn pinging() -> Options {
    Options::new().dialect(Dialect::new().answer_at_once("ping", json!({})))
}

#[test]
fn p07_a_handler_may_block_while_calls_and_pings_and_requests_go_on() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&pinging().handler(recorder));
    script.send(notification("block", json!([])));
    assert_eq!(record.next(), "block []");
    all_goes_on(&connection, &mut script);
    assert_eq!(record.next(), "request ask");
    record.release(1);
    script.send(notification("n", json!([])));
    assert_eq!(record.next(), "n []");

    // So may one that answers requests.
    script.send(request(1, "block"));
    assert_eq!(record.next(), "request block");
    all_goes_on(&connection, &mut script);
    script.send(notification("n", json!([2])));
    assert_eq!([record.next(), record.next()], ["request ask", "n [2]"]);
    record.release(1);
    assert_eq!(script.recv(), result(1, json!("block")));
    assert!(connection.survived().is_empty());
}

#[test]
fn p07_a_handler_may_call_back() {
    let (give, take) = mpsc::channel();
    let options = pinging()
        .on_notification(move |peer, notification| {
            let answer: Result<String, _> = peer.request("back", notification.method());
            assert!(answer.is_err(), "a scalar is refused");
            give.send(peer.request::<String>("back", [1]).unwrap())
                .unwrap();
        })
        .on_request(|peer, request| {
            if request.method() == "deep" {
                return Ok(peer.request("deeper", ()).unwrap());
            }
            Ok(json!(request.method()))
        });
    let (connection, mut script) = pair(&options);
    let outer = connection.start("outer", ()).unwrap();
    let outer_request = script.recv();
    script.send(notification("n", json!([])));
    let back = script.recv();
    assert_eq!(back["method"], "back");
    // Its handler waits for us; the peer first asks something itself.
    script.send(request(1, "deep"));
    let deeper = script.recv();
    assert_eq!(deeper["method"], "deeper");
    all_goes_on(&connection, &mut script);
    script.answer(&deeper, json!("down there"));
    assert_eq!(script.recv(), result(1, json!("down there")));
    script.answer(&back, json!("here"));
    assert_eq!(take.recv_timeout(HANG).unwrap(), "here");
    script.answer(&outer_request, json!(0));
    assert_eq!(outer.wait::<u8>().unwrap(), 0);
}

#[test]
fn p07_a_handler_may_panic() {
    struct Panicking(Mutex<Sender<()>>);
    impl Handler for Panicking {
        fn request(&self, _: &Peer, request: Request) -> Result<Value, RpcError> {
            if request.method() == "panic" {
                std::panic::resume_unwind(Box::new("request"));
            }
            Ok(json!(request.method()))
        }
        fn notification(&self, _: &Peer, _: Notification) {
            std::panic::resume_unwind(Box::new("notification"));
        }
        fn closed(&self, _: &Closed) {
            self.0.lock().unwrap().send(()).unwrap();
            std::panic::resume_unwind(Box::new("closed"));
        }
    }
    let (give, take) = mpsc::channel();
    let (connection, mut script) = pair(&pinging().handler(Panicking(Mutex::new(give))));
    for n in 1..=3 {
        script.send(notification("n", json!([n])));
        script.send(request(n, "panic"));
        let error = json!({"code": -32603, "message": "the handler failed"});
        assert_eq!(
            script.recv(),
            json!({"jsonrpc": "2.0", "id": n, "error": error})
        );
        all_goes_on(&connection, &mut script);
    }
    eventually("all panics are counted", || {
        connection.survived().handler_panics == 6
    });
    drop(script);
    take.recv_timeout(HANG).unwrap();
    eventually("the last panic is counted", || {
        connection.survived().handler_panics == 7
    });
}

#[test]
fn p07_a_handler_may_close_the_connection_under_a_call_and_calls_fail_from_then_on() {
    guarded(|| {
        for from_request in [false, true] {
            let (give, take) = mpsc::channel();
            let give_too = give.clone();
            let options = Options::new()
                .close_waits(Duration::ZERO, Duration::ZERO)
                .on_notification(move |peer, _| {
                    peer.close();
                    give.send(peer.request::<Value>("m", ()).unwrap_err().is_closed())
                        .unwrap();
                })
                .on_request(move |peer, request| {
                    peer.close();
                    give_too.send(request.is_cancelled()).unwrap();
                    Ok(Value::Null)
                });
            let (connection, mut script) = pair(&options);
            let call = connection.start("m", ()).unwrap();
            if from_request {
                script.send(request(1, "close"));
            } else {
                script.send(notification("close", json!([])));
            }
            assert!(call.wait::<Value>().unwrap_err().is_closed());
            assert!(take.recv_timeout(HANG).unwrap());
            assert!(
                connection
                    .request::<Value>("m", ())
                    .unwrap_err()
                    .is_closed()
            );
            connection.close();
            drop(connection);
            // Only the call, if it was taken before the end; no reply.
            let written = script.rest();
            assert!(
                written
                    .lines()
                    .all(|line| line.contains("\"id\":1,\"method\":\"m\"")),
                "{written}"
            );
        }
    });
}

// The reader waits for nobody.

#[test]
fn p06_a_writer_that_is_stuck_delays_nothing_that_comes_in() {
    const MANY: u64 = 100;
    let (recorder, record) = recorder();
    let dialect = routing().answer_at_once("ping", json!({}));
    let (connection, mut script) = pair(&Options::new().dialect(dialect).handler(recorder));
    let calls: Vec<_> = (0..MANY)
        .map(|_| connection.start("m", ()).unwrap())
        .collect();
    (0..MANY).for_each(|_| drop(script.recv()));
    let clog = script.clog(&connection);
    // From here on the peer reads nothing.
    for (n, call) in (0..).zip(&calls) {
        script.send(request(n, "ping"));
        script.send(notification("n", json!([n])));
        script.send(progress(call.id(), n));
        script.send(result(call.id(), json!(n)));
    }
    for (n, call) in (0..).zip(calls) {
        let mut seen = Vec::new();
        let answer = call.wait_with(|update| seen.push(number(update)));
        assert_eq!((answer.unwrap(), seen), (n, vec![n]));
        assert_eq!(record.next(), format!("n [{n}]"));
    }
    script.send(request("asked", "ask"));
    assert_eq!(record.next(), "request ask");
    script.send(result(clog.id(), json!("read in part")));
    assert_eq!(clog.wait::<String>().unwrap(), "read in part");
    // What it asked for meanwhile is there when it reads again.
    assert_eq!(script.recv()["method"], "clog");
    for n in 0..MANY {
        assert_eq!(script.recv(), result(n, json!({})));
    }
    assert_eq!(script.recv(), result("asked", json!("ask")));
    assert!(connection.survived().is_empty());
}

/// Tells on which thread it was decoded.
struct DecodedOn(thread::ThreadId);

impl<'de> Deserialize<'de> for DecodedOn {
    fn deserialize<D: Deserializer<'de>>(raw: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(raw)?;
        Ok(DecodedOn(thread::current().id()))
    }
}

#[test]
fn p06_no_code_of_the_user_runs_on_the_reader() {
    /// Tells the threads by name.
    struct Threads(Mutex<Sender<String>>);
    impl Threads {
        fn tell(&self, what: &str) {
            let name = thread::current().name().unwrap().to_owned();
            // The test has seen all that it waits for.
            let _ = self.0.lock().unwrap().send(format!("{what}: {name}"));
        }
    }
    impl Handler for Threads {
        fn request(&self, _: &Peer, _: Request) -> Result<Value, RpcError> {
            self.tell("request");
            Ok(Value::Null)
        }
        fn notification(&self, _: &Peer, _: Notification) {
            self.tell("notification");
        }
        fn closed(&self, _: &Closed) {
            self.tell("closed");
        }
    }
    let (give, take) = mpsc::channel();
    let options = Options::new()
        .dialect(routing())
        .handler(Threads(Mutex::new(give)));
    let (connection, mut script) = pair(&options);
    let told = || take.recv_timeout(HANG).unwrap();
    script.send(notification("n", json!([])));
    assert_eq!(told(), "notification: landline-dispatch");
    script.send(request(1, "m"));
    assert_eq!(told(), "request: landline-request");
    assert_eq!(script.recv(), result(1, Value::Null));

    let call = connection.start("m", ()).unwrap();
    let asked = script.recv();
    script.send(progress(call.id(), 1));
    script.answer(&asked, json!("here"));
    let me = thread::current().id();
    let answer = call.wait_with(|_| assert_eq!(thread::current().id(), me));
    assert_eq!(answer.map(|DecodedOn(thread)| thread).unwrap(), me);
    drop(script);
    assert_eq!(told(), "closed: landline-dispatch");
}

#[test]
fn p08_cancellations_and_progress_pass_a_handlers_full_queue() {
    let (give, events) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let notified = give.clone();
    let dialect = routing().cancelled_requests("cancel", "id", OnCancel::Reply { code: -32800 });
    let options = Options::new()
        .dialect(dialect)
        .notifications_limit(1 << 10)
        .on_notification(move |_, notification| {
            notified.send(notification.method().to_owned()).unwrap();
            // Until the test lets go of the other end.
            let _ = gate.lock().unwrap().recv();
        })
        .on_request(move |_, request| {
            give.send("started".into()).unwrap();
            eventually("it is cancelled", || request.is_cancelled());
            Ok(json!("cancelled"))
        });
    let (connection, mut script) = pair(&options);
    let next = || events.recv_timeout(HANG).unwrap();
    let mut call = connection.start("m", ()).unwrap();
    let asked = script.recv();
    script.send(request("long", "long"));
    assert_eq!(next(), "started");
    script.send(notification("first", json!([])));
    assert_eq!(next(), "first");
    for n in 0..1000 {
        script.send(notification("n", json!([n])));
    }
    script.fence(&connection);
    let lost = connection.survived().dropped_notifications;
    assert!((900..1000).contains(&lost), "{lost}");

    for n in 0..3 {
        script.send(progress(call.id(), n));
        assert_eq!(number(call.next_timeout(HANG).unwrap()), n);
    }
    script.send(notification("cancel", json!({"id": "long"})));
    assert_eq!(script.recv(), result("long", json!("cancelled")));
    script.answer(&asked, json!("here"));
    assert_eq!(call.wait::<String>().unwrap(), "here");
    // Neither took any other's place.
    assert_eq!(connection.survived().dropped_notifications, lost);
    drop(release);
    for _ in lost..1000 {
        assert_eq!(next(), "n");
    }
}

// Requests of the peer.

#[test]
fn a_request_starts_after_the_notifications_before_it_or_after_100_ms() {
    let (give, take) = mpsc::channel();
    let give_too = give.clone();
    let options = Options::new()
        .on_notification(move |_, _| {
            // Long enough for a request that does not wait to come first.
            thread::sleep(Duration::from_millis(10));
            give.send(("notification", Instant::now())).unwrap();
        })
        .on_request(move |_, _| {
            give_too.send(("request", Instant::now())).unwrap();
            Ok(Value::Null)
        });
    let (_connection, mut script) = pair(&options);
    for n in 0..10 {
        let sent = Instant::now();
        script.send(notification("n", json!([n])));
        script.send(request(n, "m"));
        let first = take.recv_timeout(HANG).unwrap();
        let second = take.recv_timeout(HANG).unwrap();
        let in_order = (first.0, second.0) == ("notification", "request");
        let patient = first.1 - sent >= Duration::from_millis(100);
        assert!(
            in_order || (first.0 == "request" && patient),
            "{first:?} {second:?}"
        );
        assert_eq!(script.recv(), result(n, Value::Null));
    }
}

#[test]
fn a_request_behind_a_blocked_notification_waits_for_100_ms_and_starts() {
    let (recorder, record) = recorder();
    let (_connection, mut script) = pair(&Options::new().handler(recorder));
    script.send(notification("block", json!([])));
    assert_eq!(record.next(), "block []");
    let sent = Instant::now();
    script.send(request(1, "m"));
    assert_eq!(record.next(), "request m");
    assert!(sent.elapsed() >= Duration::from_millis(100));
    assert_eq!(script.recv(), result(1, json!("m")));
    record.release(1);
}

#[test]
fn p09_sixteen_requests_run_at_once_and_64_wait_and_the_rest_are_refused() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (give, started) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let (counted, peak) = (running.clone(), most.clone());
    let options = Options::new().on_request(move |_, request| {
        peak.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        give.send(()).unwrap();
        // The test ends the channel: all are let go at once.
        let _ = wait.lock().unwrap().recv();
        counted.fetch_sub(1, Ordering::SeqCst);
        Ok(request.decode().unwrap())
    });
    let (connection, mut script) = pair(&options);
    for n in 0..100 {
        script.send(json!({"jsonrpc": "2.0", "id": n, "method": "m", "params": [n]}));
    }
    // Those beyond the bound are refused at once.
    let refused = script.fence(&connection);
    assert_eq!(refused.len(), 20);
    for (n, reply) in (80..).zip(&refused) {
        let error = json!({"code": -32603, "message": "too many requests are waiting"});
        assert_eq!(*reply, json!({"jsonrpc": "2.0", "id": n, "error": error}));
    }
    (0..16).for_each(|_| started.recv_timeout(HANG).unwrap());
    assert!(started.try_recv().is_err(), "no 17th has started");
    let mut expected = Survived::default();
    expected.refused_requests = 20;
    assert_eq!(connection.survived(), expected);
    drop(go);
    // None is left unanswered.
    let mut answered = HashSet::new();
    for _ in 0..80 {
        let reply = script.recv();
        assert_eq!(reply["result"][0], reply["id"]);
        answered.insert(reply["id"].as_u64().unwrap());
    }
    assert_eq!(answered, (0..80).collect());
    assert_eq!(most.load(Ordering::SeqCst), 16);
    assert_eq!(connection.survived(), expected);
}

#[test]
fn p09_requests_that_wait_are_bounded_in_bytes_as_well() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    for n in 0..16 {
        script.send(request(n, "block"));
        assert_eq!(record.next(), "request block");
    }
    let large = json!(["x".repeat(3 << 20)]);
    for n in 16..20 {
        script.send(json!({"jsonrpc": "2.0", "id": n, "method": "m", "params": large}));
    }
    // Two of them are under 8 MiB.
    let refused = script.fence(&connection);
    let ids: Vec<_> = refused
        .iter()
        .map(|reply| reply["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, [18, 19]);
    assert_eq!(connection.survived().refused_requests, 2);
    record.release(16);
    let ids: HashSet<_> = (0..18)
        .map(|_| script.recv()["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids, (0..18).collect());
}

#[test]
fn p09_a_request_over_the_frame_limit_is_refused_and_counted() {
    let (recorder, _record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder).frame_limit(1000));
    let params = ["x".repeat(2000)];
    script.send(json!({"jsonrpc": "2.0", "id": "big", "method": "m", "params": params}));
    let reply = script.recv();
    assert_eq!(
        (&reply["id"], &reply["error"]["code"]),
        (&json!("big"), &json!(-32600))
    );
    // A notification of that size is lost, and counted all the same.
    script.send(json!({"jsonrpc": "2.0", "method": "m", "params": params}));
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
    let survived = connection.survived();
    assert_eq!(
        (survived.oversized_frames, survived.refused_requests),
        (2, 1)
    );
}

#[test]
fn a_result_over_the_frame_limit_is_answered_with_an_error() {
    let options = Options::new()
        .frame_limit(1000)
        .on_request(|_, _| Ok(json!("x".repeat(2000))));
    let (_connection, mut script) = pair(&options);
    script.send(request(1, "m"));
    let error = json!({"code": -32603, "message": "the result is over the frame limit"});
    assert_eq!(
        script.recv(),
        json!({"jsonrpc": "2.0", "id": 1, "error": error})
    );
}

#[test]
fn requests_are_refused_where_nobody_serves_them() {
    let (connection, mut script) = pair(&Options::new());
    script.send(request(1, "roots/list"));
    let error = json!({"code": -32601, "message": "method not found: roots/list"});
    assert_eq!(
        script.recv(),
        json!({"jsonrpc": "2.0", "id": 1, "error": error})
    );
    assert_eq!(connection.survived().refused_requests, 1);

    // A closure for notifications alone serves no request, and the other way round.
    let (_connection, mut script) = pair(&Options::new().on_notification(|_, _| ()));
    script.send(request(1, "roots/list"));
    assert_eq!(script.recv()["error"]["code"], -32601);
}

#[test]
fn an_id_is_echoed_as_the_peer_wrote_it() {
    let (connection, mut script) = pair(&pinging());
    // The peer's ids and ours are two worlds: our own call 1 is pending meanwhile.
    let call = connection.start("m", ()).unwrap();
    let ours = script.recv();
    let ids = [
        "1",
        "0",
        "-5",
        "9223372036854775807",
        "\"1\"",
        "\"\"",
        r#""a\"b\\c\n""#,
        "\"é\"",
        "1.5",
        "1.0",
        "1e5",
        "123456789012345678901234567890",
        "null",
        r#""\ud800""#,
    ];
    for id in ids {
        for (method, outcome) in [
            ("ping", r#""result":{}"#),
            (
                "x",
                r#""error":{"code":-32601,"message":"method not found: x"}"#,
            ),
        ] {
            script.raw(format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n"
            ));
            let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n");
            assert_eq!(script.line().unwrap(), expected);
        }
    }
    script.answer(&ours, json!("ours"));
    assert_eq!(call.wait::<String>().unwrap(), "ours");
}

#[test]
fn a_dialect_without_responses_writes_none_and_counts() {
    let (recorder, record) = recorder();
    let dialect = Dialect::new()
        .answer_at_once("ping", json!({}))
        .answer_requests(false);
    let (connection, mut script) = pair(
        &Options::new()
            .dialect(dialect)
            .handler(recorder)
            .frame_limit(500),
    );
    script.send(request(1, "ping"));
    script.send(request(2, "m"));
    script.send(json!({"jsonrpc": "2.0", "id": 3, "method": "m", "params": ["x".repeat(600)]}));
    script.send(notification("n", json!([])));
    assert_eq!(
        record.next(),
        "n []",
        "the request before it was never handed over"
    );
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
    let survived = connection.survived();
    assert_eq!(
        (survived.unanswered_requests, survived.refused_requests),
        (3, 0)
    );
}

#[test]
fn a_request_tells_what_it_is() {
    let options = Options::new().on_request(|_, request| {
        assert_eq!(request.id().to_string(), "\"1\"");
        let raw = request.params().map(|params| params.get().to_owned());
        let n: Vec<u64> = request.decode()?;
        Ok(json!([request.method(), raw, n]))
    });
    let (_connection, mut script) = pair(&options);
    script.raw("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"m\",\"params\":[1, 2]}\n");
    assert_eq!(script.recv()["result"], json!(["m", "[1, 2]", [1, 2]]));
    script.raw("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"m\",\"params\":{}}\n");
    assert_eq!(script.recv()["error"]["code"], -32602);
}

// The peer withdraws its requests.

fn withdrawing(then: OnCancel) -> Options {
    Options::new().dialect(Dialect::new().cancelled_requests("cancel", "id", then))
}

#[test]
fn a_withdrawal_of_nothing_is_counted() {
    let (recorder, _record) = recorder();
    let (connection, mut script) = pair(&withdrawing(OnCancel::NoReply).handler(recorder));
    for params in [json!({"id": 7}), json!({"id": [7]}), json!({}), json!([7])] {
        script.send(notification("cancel", params));
    }
    script.send(request(7, "m"));
    assert_eq!(script.recv()["id"], 7);
    // Too late: it is answered.
    script.send(notification("cancel", json!({"id": 7})));
    script.fence(&connection);
    let survived = connection.survived();
    assert_eq!(survived.unknown_withdrawals, 5);
    assert_eq!(survived.unhandled_notifications, 0);
}

#[test]
fn a_request_withdrawn_before_it_starts_never_does() {
    let code = -32800;
    for then in [OnCancel::NoReply, OnCancel::Reply { code }] {
        let (recorder, record) = recorder();
        let (connection, mut script) = pair(&withdrawing(then).handler(recorder));
        for n in 0..16 {
            script.send(request(n, "block"));
            assert_eq!(record.next(), "request block");
        }
        script.send(request("w", "withdrawn"));
        script.send(request("16", "m"));
        script.send(notification("cancel", json!({"id": "w"})));
        // Of the ids, one is unknown, one of another form, one no id at all.
        script.send(notification("cancel", json!({"id": "unknown"})));
        script.send(notification("cancel", json!({"id": 16})));
        script.send(notification("cancel", json!({"id": {}})));
        script.send(notification("cancel", json!({})));
        // It is settled at once, though every thread is taken.
        let settled = script.fence(&connection);
        let unanswered = match then {
            OnCancel::NoReply => {
                assert_eq!(settled, [Value::Null; 0]);
                1
            }
            _ => {
                let error = json!({"code": code, "message": "the request was cancelled"});
                assert_eq!(
                    settled,
                    [json!({"jsonrpc": "2.0", "id": "w", "error": error})]
                );
                0
            }
        };
        assert_eq!(connection.survived().unanswered_requests, unanswered);
        record.release(16);
        let replies: Vec<Value> = (0..17).map(|_| script.recv()).collect();
        let of = |id: Value| replies.iter().find(|reply| reply["id"] == id).cloned();
        assert_eq!(of(json!("16")), Some(result("16", json!("m"))));
        assert_eq!(of(json!("w")), None);
        assert_eq!(record.next(), "request m");
        drop(connection);
        assert_eq!(script.rest(), "");
        assert_eq!(
            record
                .events
                .try_iter()
                .filter(|event| event.contains("withdrawn"))
                .count(),
            0
        );
    }
}

#[test]
fn what_came_before_an_answer_reaches_its_handler_though_the_caller_closes_at_once() {
    for _ in 0..50 {
        let (recorder, record) = recorder();
        let (connection, mut script) = pair(&Options::new().handler(recorder));
        let call = connection.start("m", ()).unwrap();
        for n in 0..10 {
            script.send(notification("n", json!([n])));
        }
        script.send(json!({"jsonrpc": "2.0", "id": call.id(), "result": null}));
        call.wait::<()>().unwrap();
        drop(script);
        connection.close();
        for n in 0..10 {
            assert_eq!(record.next(), format!("n [{n}]"));
        }
        assert!(record.next().starts_with("closed: "));
        assert_eq!(connection.survived().dropped_notifications, 0);
    }
}

#[test]
fn what_a_slow_handler_did_not_get_to_before_the_close_is_counted() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    script.send(notification("block", json!([])));
    assert_eq!(record.next(), "block []");
    for n in 0..10 {
        script.send(notification("n", json!([n])));
    }
    script.fence(&connection);
    drop(script);
    connection.close();
    record.release(1);
    assert!(record.next().starts_with("closed: "));
    assert_eq!(connection.survived().dropped_notifications, 10);
}

#[test]
fn a_request_withdrawn_while_it_runs_learns_of_it() {
    for then in [OnCancel::NoReply, OnCancel::Reply { code: -32800 }] {
        let (give, started) = mpsc::channel();
        let options = withdrawing(then).on_request(move |_, request| {
            give.send(request.is_cancelled()).unwrap();
            eventually("it is cancelled", || request.is_cancelled());
            Ok(json!("partial"))
        });
        let (connection, mut script) = pair(&options);
        script.send(request(5, "long"));
        assert!(!started.recv_timeout(HANG).unwrap());
        script.send(notification("cancel", json!({"id": 5})));
        if then == OnCancel::NoReply {
            eventually("it is counted", || {
                connection.survived().unanswered_requests == 1
            });
            assert_eq!(script.fence(&connection), [Value::Null; 0]);
        } else {
            assert_eq!(script.recv(), result(5, json!("partial")));
            assert_eq!(connection.survived().unanswered_requests, 0);
        }
        // Too late: it is answered.
        script.send(notification("cancel", json!({"id": 5})));
        script.fence(&connection);
        let expected = u64::from(then == OnCancel::NoReply);
        assert_eq!(connection.survived().unanswered_requests, expected);
    }
}

#[test]
fn the_end_of_the_connection_cancels_what_runs() {
    let (give, seen) = mpsc::channel();
    let options = Options::new().on_request(move |_, request| {
        give.send(()).unwrap();
        eventually("it is cancelled", || request.is_cancelled());
        give.send(()).unwrap();
        Ok(Value::Null)
    });
    let (connection, mut script) = pair(&options);
    script.send(request(5, "long"));
    seen.recv_timeout(HANG).unwrap();
    drop(script);
    seen.recv_timeout(HANG).unwrap();
    drop(connection);
}

// A program that runs its own loop.

fn incoming(connection: &Connection) -> String {
    match connection.next_incoming_timeout(HANG) {
        Some(Incoming::Notification(n)) => {
            let params = n.params().map_or("", |params| params.get());
            format!("{} {params}", n.method())
        }
        Some(Incoming::Lost(lost)) => format!("lost {lost}"),
        Some(Incoming::Closed(why)) => format!("closed: {why}"),
        Some(Incoming::Request(request, responder)) => {
            let name = format!("request {}", request.method());
            match request.method() {
                "drop" => drop(responder),
                "fail" => responder.answer(Err(RpcError::new(7, "failed"))),
                method => responder.answer(Ok(json!(method))),
            }
            name
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_takes_what_comes_from_a_queue_in_wire_order() {
    let (connection, mut script) = pair(&Options::new().queue_incoming());
    assert!(connection.try_next_incoming().is_none());
    let start = Instant::now();
    let limit = Duration::from_millis(30);
    assert!(connection.next_incoming_timeout(limit).is_none());
    assert!(start.elapsed() >= limit);

    script.send(notification("n", json!([1])));
    script.send(request("r", "m"));
    script.send(request(2, "fail"));
    script.send(notification("n", json!([2])));
    script.send(request(3, "drop"));
    let order = [
        "n [1]",
        "request m",
        "request fail",
        "n [2]",
        "request drop",
    ];
    assert_eq!(order.map(|_| incoming(&connection)), order);
    assert_eq!(script.recv(), result("r", json!("m")));
    assert_eq!(
        script.recv()["error"],
        json!({"code": 7, "message": "failed"})
    );
    let reply = script.recv();
    assert_eq!(
        (&reply["id"], &reply["error"]["code"]),
        (&json!(3), &json!(-32603))
    );

    script.send(notification("last", json!([])));
    drop(script);
    assert_eq!(incoming(&connection), "last []");
    for _ in 0..3 {
        assert_eq!(incoming(&connection), "closed: the peer closed its output");
    }
    assert!(matches!(
        connection.try_next_incoming(),
        Some(Incoming::Closed(_))
    ));
    assert!(matches!(connection.next_incoming(), Incoming::Closed(_)));
}

#[test]
fn a_gap_in_the_queue_stands_in_its_place_and_requests_are_never_in_it() {
    let (connection, mut script) = pair(&Options::new().queue_incoming().notifications_limit(1));
    for n in 0..5 {
        script.send(notification("n", json!([n])));
    }
    script.send(request(1, "m"));
    for n in 5..8 {
        script.send(notification("n", json!([n])));
    }
    script.fence(&connection);
    let expected = ["lost 5", "request m", "lost 2", "n [7]"];
    assert_eq!(expected.map(|_| incoming(&connection)), expected);
    assert!(connection.try_next_incoming().is_none());
    assert_eq!(connection.survived().dropped_notifications, 7);
}

#[test]
fn p09_a_queue_holds_64_requests_and_refuses_the_rest() {
    let (connection, mut script) = pair(&Options::new().queue_incoming());
    for n in 0..70 {
        script.send(request(n, "m"));
    }
    assert_eq!(script.fence(&connection).len(), 6);
    assert_eq!(connection.survived().refused_requests, 6);
    for n in 0..64 {
        assert_eq!(incoming(&connection), "request m");
        assert_eq!(script.recv(), result(n, json!("m")));
    }
    // There is room again.
    script.send(request(70, "m"));
    assert_eq!(incoming(&connection), "request m");
    assert_eq!(script.recv(), result(70, json!("m")));
}

#[test]
fn nothing_that_came_before_the_end_is_lost_to_the_queue_or_the_handler() {
    for round in 0..200 {
        let (connection, mut script) = pair(&Options::new().queue_incoming());
        let (recorder, record) = recorder();
        let (handled, mut script_too) = pair(&Options::new().handler(recorder));
        for script in [&mut script, &mut script_too] {
            script.send(notification("n", json!([round])));
        }
        drop((script, script_too));
        assert_eq!(incoming(&connection), format!("n [{round}]"));
        assert!(incoming(&connection).starts_with("closed"));
        assert_eq!(record.next(), format!("n [{round}]"));
        assert!(record.next().starts_with("closed"));
        drop(handled);
    }
}

// What belongs to a call.

fn routing() -> Dialect {
    Dialect::new()
        .route("progress", ["token"])
        .route_any(["_meta", "call"])
}

fn progress(token: impl Into<Value>, n: u64) -> Value {
    notification("progress", json!({"token": token.into(), "n": n}))
}

fn number(update: Update) -> u64 {
    match update {
        Update::Notification(n) => n.decode::<Value>().unwrap()["n"].as_u64().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn p08_progress_comes_to_the_waiting_caller_on_its_own_thread_in_order_before_the_answer() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().dialect(routing()).handler(recorder));
    let call = connection
        .start_with("m", &CallOptions::new(), |id| json!({"token": id}))
        .unwrap();
    let call_too = connection.start("m", ()).unwrap();
    let asked = script.recv();
    let token = asked["params"]["token"].as_u64().unwrap();
    // The handler is blocked, which is nothing to what belongs to a call.
    script.send(notification("block", json!([])));
    assert_eq!(record.next(), "block []");
    for n in 0..50 {
        script.send(progress(token, n));
        script.send(progress(call_too.id(), 1000 + n));
    }
    script.send(notification(
        "other",
        json!({"n": 50, "_meta": {"call": token}}),
    ));
    script.answer(&asked, json!("done"));
    // Behind the answer there is nobody to take it but the handler.
    script.send(progress(token, 99));
    script.send(progress("nobody", 100));
    // A string is a token of the peer's own, whatever its digits.
    script.send(progress(call_too.id().to_string(), 101));

    let (mut seen, me) = (Vec::new(), thread::current().id());
    let answer: String = call
        .wait_with(|update| {
            assert_eq!(thread::current().id(), me);
            seen.push(number(update));
        })
        .unwrap();
    assert_eq!(answer, "done");
    assert_eq!(seen, (0..=50).collect::<Vec<_>>());
    record.release(1);
    assert_eq!(
        record.next(),
        format!("progress {{\"n\":99,\"token\":{token}}}")
    );
    assert_eq!(record.next(), "progress {\"n\":100,\"token\":\"nobody\"}");

    let mut call_too = call_too;
    for n in 1000..1050 {
        assert_eq!(number(call_too.next_timeout(HANG).unwrap()), n);
    }
    assert!(call_too.try_next().is_none());
    assert!(connection.survived().is_empty());
}

#[test]
fn a_panic_in_the_callback_of_a_call_is_its_callers_and_the_connection_lives() {
    let (connection, mut script) = pair(&Options::new().dialect(routing()));
    let call = connection.start("m", ()).unwrap();
    script.send(progress(call.id(), 1));
    let wait = std::panic::AssertUnwindSafe(|| {
        call.wait_with::<Value>(|_| std::panic::resume_unwind(Box::new(())))
    });
    assert!(std::panic::catch_unwind(wait).is_err());
    script.fence(&connection);
}

#[test]
fn p09_updates_of_a_call_are_bounded_and_their_gap_is_told() {
    let options = Options::new()
        .dialect(routing())
        .notifications_limit(16 << 10);
    let (connection, mut script) = pair(&options);
    let call = connection.start("m", ()).unwrap();
    let asked = script.recv();
    for n in 0..2000 {
        script.send(progress(1, n));
    }
    script.answer(&asked, json!(()));
    script.fence(&connection);
    let lost = connection.survived().dropped_notifications;
    let mut updates = Vec::new();
    call.wait_with::<()>(|update| updates.push(update)).unwrap();
    let mut updates = updates.into_iter();
    assert!(matches!(updates.next(), Some(Update::Lost(n)) if n == lost));
    assert_eq!(
        updates.map(number).collect::<Vec<_>>(),
        (lost..2000).collect::<Vec<_>>()
    );
    assert!(lost > 1000, "{lost}");
}

#[test]
fn p11_progress_extends_the_idle_limit() {
    let (connection, mut script) = pair(&Options::new().dialect(routing()));
    let idle = Duration::from_secs(2);
    let start = Instant::now();
    let call = connection
        .start_with("m", &CallOptions::new().idle(idle), |_| ())
        .unwrap();
    let peer = thread::spawn(move || {
        let asked = script.recv();
        for n in 0..2 {
            thread::sleep(Duration::from_millis(1200));
            script.send(progress(1, n));
        }
        script.answer(&asked, json!("late"));
        script
    });
    assert_eq!(call.wait::<String>().unwrap(), "late");
    assert!(start.elapsed() > idle);
    drop(peer.join().unwrap());
}

fn limit_of(error: &landline::Error) -> Limit {
    match error {
        landline::Error::Timeout { detail, .. } => detail.limit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn p11_progress_of_another_token_does_not_extend_the_idle_limit() {
    let (connection, mut script) = pair(&Options::new().dialect(routing()));
    let other = connection.start("other", ()).unwrap();
    let idle = Duration::from_millis(200);
    let start = Instant::now();
    let mut call = connection
        .start_with("m", &CallOptions::new().idle(idle), |_| ())
        .unwrap();
    let error = loop {
        script.send(progress(other.id(), 0));
        match call.wait_timeout::<Value>(Duration::from_millis(10)) {
            Ok(None) => assert!(start.elapsed() < HANG),
            ended => break ended.unwrap_err(),
        }
    };
    assert!(start.elapsed() >= idle);
    assert_eq!(limit_of(&error), Limit::Idle);
}

#[test]
fn p01_a_flood_of_progress_does_not_outlive_the_total_limit() {
    let (connection, mut script) = pair(&Options::new().dialect(routing()));
    let limits = CallOptions::new()
        .timeout(Duration::from_millis(300))
        .idle(HANG);
    let call = connection.start_with("m", &limits, |_| ()).unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let peer = thread::spawn(move || {
        // Far faster than the caller takes it.
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            script.send(progress(1, 0));
        }
        script
    });
    let start = Instant::now();
    let error = call
        .wait_with::<Value>(|_| {
            thread::sleep(Duration::from_millis(1));
            assert!(start.elapsed() < HANG, "it never ends");
        })
        .unwrap_err();
    assert!(start.elapsed() >= Duration::from_millis(290));
    assert_eq!(limit_of(&error), Limit::Total);
    drop(stop);
    drop(peer.join().unwrap());
}

#[test]
fn a_dialect_is_changed_on_a_live_connection() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    let mut call = connection.start("m", ()).unwrap();
    assert_eq!(methods(&[script.recv()]), ["m"]);
    script.send(progress(1, 1));
    assert!(record.next().starts_with("progress"));
    connection.set_dialect(routing().answer_at_once("ping", json!("now")));
    script.send(progress(1, 2));
    script.send(request(1, "ping"));
    assert_eq!(number(call.next_timeout(HANG).unwrap()), 2);
    assert_eq!(script.recv(), result(1, json!("now")));
    connection.set_dialect(Dialect::new().answer_requests(false));
    script.send(request(2, "ping"));
    assert_eq!(script.fence(&connection), [Value::Null; 0]);
    assert_eq!(connection.survived().unanswered_requests, 1);
}

// Clocks.

#[test]
fn p11_clocks_stand_still_while_a_person_is_asked_and_go_on_after() {
    let (connection, _script) = pair(&Options::new());
    let limit = Duration::from_millis(100);
    let options = CallOptions::new().timeout(limit).idle(limit);
    let stopped = connection.stop_clocks();
    let mut call = connection.start_with("m", &options, |_| ()).unwrap();
    assert!(call.next_timeout(limit * 3).is_none());
    let second = connection.peer().stop_clocks();
    drop(stopped);
    assert!(
        call.next_timeout(limit * 3).is_none(),
        "another person is still asked"
    );

    // A caller that waits already is woken by the end of the question.
    let (tell, told) = mpsc::channel();
    let waiting = thread::spawn(move || {
        tell.send(()).unwrap();
        let error = call.wait::<Value>().unwrap_err();
        (Instant::now(), limit_of(&error))
    });
    told.recv_timeout(HANG).unwrap();
    let answered = Instant::now();
    drop(second);
    let (ended, reason) = waiting.join().unwrap();
    assert!(ended - answered >= limit);
    assert_eq!(reason, Limit::Total);
}

#[test]
fn p11_clocks_stand_still_for_the_human_limit_at_most() {
    let human = Duration::from_millis(150);
    let (connection, _script) = pair(&Options::new().human_timeout(human));
    let limit = Duration::from_millis(100);
    let _never_answered = connection.stop_clocks();
    let start = Instant::now();
    let error = connection
        .request_with::<Value>("m", (), &CallOptions::new().timeout(limit))
        .unwrap_err();
    // A little less: the question was open before the call.
    assert!(
        start.elapsed() >= Duration::from_millis(200),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(limit_of(&error), Limit::Total);
}

#[test]
fn p11_clocks_stand_still_for_as_long_as_it_takes_where_the_human_limit_is_none() {
    let (connection, mut script) = pair(&Options::new().human_timeout(Duration::MAX));
    let limit = Duration::from_millis(100);
    let options = CallOptions::new().timeout(limit).idle(limit);
    let stopped = connection.stop_clocks();
    let mut call = connection.start_with("m", &options, |_| ()).unwrap();
    assert!(call.next_timeout(limit * 4).is_none());
    // A call that has had its answer by then does not mind.
    let in_time = connection.start_with("m", &options, |_| ()).unwrap();
    script.send(result(in_time.id(), json!("in time")));
    assert_eq!(in_time.wait::<String>().unwrap(), "in time");
    drop(stopped);
    let error = guarded(move || call.wait::<Value>().unwrap_err());
    assert_eq!(limit_of(&error), Limit::Total);
}

#[test]
fn p11_the_clocks_go_on_for_the_calls_that_wait_when_the_human_limit_has_run_out() {
    let human = Duration::from_millis(150);
    let (connection, _script) = pair(&Options::new().human_timeout(human));
    let limit = Duration::from_millis(100);
    let start = Instant::now();
    let never_answered = connection.stop_clocks();
    let total = CallOptions::new().timeout(limit);
    let idle = CallOptions::new().idle(limit);
    let calls = [&total, &idle].map(|options| connection.start_with("m", options, |_| ()).unwrap());
    let waiting = calls.map(|call| thread::spawn(move || call.wait::<Value>().unwrap_err()));
    let limits = guarded(move || waiting.map(|waiting| limit_of(&waiting.join().unwrap())));
    assert_eq!(limits, [Limit::Total, Limit::Idle]);
    assert!(start.elapsed() >= human + limit, "{:?}", start.elapsed());
    // Nor does the question that nobody answered stop them for a call that comes later.
    let error = connection.request_with::<Value>("m", (), &total);
    assert_eq!(limit_of(&error.unwrap_err()), Limit::Total);
    assert!(start.elapsed() >= human + limit * 2);
    drop(never_answered);
}

#[test]
fn p07_what_a_handler_throws_may_panic_in_its_turn() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("thrown away");
        }
    }
    let options = Options::new()
        .on_request(|_, _| std::panic::panic_any(Bomb))
        .on_notification(|_, _| std::panic::panic_any(Bomb));
    let (connection, mut script) = pair(&options);
    for n in 0..20 {
        script.send(notification("n", json!([n])));
    }
    for n in 0..20 {
        script.send(request(n, "m"));
    }
    for _ in 0..20 {
        assert_eq!(script.recv()["error"]["code"], -32603);
    }
    eventually("all panics are counted", || {
        connection.survived().handler_panics == 40
    });
}

#[test]
fn large_replies_wait_for_a_peer_that_reads() {
    let options = Options::new()
        .replies_limit(1)
        .on_request(|_, _| Ok(json!("x".repeat(1 << 20))));
    let (connection, mut script) = pair(&options);
    for n in 0..16 {
        script.send(request(n, "m"));
    }
    for _ in 0..16 {
        assert_eq!(
            script.recv()["result"].as_str().map(str::len),
            Some(1 << 20)
        );
    }
    assert!(connection.closed().is_none());
}

#[test]
fn a_connection_with_a_handler_gives_nothing_to_the_programs_loop() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    for n in 0..100 {
        script.send(notification("n", json!([n])));
        assert!(connection.try_next_incoming().is_none());
    }
    for n in 0..100 {
        assert_eq!(record.next(), format!("n [{n}]"));
    }
}

#[test]
fn p09_the_replies_of_a_batch_wait_for_a_peer_that_is_slow_to_read() {
    let large = "x".repeat(3000);
    let options = Options::new()
        .dialect(Dialect::new().arrays(Arrays::Batch))
        .replies_limit(4096)
        .reply_timeout(Duration::MAX)
        .on_request(move |_, _| Ok(json!(large)));
    let (connection, mut script) = pair(&options);
    let clog = script.clog(&connection);
    script.send(json!([request(1, "m"), request(2, "m"), request(3, "m")]));
    // All three handlers have long answered, or will: none gives up.
    assert_eq!(script.recv()["method"], "clog");
    let mut answered = HashSet::new();
    while answered.len() < 3 {
        let replies = match script.recv() {
            Value::Array(replies) => replies,
            single => vec![single],
        };
        for reply in replies {
            assert_eq!(reply["result"].as_str().unwrap().len(), 3000);
            assert!(answered.insert(reply["id"].as_u64().unwrap()));
        }
    }
    assert_eq!(answered, HashSet::from([1, 2, 3]));
    assert!(connection.closed().is_none());
    drop(clog);
}

#[test]
fn p09_answers_of_the_programs_own_loop_wait_for_a_peer_that_is_slow_to_read() {
    let options = Options::new()
        .queue_incoming()
        .replies_limit(1000)
        .reply_timeout(Duration::MAX);
    let (connection, mut script) = pair(&options);
    let clog = script.clog(&connection);
    (1..=3).for_each(|id| script.send(request(id, "m")));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                match connection.next_incoming() {
                    Incoming::Request(_, responder) => {
                        responder.answer(Ok(json!("x".repeat(800))));
                    }
                    other => panic!("{other:?}"),
                }
            }
        });
        assert_eq!(script.recv()["method"], "clog");
        for id in 1..=3 {
            assert_eq!(script.recv()["id"], id);
        }
    });
    assert!(connection.closed().is_none());
    drop(clog);
}

#[test]
fn nothing_comes_to_the_programs_own_loop_behind_the_end() {
    let options = Options::new()
        .queue_incoming()
        .notifications_limit(usize::MAX);
    let (connection, mut script) = pair(&options);
    let many = vec![notification("n", json!({})); 60_000];
    let sending = thread::spawn(move || script.send(Value::Array(many)));
    for _ in 0..20 {
        assert!(matches!(
            connection.next_incoming(),
            Incoming::Notification(_)
        ));
    }
    thread::scope(|scope| {
        scope.spawn(|| connection.close());
        while !matches!(connection.next_incoming(), Incoming::Closed(_)) {}
        for _ in 0..1000 {
            let next = connection.try_next_incoming();
            assert!(matches!(next, Some(Incoming::Closed(_))), "{next:?}");
        }
    });
    // It may have lost its reader in the midst of it.
    let _ = sending.join();
}

#[test]
fn p09_ids_count_among_the_bytes_of_requests_that_wait() {
    let (recorder, record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    for n in 0..16 {
        script.send(request(n, "block"));
        assert_eq!(record.next(), "request block");
    }
    // Seven of a MiB and their bookkeeping are within 8 MiB.
    for n in 0..10 {
        script.send(request(format!("{n}{}", "x".repeat(1 << 20)), "m"));
    }
    for n in 7..10 {
        let refused = script.recv();
        assert!(refused["id"].as_str().unwrap().starts_with(&n.to_string()));
        assert_eq!(refused["error"]["code"], -32603);
    }
    assert_eq!(connection.survived().refused_requests, 3);
    record.release(16);
}

#[test]
fn requests_that_come_when_the_peer_reads_no_more_are_counted() {
    let (recorder, _record) = recorder();
    let (connection, mut script) = pair(&Options::new().handler(recorder));
    let Script { input, output } = &mut script;
    input.get_ref().shutdown(std::net::Shutdown::Both).unwrap();
    connection.notify("n", ()).unwrap();
    eventually("the writer has failed", || connection.closed().is_some());
    use std::io::Write;
    writeln!(output, "{}", request(1, "m")).unwrap();
    eventually("it is counted", || {
        connection.survived().unanswered_requests == 1
    });
}

#[test]
fn a_call_that_is_ready_by_its_idle_limit_ends_at_once_when_it_is_waited_for() {
    let (connection, mut script) = pair(&Options::new().dialect(routing()));
    let brief = CallOptions::new().idle(Duration::from_millis(50));
    let mut calls = [connection.start_with("m", &brief, |_| ()).unwrap()];
    script.send(progress(calls[0].id(), 1));
    assert_eq!(landline::Call::wait_any(&mut calls), Some(0));
    // The update is still there; that it is taken late does not make it younger.
    assert_eq!(number(calls[0].try_next().unwrap()), 1);
    let error = calls[0].try_wait::<Value>().unwrap_err();
    assert!(error.is_timeout(), "{error}");
}

#[test]
fn no_reply_is_written_once_the_dialect_has_none() {
    let (connection, mut script) = pair(&Options::new().queue_incoming());
    script.send(request("q", "m"));
    let Incoming::Request(_, responder) = connection.next_incoming() else {
        panic!("it is a request");
    };
    connection.set_dialect(Dialect::new().answer_requests(false));
    responder.answer(Ok(json!(1)));
    assert_eq!(script.fence(&connection), Vec::<Value>::new());
    assert_eq!(connection.survived().unanswered_requests, 1);
}
