//! What a call costs beside its floor: the same bytes over bare pipes, written and read by one
//! thread.
//!
//! The child is this program, run again with [`ECHO`], the same for both sides. The two take turns
//! in blocks, so that noise of the machine falls on both, and each time is that of one call. A
//! ratio of 1 is what no library can beat.
//!
//! `cargo bench` measures, and fails if a median is over [`BOUND`] times its floor.
//! `cargo test --bench round_trip` runs a few rounds and looks at the answers alone.
#![allow(clippy::unwrap_used, reason = "a bench may unwrap")]
#![allow(clippy::print_stdout, reason = "printing is what a bench is for")]

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use landline::{ChildSpec, Connection};

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    if let (Some(ECHO), Some(size)) = (args.next().as_deref(), args.next()) {
        echo(size.parse().unwrap()).unwrap();
        return ExitCode::SUCCESS;
    }
    // Cargo says `--bench` when it wants figures, and nothing when it runs benches as tests.
    let measure = env::args().any(|arg| arg == "--bench");
    let plan = |blocks, rounds| match measure {
        true => Plan { blocks, rounds },
        false => Plan {
            blocks: 2,
            rounds: 5,
        },
    };
    println!("{:34}{:>11}{:>11}{:>8}", "", "call", "floor", "ratio");
    let small = sequential("32 byte answer", 32, plan(100, 200));
    let large = sequential("64 KiB answer", 64 << 10, plan(50, 50));
    concurrent("32 byte answer", 32, plan(50, 400));
    let worst = small.max(large);
    match measure {
        true if worst > BOUND => {
            println!("FAILED: a p50 ratio is {worst:.2}, and {BOUND} is the bound");
            println!("A p01 ratio far below tells of a busy machine rather than of a mistake.");
            ExitCode::FAILURE
        }
        true => {
            println!("ok: the p50 ratios are at most {worst:.2}, and {BOUND} is the bound");
            ExitCode::SUCCESS
        }
        false => ExitCode::SUCCESS,
    }
}

/// How much is measured: blocks of rounds, by turns one of calls and one of the floor.
#[derive(Clone, Copy)]
struct Plan {
    blocks: usize,
    rounds: usize,
}

/// One call after the other from one thread; gives the ratio of the medians.
fn sequential(what: &str, size: usize, plan: Plan) -> f64 {
    let (called, mut bare) = (connect(size), Bare::start(size));
    let (mut calls, mut floor) = (Vec::new(), Vec::new());
    for block in 0..=plan.blocks {
        // The first block warms up: pages, branch predictors, and the allocator.
        let warm = block > 0;
        for _ in 0..plan.rounds {
            let start = Instant::now();
            call(&called, size);
            calls.extend(warm.then(|| start.elapsed()));
        }
        for _ in 0..plan.rounds {
            let start = Instant::now();
            bare.round_trip(size);
            floor.extend(warm.then(|| start.elapsed()));
        }
    }
    end(called, bare);
    let [_p01, p50, _p99] = [("p01", 0.01), ("p50", 0.50), ("p99", 0.99)].map(|(name, part)| {
        let [call, floor] = [&mut calls, &mut floor].map(|times| micros(quantile(times, part)));
        let (label, ratio) = (format!("{what}, {name}"), call / floor);
        println!("{label:34}{call:>8.1} us{floor:>8.1} us{ratio:>8.2}");
        ratio
    });
    p50
}

/// Calls from several threads at once; the floor is still one thread, that asks and waits by turns.
fn concurrent(what: &str, size: usize, plan: Plan) {
    let (called, mut bare) = (connect(size), Bare::start(size));
    let (mut calls, mut floor) = (Duration::ZERO, Duration::ZERO);
    for block in 0..=plan.blocks {
        let start = Instant::now();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..plan.rounds).for_each(|_| call(&called, size)));
            }
        });
        let called_for = start.elapsed();
        let start = Instant::now();
        (0..plan.rounds).for_each(|_| bare.round_trip(size));
        if block > 0 {
            calls += called_for;
            floor += start.elapsed();
        }
    }
    end(called, bare);
    let rounds = (plan.blocks * plan.rounds) as f64;
    let per_second = [
        rounds * THREADS as f64 / calls.as_secs_f64(),
        rounds / floor.as_secs_f64(),
    ];
    let label = format!("{what}, {THREADS} threads at once");
    let [call, floor] = per_second;
    // Turned round, since here more is better: below 1 means that calls are faster than the floor.
    println!("{label:34}{call:>9.0}/s{floor:>9.0}/s{:>8.2}", floor / call);
}

/// The thing measured.
fn call(connection: &Connection, size: usize) {
    let answer: String = connection.request(METHOD, [TEXT]).unwrap();
    assert_eq!(answer.len(), size);
    debug_assert!(answer.bytes().all(|byte| byte == FILL));
}

fn connect(size: usize) -> Connection {
    let program = env::current_exe().unwrap();
    let spec = ChildSpec::new(program)
        .and_then(|spec| spec.with_args([ECHO, &size.to_string()]))
        .unwrap();
    Connection::spawn(&spec).unwrap()
}

fn end(connection: Connection, bare: Bare) {
    let survived = connection.survived();
    assert!(survived.is_empty(), "{survived}");
    assert!(connection.close().exit.unwrap().success());
    bare.end();
}

/// The floor: the child's pipes and nothing else.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Bare {
    fn start(size: usize) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([ECHO, &size.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Bare {
            stdin: child.stdin.take().unwrap(),
            // As large as a pipe, so that one read empties it.
            stdout: BufReader::with_capacity(64 << 10, child.stdout.take().unwrap()),
            child,
            id: 0,
            request: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Writes the bytes that a connection writes, and reads the ones that it reads.
    fn round_trip(&mut self, size: usize) {
        self.id += 1;
        self.request.clear();
        let id = self.id;
        writeln!(
            self.request,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{METHOD}","params":["{TEXT}"]}}"#
        )
        .unwrap();
        self.stdin.write_all(&self.request).unwrap();
        self.answer.clear();
        self.stdout.read_until(b'\n', &mut self.answer).unwrap();
        assert!(self.answer.len() > size && id_in(&self.answer) == id.to_string().as_bytes());
    }

    fn end(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

/// The child: answers each line with a string of the given size, as cheaply as it can.
fn echo(size: usize) -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let (mut line, mut frame) = (Vec::new(), Vec::new());
    let text = vec![FILL; size];
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        frame.clear();
        put_answer(&mut frame, id_in(&line), &text);
        // It ends with a line feed and the buffer is empty: one write.
        output.write_all(&frame)?;
    }
}

/// The digits of a request's id, which stands at the same place in each.
fn id_in(request: &[u8]) -> &[u8] {
    let from = &request[HEAD.len()..];
    &from[..from.iter().take_while(|byte| byte.is_ascii_digit()).count()]
}

fn put_answer(frame: &mut Vec<u8>, id: &[u8], text: &[u8]) {
    for part in [HEAD, id, br#","result":""#, text, b"\"}\n"] {
        frame.extend_from_slice(part);
    }
}

/// The value below which this part of the times lies.
fn quantile(times: &mut [Duration], part: f64) -> Duration {
    let at = (times.len() as f64 * part) as usize;
    *times.select_nth_unstable(at).1
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The hidden argument that makes the child of this program; the size of its answers follows.
const ECHO: &str = "--echo-child";

/// Far from what is aimed at, and from the 5 that the placing of threads makes of it. On a machine
/// that is not busy only a mistake gets here, as when a thread is not woken up and finds its answer
/// by a clock. On one with more work than cores a call waits for its turns on them, each of
/// milliseconds, and the floor, whose two processes hand one core to each other, does not.
const BOUND: f64 = 10.0;

const THREADS: usize = 8;

/// How every request and every answer begins; the id follows.
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const METHOD: &str = "echo";
const TEXT: &str = "0123456789abcdef0123456789abcdef";
const FILL: u8 = b'x';
