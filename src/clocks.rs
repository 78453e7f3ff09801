//! The clocks of a connection, and how they stand still while a person is asked.
//!
//! Every time limit of a call is measured from a [`Mark`], and leaves out the time during
//! which at least one question was open. Each question stops the clocks for at most its own limit.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The time that counts for the calls of one connection.
#[derive(Debug, Default)]
pub(crate) struct Clocks(Mutex<Stops>);

#[derive(Debug, Default)]
struct Stops {
    /// Open questions: a number each, and until when they stop the clocks (`None`: for ever).
    open: Vec<(u64, Option<Instant>)>,
    asked: u64,
    /// Since when the clocks stand, if a question is open.
    since: Option<Instant>,
    /// How long they stood before that.
    stood: Duration,
}

/// A point in time from which a limit counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    at: Instant,
    stood: Duration,
}

/// When a limit runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Never,
    At(Instant),
    /// The clocks stand: ask again then, or when woken.
    AskAgain(Option<Instant>),
}

impl Due {
    /// When to look at the clock again.
    pub(crate) fn wake_at(self) -> Option<Instant> {
        match self {
            Due::Never => None,
            Due::At(at) => Some(at),
            Due::AskAgain(at) => at,
        }
    }

    /// Whether the limit has run out.
    pub(crate) fn is_past(self) -> bool {
        matches!(self, Due::At(at) if at <= Instant::now())
    }
}

impl Clocks {
    /// Marks the present.
    pub(crate) fn mark(&self) -> Mark {
        let at = Instant::now();
        Mark {
            at,
            stood: lock(&self.0).stood_by(at),
        }
    }

    /// How much time has counted since the mark.
    pub(crate) fn elapsed(&self, mark: Mark) -> Duration {
        let now = Instant::now();
        let stood = lock(&self.0).stood_by(now).saturating_sub(mark.stood);
        now.saturating_duration_since(mark.at).saturating_sub(stood)
    }

    /// Tells when a limit that counts from the mark runs out. `Duration::MAX` never does.
    pub(crate) fn due(&self, mark: Mark, limit: Duration) -> Due {
        if limit == Duration::MAX {
            return Due::Never;
        }
        let now = Instant::now();
        let stops = lock(&self.0);
        if let Some(until) = stops.standing_until(now) {
            return Due::AskAgain(until);
        }
        let stood = stops.stood_by(now).saturating_sub(mark.stood);
        let at = mark
            .at
            .checked_add(limit)
            .and_then(|at| at.checked_add(stood));
        at.map_or(Due::Never, Due::At)
    }

    /// Stops the clocks for a question, for `limit` at most, and gives its number.
    pub(crate) fn stop(&self, limit: Duration) -> u64 {
        let now = Instant::now();
        let mut stops = lock(&self.0);
        stops.settle(now);
        stops.asked += 1;
        let number = stops.asked;
        stops.open.push((number, now.checked_add(limit)));
        stops.since.get_or_insert(now);
        number
    }

    /// Ends a question: the clocks go on, unless another one is open.
    pub(crate) fn resume(&self, number: u64) {
        let now = Instant::now();
        let mut stops = lock(&self.0);
        // What this question has held counts up to now; those that are left hold from now on.
        stops.stood = stops.stood_by(now);
        let is_live = |until: Option<Instant>| until.is_none_or(|until| until > now);
        stops
            .open
            .retain(|(open, until)| *open != number && is_live(*until));
        stops.since = (!stops.open.is_empty()).then_some(now);
    }
}

impl Stops {
    /// Forgets the questions whose limit has run out; if none is left, the clocks go on since then.
    fn settle(&mut self, now: Instant) {
        if self.standing_until(now).is_none() {
            self.stood = self.stood_by(now);
            self.since = None;
            self.open.clear();
        }
    }

    /// How long the clocks had stood still by then, all in all.
    fn stood_by(&self, now: Instant) -> Duration {
        let Some(since) = self.since else {
            return self.stood;
        };
        let until = self.last_limit().map_or(now, |limit| limit.min(now));
        self.stood + until.saturating_duration_since(since)
    }

    /// Whether the clocks stand now, and until when they will if no question is answered before.
    fn standing_until(&self, now: Instant) -> Option<Option<Instant>> {
        self.since?;
        let until = self.last_limit();
        until.is_none_or(|until| until > now).then_some(until)
    }

    /// The latest limit of the open questions; `None` is for ever.
    fn last_limit(&self) -> Option<Instant> {
        let limits = self.open.iter().map(|(_, limit)| *limit);
        limits.reduce(|a, b| Some(a?.max(b?))).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn due_in(clocks: &Clocks, mark: Mark, limit: Duration) -> Duration {
        match clocks.due(mark, limit) {
            Due::At(at) => at.duration_since(mark.at),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn any_duration_is_safe() {
        let clocks = Clocks::default();
        let mark = clocks.mark();
        assert_eq!(clocks.due(mark, Duration::MAX), Due::Never);
        assert_eq!(
            clocks.due(mark, Duration::MAX - Duration::from_nanos(1)),
            Due::Never
        );
        assert_eq!(due_in(&clocks, mark, Duration::ZERO), Duration::ZERO);
        clocks.stop(Duration::MAX);
        assert_eq!(clocks.due(mark, HOUR), Due::AskAgain(None));
    }

    #[test]
    fn the_clocks_stand_until_the_last_question_is_answered() {
        let clocks = Clocks::default();
        let mark = clocks.mark();
        let (one, two) = (clocks.stop(HOUR), clocks.stop(HOUR));
        clocks.resume(one);
        assert!(matches!(clocks.due(mark, HOUR), Due::AskAgain(Some(_))));
        std::thread::sleep(Duration::from_millis(5));
        clocks.resume(two);
        assert!(due_in(&clocks, mark, HOUR) >= HOUR + Duration::from_millis(5));
        // A call that starts now has nothing to make good.
        assert_eq!(due_in(&clocks, clocks.mark(), HOUR), HOUR);
    }

    #[test]
    fn time_that_stands_still_does_not_count() {
        let clocks = Clocks::default();
        let mark = clocks.mark();
        let question = clocks.stop(HOUR);
        let before = clocks.elapsed(mark);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(clocks.elapsed(mark), before);
        clocks.resume(question);
        let resumed = clocks.elapsed(mark);
        std::thread::sleep(Duration::from_millis(5));
        assert!(clocks.elapsed(mark) >= resumed + Duration::from_millis(5));
    }

    #[test]
    fn a_question_that_outlasts_an_older_one_holds_the_clocks_to_its_own_end() {
        let clocks = Clocks::default();
        let mark = clocks.mark();
        clocks.stop(Duration::from_millis(1));
        let longer = clocks.stop(HOUR);
        std::thread::sleep(Duration::from_millis(5));
        clocks.resume(longer);
        // The older one's limit had run out meanwhile.
        let stood = lock(&clocks.0).stood;
        assert!(stood >= Duration::from_millis(5), "{stood:?}");
        assert!(matches!(clocks.due(mark, HOUR), Due::At(_)));
    }

    #[test]
    fn a_question_stops_the_clocks_for_its_limit_at_most() {
        let clocks = Clocks::default();
        let mark = clocks.mark();
        let question = clocks.stop(Duration::ZERO);
        assert_eq!(due_in(&clocks, mark, HOUR), HOUR);
        clocks.resume(question);
        assert_eq!(due_in(&clocks, mark, HOUR), HOUR);
    }
}
