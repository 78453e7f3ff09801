//! A queue that is bounded in bytes and never makes its sender wait.
//!
//! It carries what the peer sends unasked: to the caller of a call, to the dispatch thread, or to a
//! program's own loop. At the bound the oldest item goes, and the reader finds the gap in its place
//! with its size. One end, pushed last, can always be told. A reader that waits for several
//! mailboxes at once waits for a crossbeam channel of one place, the bell; it is made when it is
//! first asked for, since a call that is waited for alone, as nearly all are, is cheaper without
//! it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::sync::{lock, soon, wait_until};

/// A queue of `T`, ended by an `E`.
#[derive(Debug)]
pub(crate) struct Mailbox<T, E> {
    contents: Mutex<Contents<T, E>>,
    /// Tells who listens that it rings.
    rings: Condvar,
    limit: usize,
    bell: OnceLock<(Sender<()>, Receiver<()>)>,
}

#[derive(Debug)]
struct Contents<T, E> {
    posts: VecDeque<Entry<T>>,
    bytes: usize,
    end: Option<E>,
    /// There was a change that no listener has heard of.
    ringing: bool,
    listeners: usize,
}

#[derive(Debug)]
enum Entry<T> {
    /// So many items were dropped here.
    Gap(u64),
    Item {
        item: T,
        cost: usize,
    },
}

/// What a reader takes out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Post<T, E> {
    Lost(u64),
    Item(T),
    /// The last: everything before it was taken.
    End(E),
}

impl<T, E> Mailbox<T, E> {
    pub(crate) fn new(limit: usize) -> Self {
        let contents = Contents {
            posts: VecDeque::new(),
            bytes: 0,
            end: None,
            ringing: false,
            listeners: 0,
        };
        Mailbox {
            contents: Mutex::new(contents),
            rings: Condvar::new(),
            limit,
            bell: OnceLock::new(),
        }
    }

    /// Puts an item in and gives the number of older ones that had to go for it. An item of cost 0
    /// never goes, and nothing goes for it: its sender bounds it otherwise. The newest item always
    /// enters, however large.
    pub(crate) fn push(&self, item: T, cost: usize) -> u64 {
        let mut contents = lock(&self.contents);
        let mut dropped = 0;
        while cost > 0 && contents.bytes > 0 && contents.bytes.saturating_add(cost) > self.limit {
            contents.drop_oldest();
            dropped += 1;
        }
        contents.bytes += cost;
        contents.posts.push_back(Entry::Item { item, cost });
        self.ring_in(contents);
        dropped
    }

    /// Ends the queue. Only the first end is kept, and gives `true`.
    pub(crate) fn end(&self, end: E) -> bool {
        let mut contents = lock(&self.contents);
        let first = contents.end.is_none();
        contents.end.get_or_insert(end);
        self.ring_in(contents);
        first
    }

    /// Takes what is next; `None` if there is nothing yet.
    pub(crate) fn pop(&self) -> Option<Post<T, E>> {
        let mut contents = lock(&self.contents);
        let post = match contents.posts.pop_front() {
            Some(Entry::Gap(lost)) => Some(Post::Lost(lost)),
            Some(Entry::Item { item, cost }) => {
                contents.bytes -= cost;
                Some(Post::Item(item))
            }
            None => contents.end.take().map(Post::End),
        };
        // The bell has one place; a second reader must hear of what the first one left.
        if !contents.posts.is_empty() || contents.end.is_some() {
            self.ring_in(contents);
        }
        post
    }

    /// Whether the end has come, behind whatever is still to be taken.
    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.contents).end.is_some()
    }

    /// Looks at the newest item without taking it.
    pub(crate) fn newest<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let contents = lock(&self.contents);
        match contents.posts.back()? {
            Entry::Item { item, .. } => Some(look(item)),
            // A newer item always follows a gap, unless it was taken.
            Entry::Gap(_) => None,
        }
    }

    /// Waits for the bell until the given time. It rings after each change, and may ring for
    /// nothing.
    pub(crate) fn listen(&self, until: Option<Instant>) {
        let heard = || std::mem::take(&mut lock(&self.contents).ringing).then_some(());
        if soon(heard).is_some() {
            return;
        }
        let mut contents = lock(&self.contents);
        contents.listeners += 1;
        while !contents.ringing && until.is_none_or(|until| Instant::now() < until) {
            contents = wait_until(&self.rings, contents, until);
        }
        contents.listeners -= 1;
        contents.ringing = false;
    }

    /// Wakes a waiting reader, so that it looks at the clock and at the world again.
    pub(crate) fn ring(&self) {
        self.ring_in(lock(&self.contents));
    }

    fn ring_in(&self, mut contents: MutexGuard<'_, Contents<T, E>>) {
        contents.ringing = true;
        let heard = contents.listeners > 0;
        drop(contents);
        // Waking is a system call whether anybody sleeps or not.
        if heard {
            self.rings.notify_one();
        }
        if let Some((bell, _)) = self.bell.get() {
            // A full bell is a bell that rings already.
            let _ = bell.try_send(());
        }
    }

    /// The bell itself, for waiting on several at once.
    pub(crate) fn bell(&self) -> &Receiver<()> {
        let (bell, rung) = self.bell.get_or_init(|| bounded(1));
        // A change either saw the bell, or is seen here.
        if std::mem::take(&mut lock(&self.contents).ringing) {
            // As above.
            let _ = bell.try_send(());
        }
        rung
    }
}

impl<T, E> Contents<T, E> {
    fn drop_oldest(&mut self) {
        let costly = |entry: &Entry<T>| matches!(entry, Entry::Item { cost, .. } if *cost > 0);
        let Some(at) = self.posts.iter().position(costly) else {
            return;
        };
        if let Some(Entry::Item { cost, .. }) = self.posts.get(at) {
            self.bytes -= cost;
        }
        match at
            .checked_sub(1)
            .and_then(|before| self.posts.get_mut(before))
        {
            Some(Entry::Gap(lost)) => {
                *lost += 1;
                self.posts.remove(at);
            }
            _ => self.posts[at] = Entry::Gap(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(mailbox: &Mailbox<u32, ()>) -> Vec<Post<u32, ()>> {
        std::iter::from_fn(|| mailbox.pop()).collect()
    }

    #[test]
    fn the_oldest_go_and_the_gap_stands_in_their_place() {
        let mailbox = Mailbox::new(30);
        assert_eq!([1, 2, 3].map(|n| mailbox.push(n, 10)), [0, 0, 0]);
        assert_eq!(mailbox.push(4, 20), 2);
        assert_eq!(
            drain(&mailbox),
            [Post::Lost(2), Post::Item(3), Post::Item(4)]
        );
    }

    #[test]
    fn what_costs_nothing_never_goes_and_keeps_its_place() {
        let mailbox = Mailbox::new(10);
        mailbox.push(1, 10);
        mailbox.push(2, 0);
        mailbox.push(3, 10);
        mailbox.push(4, 10);
        assert_eq!(
            drain(&mailbox),
            [Post::Lost(1), Post::Item(2), Post::Lost(1), Post::Item(4)]
        );
    }

    #[test]
    fn an_item_over_the_bound_still_enters_and_the_end_comes_last() {
        let mailbox = Mailbox::new(10);
        mailbox.push(1, 5);
        assert!(mailbox.end(()));
        assert!(!mailbox.end(()));
        assert_eq!(mailbox.push(2, usize::MAX), 1);
        assert_eq!(
            drain(&mailbox),
            [Post::Lost(1), Post::Item(2), Post::End(())]
        );
        assert_eq!(mailbox.pop(), None);
    }

    #[test]
    fn nothing_goes_for_what_costs_nothing() {
        let mailbox = Mailbox::new(10);
        mailbox.push(1, 20);
        assert_eq!(mailbox.push(2, 0), 0);
        assert_eq!(drain(&mailbox), [Post::Item(1), Post::Item(2)]);
    }

    #[test]
    fn the_newest_item_can_be_looked_at() {
        let mailbox = Mailbox::<u32, ()>::new(10);
        assert_eq!(mailbox.newest(|item| *item), None);
        mailbox.push(1, 10);
        mailbox.push(2, 10);
        assert_eq!(mailbox.newest(|item| *item), Some(2));
        assert_eq!(drain(&mailbox), [Post::Lost(1), Post::Item(2)]);
        assert_eq!(mailbox.newest(|item| *item), None);
    }

    #[test]
    fn a_ring_before_the_bell_was_asked_for_is_heard() {
        let mailbox = Mailbox::<u32, ()>::new(10);
        mailbox.push(1, 1);
        assert!(mailbox.bell().try_recv().is_ok());
        assert!(mailbox.bell().try_recv().is_err());
        mailbox.push(2, 1);
        assert!(mailbox.bell().try_recv().is_ok());
    }

    #[test]
    fn each_of_two_listeners_gets_one_of_two_items() {
        let mailbox = Mailbox::<u32, ()>::new(10);
        let take = || loop {
            match mailbox.pop() {
                Some(Post::Item(item)) => return item,
                Some(_) => {}
                None => mailbox.listen(None),
            }
        };
        let mut taken = std::thread::scope(|scope| {
            let takers = [scope.spawn(take), scope.spawn(take)];
            mailbox.push(1, 1);
            mailbox.push(2, 1);
            takers.map(|taker| taker.join().unwrap_or_default())
        });
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    }
}
