//! The outgoing queue: what callers and the reader hand to the writer thread.
//!
//! Two lanes. Requests and notifications wait for room under a byte budget, first come, first
//! served, each by its own deadline; replies and cancellations never wait, go ahead of them, and
//! are bounded apart. A queued frame is taken by the writer or withdrawn by its caller, decided
//! under one lock: a frame that was withdrawn can no longer be written, so `NotSent` is the truth.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::clocks::Due;
use crate::framing::Encoded;
use crate::sync::{after, earlier, lock, soon, wait_until};

/// The queue between callers and the writer.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Tells the writer of a frame or of the end.
    filled: Condvar,
    /// Tells waiting senders of room, of their turn, or of the end.
    room: Condvar,
    /// Grows while the peer reads: what tells a slow one from one that reads nothing.
    progress: AtomicU64,
    budget: usize,
    urgent_budget: usize,
}

#[derive(Debug, Default)]
struct State {
    /// Requests and notifications by their place in the queue, from which any may be withdrawn.
    ordinary: BTreeMap<u64, Outgoing>,
    /// The places of the requests.
    places: HashMap<u64, u64>,
    next_place: u64,
    ordinary_bytes: usize,
    urgent: VecDeque<Encoded>,
    urgent_bytes: usize,
    /// Cancellations of requests that are still queued: each goes right behind its request, or
    /// never.
    behind: HashMap<u64, Encoded>,
    /// Senders waiting for room, in the order in which they came.
    line: VecDeque<u64>,
    next_ticket: u64,
    /// How many replies wait for room.
    urgent_waiting: usize,
    /// Nothing new enters; the writer ends when it has taken what is left, and what waited for
    /// room.
    closed: bool,
    /// There is nobody left to write to.
    abandoned: bool,
}

/// A frame for the writer, and the call whose request it is.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) frame: Encoded,
    pub(crate) call: Option<u64>,
}

/// What was queued and will not be written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsent {
    pub(crate) calls: HashSet<u64>,
    pub(crate) notifications: u64,
}

/// What became of a reply or a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    Queued,
    /// The queue is closed.
    Dropped,
    /// The bound is reached, and the peer read nothing for as long as there was patience.
    Unread,
}

/// Why a frame did not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The deadline came before there was room.
    TimedOut,
    /// The sender's own condition said so.
    GivenUp,
    /// The queue is closed.
    Closed,
}

impl Outbox {
    pub(crate) fn new(budget: usize, urgent_budget: usize) -> Self {
        Outbox {
            state: Mutex::default(),
            filled: Condvar::new(),
            room: Condvar::new(),
            progress: AtomicU64::new(0),
            budget,
            urgent_budget,
        }
    }

    /// Queues a request or a notification. Blocks while there is no room, until the deadline that
    /// `due` gives; it is asked again after each wake-up, and `None` from it gives the frame up.
    /// `look` is run when there is no room, and again whenever it said, without the queue's lock:
    /// it may close the queue.
    pub(crate) fn send(
        &self,
        out: Outgoing,
        due: impl Fn() -> Option<Due>,
        mut look: impl FnMut() -> Option<Instant>,
    ) -> Result<(), Refused> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Refused::Closed);
        }
        if !state.line.is_empty() || !self.fits(&state, out.frame.len()) {
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            state.line.push_back(ticket);
            let mut look_at = Some(Instant::now());
            let refused = loop {
                if state.closed {
                    break Some(Refused::Closed);
                }
                if state.line.front() == Some(&ticket) && self.fits(&state, out.frame.len()) {
                    break None;
                }
                let until = match due() {
                    None => break Some(Refused::GivenUp),
                    Some(due) if due.is_past() => break Some(Refused::TimedOut),
                    Some(due) => due.wake_at(),
                };
                if look_at.is_some_and(|at| at <= Instant::now()) {
                    drop(state);
                    look_at = look();
                    state = lock(&self.state);
                    continue;
                }
                state = wait_until(&self.room, state, earlier(until, look_at));
            };
            state.line.retain(|waiting| *waiting != ticket);
            // Whoever is first now may have room: it is asleep and cannot know.
            self.room.notify_all();
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        state.push(out);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Queues a reply or a cancellation ahead of all requests. Where its bound is reached, it waits
    /// for room as long as the peer reads at all; with no patience it never blocks. What waits when
    /// the queue is closed still enters.
    pub(crate) fn send_urgent(&self, frame: Encoded, patience: Duration) -> Sent {
        let mut state = lock(&self.state);
        if state.closed {
            return Sent::Dropped;
        }
        let mut progress = self.progress();
        let mut until = after(Instant::now(), patience);
        while !state.closed && !self.fits_urgent(&state, frame.len()) {
            if self.progress() != progress {
                progress = self.progress();
                until = after(Instant::now(), patience);
            } else if until.is_some_and(|until| until <= Instant::now()) {
                return Sent::Unread;
            }
            state.urgent_waiting += 1;
            state = wait_until(&self.room, state, until);
            state.urgent_waiting -= 1;
        }
        // The writer waits for either.
        self.filled.notify_one();
        if state.abandoned {
            return Sent::Dropped;
        }
        state.urgent_bytes += frame.len();
        state.urgent.push_back(frame);
        Sent::Queued
    }

    /// Keeps a frame about a call until its request is taken. Gives it back if the request is not
    /// queued any more; one frame for each request is enough, and a further one is dropped.
    pub(crate) fn send_behind(&self, call: u64, frame: Encoded) -> Option<Encoded> {
        let mut state = lock(&self.state);
        if !state.places.contains_key(&call) {
            return Some(frame);
        }
        state.behind.entry(call).or_insert(frame);
        None
    }

    /// Takes the frame of a call out of the queue. `true`: it was still there and will not be
    /// written.
    pub(crate) fn withdraw(&self, call: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(place) = state.places.get(&call).copied() else {
            return false;
        };
        state.remove(place);
        state.behind.remove(&call);
        self.room.notify_all();
        true
    }

    /// Closes the queue: requests still in it are withdrawn and their calls given back;
    /// notifications and replies are left for the writer.
    pub(crate) fn close(&self) -> HashSet<u64> {
        let mut state = lock(&self.state);
        state.closed = true;
        state.behind.clear();
        let places = std::mem::take(&mut state.places);
        for place in places.values() {
            state.remove(*place);
        }
        self.filled.notify_all();
        self.room.notify_all();
        places.into_keys().collect()
    }

    /// Closes the queue and drops all that is in it: there is nobody left to write to.
    pub(crate) fn abandon(&self) -> Unsent {
        let calls = self.close();
        let mut state = lock(&self.state);
        let notifications = std::mem::take(&mut state.ordinary).len() as u64;
        state.ordinary_bytes = 0;
        state.urgent.clear();
        state.urgent_bytes = 0;
        state.abandoned = true;
        self.room.notify_all();
        Unsent {
            calls,
            notifications,
        }
    }

    /// Takes the next frame for the writer; blocks while there is none. `None` is the end.
    pub(crate) fn take(&self) -> Option<Outgoing> {
        if let Some(next) = soon(|| self.next(&mut lock(&self.state))) {
            return next;
        }
        let mut state = lock(&self.state);
        loop {
            if let Some(next) = self.next(&mut state) {
                return next;
            }
            state = wait_until(&self.filled, state, None);
        }
    }

    /// What the writer is to do: write a frame, or end. `None`: nothing yet.
    fn next(&self, state: &mut State) -> Option<Option<Outgoing>> {
        if let Some(frame) = state.urgent.pop_front() {
            state.urgent_bytes -= frame.len();
            self.note_progress();
            if state.urgent_waiting > 0 {
                self.room.notify_all();
            }
            return Some(Some(Outgoing { frame, call: None }));
        }
        if let Some(place) = state.ordinary.keys().next().copied() {
            if !state.line.is_empty() {
                self.room.notify_all();
            }
            let out = state.remove(place);
            self.note_progress();
            state.follow(out.as_ref().and_then(|out| out.call));
            return Some(out);
        }
        (state.closed && state.urgent_waiting == 0).then_some(None)
    }

    /// Notes that the peer has read something: whoever waits for room has reason to go on.
    pub(crate) fn note_progress(&self) {
        // Read by who waits with a clock in his hand; nothing else is published through it.
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Wakes every sender that waits for room, so that it asks for its deadline again.
    pub(crate) fn recheck(&self) {
        // Under the lock, or a sender between asking and sleeping would miss it.
        let _state = lock(&self.state);
        self.room.notify_all();
    }

    fn fits_urgent(&self, state: &State, len: usize) -> bool {
        state.urgent_bytes == 0 || state.urgent_bytes.saturating_add(len) <= self.urgent_budget
    }

    /// One frame may always enter an empty queue, or a frame over the budget could never be sent.
    fn fits(&self, state: &State, len: usize) -> bool {
        state.ordinary.is_empty() || state.ordinary_bytes.saturating_add(len) <= self.budget
    }
}

impl State {
    fn push(&mut self, out: Outgoing) {
        let place = self.next_place;
        self.next_place += 1;
        self.ordinary_bytes += out.frame.len();
        if let Some(call) = out.call {
            self.places.insert(call, place);
        }
        self.ordinary.insert(place, out);
    }

    fn remove(&mut self, place: u64) -> Option<Outgoing> {
        let out = self.ordinary.remove(&place)?;
        self.ordinary_bytes -= out.frame.len();
        if let Some(call) = out.call {
            self.places.remove(&call);
        }
        Some(out)
    }

    /// Puts what stands behind a request that was taken ahead of everything else.
    fn follow(&mut self, call: Option<u64>) {
        if let Some(frame) = call.and_then(|call| self.behind.remove(&call)) {
            self.urgent_bytes += frame.len();
            self.urgent.push_front(frame);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may unwrap")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::framing::Framing;
    use crate::message::Encoder;

    /// A frame of so many bytes, its line end included.
    fn frame(len: usize) -> Encoded {
        let encoder = Encoder {
            framing: Framing::Lines,
            limit: 1 << 20,
        };
        encoder.raw("x".repeat(len - 1).as_bytes()).unwrap()
    }

    fn request(call: u64, len: usize) -> Outgoing {
        Outgoing {
            frame: frame(len),
            call: Some(call),
        }
    }

    fn notification(len: usize) -> Outgoing {
        Outgoing {
            frame: frame(len),
            call: None,
        }
    }

    /// Sends for a call that has no process to look at.
    fn send(outbox: &Outbox, out: Outgoing, due: impl Fn() -> Option<Due>) -> Result<(), Refused> {
        outbox.send(out, due, || None)
    }

    fn for_ever() -> Option<Due> {
        Some(Due::Never)
    }

    fn at_once() -> Option<Due> {
        Some(Due::At(Instant::now()))
    }

    /// The call and the length of each frame that the writer gets until the queue is empty.
    fn drain(outbox: &Outbox) -> Vec<(Option<u64>, usize)> {
        outbox.close();
        std::iter::from_fn(|| outbox.take())
            .map(|out| (out.call, out.frame.len()))
            .collect()
    }

    fn next(outbox: &Outbox) -> (Option<u64>, usize) {
        let out = outbox.take().unwrap();
        (out.call, out.frame.len())
    }

    fn eventually(is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
    }

    #[test]
    fn replies_go_ahead_of_requests_each_in_their_order() {
        let outbox = Outbox::new(1000, 1000);
        send(&outbox, request(1, 10), for_ever).unwrap();
        send(&outbox, notification(11), for_ever).unwrap();
        assert_eq!(outbox.send_urgent(frame(20), Duration::ZERO), Sent::Queued);
        send(&outbox, request(2, 12), for_ever).unwrap();
        assert_eq!(outbox.send_urgent(frame(21), Duration::ZERO), Sent::Queued);
        let order = [
            (None, 20),
            (None, 21),
            (Some(1), 10),
            (None, 11),
            (Some(2), 12),
        ];
        assert_eq!(order.map(|_| next(&outbox)), order);
    }

    #[test]
    fn a_frame_is_taken_or_withdrawn_and_never_both() {
        let outbox = Outbox::new(1000, 1000);
        for call in 1..=3 {
            send(&outbox, request(call, 10), for_ever).unwrap();
        }
        assert!(outbox.withdraw(2));
        assert!(!outbox.withdraw(2), "it is withdrawn already");
        assert_eq!(next(&outbox), (Some(1), 10));
        assert!(!outbox.withdraw(1), "it was taken");
        assert_eq!(next(&outbox), (Some(3), 10));
        assert!(!outbox.withdraw(7), "there never was one");
    }

    #[test]
    fn the_budget_is_exact_and_one_frame_may_always_enter() {
        let outbox = Outbox::new(30, 1000);
        send(&outbox, request(1, 10), at_once).unwrap();
        send(&outbox, request(2, 20), at_once).unwrap();
        assert_eq!(
            send(&outbox, request(3, 2), at_once),
            Err(Refused::TimedOut)
        );
        assert_eq!(send(&outbox, request(3, 2), || None), Err(Refused::GivenUp));
        // What was taken or withdrawn makes room for as much.
        assert_eq!(next(&outbox), (Some(1), 10));
        send(&outbox, request(4, 10), at_once).unwrap();
        assert!(outbox.withdraw(2));
        assert_eq!(
            send(&outbox, request(5, 21), at_once),
            Err(Refused::TimedOut)
        );
        send(&outbox, request(5, 20), at_once).unwrap();
        assert_eq!(next(&outbox), (Some(4), 10));
        assert_eq!(next(&outbox), (Some(5), 20));
        send(&outbox, request(6, 1000), at_once).unwrap();
        assert_eq!(
            send(&outbox, request(7, 2), at_once),
            Err(Refused::TimedOut)
        );
        assert_eq!(next(&outbox), (Some(6), 1000));
        send(&outbox, request(7, 2), at_once).unwrap();
    }

    #[test]
    fn replies_are_bounded_apart_and_one_may_always_wait() {
        let outbox = Outbox::new(10, 30);
        send(&outbox, request(1, 1000), at_once).unwrap();
        assert_eq!(outbox.send_urgent(frame(30), Duration::ZERO), Sent::Queued);
        assert_eq!(outbox.send_urgent(frame(2), Duration::ZERO), Sent::Unread);
        assert_eq!(next(&outbox), (None, 30));
        assert_eq!(outbox.send_urgent(frame(31), Duration::ZERO), Sent::Queued);
        assert_eq!(outbox.send_urgent(frame(2), Duration::ZERO), Sent::Unread);
        // After the close it is no such failure.
        outbox.close();
        assert_eq!(outbox.send_urgent(frame(2), Duration::ZERO), Sent::Dropped);
        assert_eq!(next(&outbox), (None, 31));
        assert!(outbox.take().is_none());
    }

    #[test]
    fn a_reply_waits_for_room_as_long_as_the_peer_reads_at_all() {
        let patience = Duration::from_millis(100);
        let outbox = Outbox::new(1000, 10);
        loop {
            assert_eq!(outbox.send_urgent(frame(10), Duration::ZERO), Sent::Queued);
            // The machine may stop this thread for longer than the patience lasts; then the test
            // says nothing and is done again.
            let mut longest = Duration::ZERO;
            let entered = thread::scope(|scope| {
                let waiter = scope.spawn(|| outbox.send_urgent(frame(10), patience));
                let start = Instant::now();
                let mut last = start;
                while start.elapsed() < 4 * patience {
                    outbox.note_progress();
                    longest = longest.max(last.elapsed());
                    last = Instant::now();
                    thread::yield_now();
                }
                assert_eq!(next(&outbox), (None, 10));
                waiter.join().unwrap()
            });
            if entered == Sent::Queued {
                assert_eq!(next(&outbox), (None, 10));
                break;
            }
            assert!(longest >= patience, "given up while the peer read");
        }
        // And no longer.
        assert_eq!(outbox.send_urgent(frame(10), patience), Sent::Queued);
        assert_eq!(outbox.send_urgent(frame(10), patience), Sent::Unread);
    }

    #[test]
    fn a_reply_that_waits_when_the_queue_is_closed_is_written_unless_nobody_reads() {
        for abandon in [false, true] {
            let outbox = Outbox::new(1000, 10);
            assert_eq!(outbox.send_urgent(frame(10), Duration::ZERO), Sent::Queued);
            thread::scope(|scope| {
                let waiter = scope.spawn(|| outbox.send_urgent(frame(9), Duration::MAX));
                eventually(|| lock(&outbox.state).urgent_waiting == 1);
                if abandon {
                    outbox.abandon();
                    assert_eq!(waiter.join().unwrap(), Sent::Dropped);
                    assert!(outbox.take().is_none());
                } else {
                    outbox.close();
                    assert_eq!(next(&outbox), (None, 10));
                    assert_eq!(next(&outbox), (None, 9));
                    assert!(outbox.take().is_none());
                    assert_eq!(waiter.join().unwrap(), Sent::Queued);
                }
            });
        }
    }

    #[test]
    fn who_waits_for_room_is_served_first_come_first_served() {
        let outbox = Arc::new(Outbox::new(30, 1000));
        send(&outbox, request(1, 30), at_once).unwrap();
        let lengths = [25, 2, 30, 4];
        let senders: Vec<_> = (2..)
            .zip(lengths)
            .map(|(call, len)| {
                let (queue, waiting) = (outbox.clone(), call as usize - 1);
                let sender = thread::spawn(move || send(&queue, request(call, len), for_ever));
                eventually(|| lock(&outbox.state).line.len() == waiting);
                sender
            })
            .collect();
        // A small frame that would fit does not pass those that wait.
        assert_eq!(
            send(&outbox, request(9, 1), at_once),
            Err(Refused::TimedOut)
        );
        for (call, len) in [(1, 30), (2, 25), (3, 2), (4, 30), (5, 4)] {
            assert_eq!(next(&outbox), (Some(call), len));
        }
        for sender in senders {
            sender.join().unwrap().unwrap();
        }
        assert!(lock(&outbox.state).line.is_empty());
    }

    #[test]
    fn who_gives_up_in_the_line_makes_way_for_those_behind() {
        let outbox = Arc::new(Outbox::new(30, 1000));
        send(&outbox, request(1, 20), at_once).unwrap();
        let given_up = Arc::new(AtomicBool::new(false));
        let (queue, told) = (outbox.clone(), given_up.clone());
        let first = thread::spawn(move || {
            let due = || (!told.load(Ordering::SeqCst)).then_some(Due::Never);
            send(&queue, request(2, 20), due)
        });
        eventually(|| lock(&outbox.state).line.len() == 1);
        let queue = outbox.clone();
        let second = thread::spawn(move || send(&queue, request(3, 10), for_ever));
        eventually(|| lock(&outbox.state).line.len() == 2);
        given_up.store(true, Ordering::SeqCst);
        outbox.recheck();
        assert_eq!(first.join().unwrap(), Err(Refused::GivenUp));
        assert_eq!(second.join().unwrap(), Ok(()));
        assert_eq!(
            [next(&outbox), next(&outbox)],
            [(Some(1), 20), (Some(3), 10)]
        );
    }

    #[test]
    fn a_close_withdraws_requests_and_leaves_the_rest_to_the_writer() {
        let outbox = Arc::new(Outbox::new(40, 1000));
        send(&outbox, request(1, 10), at_once).unwrap();
        send(&outbox, notification(11), at_once).unwrap();
        send(&outbox, request(2, 12), at_once).unwrap();
        assert_eq!(outbox.send_urgent(frame(13), Duration::ZERO), Sent::Queued);
        let queue = outbox.clone();
        let waiting = thread::spawn(move || send(&queue, request(3, 30), for_ever));
        eventually(|| lock(&outbox.state).line.len() == 1);
        assert_eq!(outbox.close(), HashSet::from([1, 2]));
        assert_eq!(waiting.join().unwrap(), Err(Refused::Closed));
        assert_eq!(send(&outbox, request(4, 2), for_ever), Err(Refused::Closed));
        assert_eq!(drain(&outbox), [(None, 13), (None, 11)]);
        assert_eq!(outbox.close(), HashSet::new());
    }

    #[test]
    fn an_abandoned_queue_has_nothing_left() {
        let outbox = Outbox::new(1000, 1000);
        send(&outbox, request(1, 10), at_once).unwrap();
        send(&outbox, notification(11), at_once).unwrap();
        assert_eq!(outbox.send_urgent(frame(13), Duration::ZERO), Sent::Queued);
        let unsent = outbox.abandon();
        assert_eq!(unsent.calls, HashSet::from([1]));
        assert_eq!(unsent.notifications, 1);
        assert!(outbox.take().is_none());
        assert_eq!(
            send(&outbox, notification(2), at_once),
            Err(Refused::Closed)
        );
    }

    #[test]
    fn what_stands_behind_a_request_goes_right_behind_it_or_never() {
        let outbox = Outbox::new(1000, 1000);
        for call in 1..=3 {
            send(&outbox, request(call, 10), at_once).unwrap();
        }
        assert!(outbox.send_behind(1, frame(21)).is_none());
        assert!(outbox.send_behind(1, frame(99)).is_none(), "one is enough");
        assert!(outbox.send_behind(2, frame(22)).is_none());
        assert!(outbox.send_behind(3, frame(23)).is_none());
        assert!(outbox.withdraw(2));
        assert_eq!(next(&outbox), (Some(1), 10));
        assert_eq!(outbox.send_urgent(frame(30), Duration::ZERO), Sent::Queued);
        assert_eq!(
            outbox.send_behind(1, frame(21)).map(|frame| frame.len()),
            Some(21),
            "it was taken"
        );
        let order = [(None, 21), (None, 30), (Some(3), 10), (None, 23)];
        assert_eq!(order.map(|_| next(&outbox)), order);
        assert_eq!(lock(&outbox.state).urgent_bytes, 0);
        assert_eq!(drain(&outbox), []);
    }

    #[test]
    fn the_writer_waits_for_a_frame_and_for_the_end() {
        let outbox = Arc::new(Outbox::new(1000, 1000));
        let queue = outbox.clone();
        let writer = thread::spawn(move || std::iter::from_fn(|| queue.take()).count());
        send(&outbox, notification(5), at_once).unwrap();
        assert_eq!(outbox.send_urgent(frame(6), Duration::ZERO), Sent::Queued);
        outbox.close();
        assert_eq!(writer.join().unwrap(), 2);
    }
}
