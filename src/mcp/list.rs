//! Lists: all pages of one, or page by page.
//!
//! A server's list comes in pages. An item that cannot be used is set aside and told, and costs
//! neither its page nor its list.

use std::ops::Deref;
use std::time::Duration;
use std::vec;

use serde_json::value::RawValue;

use crate::json::{elements, member, text};
use crate::mcp::fault::Fault;
use crate::mcp::view::{present, whole};

/// What stands in a list of a server: a tool, a resource, a template, or a prompt.
pub trait Item: Sealed {}

/// How a list of such items is asked for; sealed, as the protocol knows four.
pub trait Sealed: Sized {
    /// The method that lists them.
    const METHOD: &'static str;
    /// The member of its result that holds them.
    const MEMBER: &'static str;
    /// The capability that it needs.
    const CAPABILITY: &'static str;
    /// The member without which one cannot be used: a string.
    const KEY: &'static str;

    /// Makes one of its text.
    fn from_raw(raw: &RawValue) -> Self;
}

/// Says of a view how a list of it is asked for.
macro_rules! listed {
    ($name:ident: $method:literal, $member:literal, $capability:literal, $key:literal) => {
        impl crate::mcp::list::Item for $name {}

        impl crate::mcp::list::Sealed for $name {
            const METHOD: &'static str = $method;
            const MEMBER: &'static str = $member;
            const CAPABILITY: &'static str = $capability;
            const KEY: &'static str = $key;

            fn from_raw(raw: &serde_json::value::RawValue) -> Self {
                Self::new(raw)
            }
        }
    };
}

pub(crate) use listed;

/// A list: all pages in one.
///
/// ```
/// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
/// # let server = demo::client()?;
/// let tools = server.tools()?;
/// assert_eq!(tools.len(), 2);
/// for tool in &tools {
///     println!("{}", tool.name());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct List<T> {
    items: Vec<T>,
    unusable: Vec<Unusable>,
    stopped: Option<Stop>,
    size: usize,
}

/// One page of a list.
///
/// ```
/// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
/// # let server = demo::client()?;
/// let mut page = server.tools_page(None)?;
/// let mut tools = page.items;
/// while let Some(next) = page.next {
///     page = server.tools_page(Some(&next))?;
///     tools.extend(page.items);
/// }
/// assert_eq!(tools[1].name(), "build");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page<T> {
    /// What stands on it.
    pub items: Vec<T>,
    /// What stands on it and cannot be used.
    pub unusable: Vec<Unusable>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Cursor>,
    /// How long the page can be held for fresh (revision 2026-07-28); zero where nothing is said.
    /// Nothing is cached here.
    pub ttl: Duration,
    /// Who may share a cached page: `public`, or `private`, which is also the default.
    pub cache_scope: CacheScope,
    /// How many bytes its result took.
    pub(crate) size: usize,
    /// There is a cursor, but none that could be given back.
    pub(crate) is_cut_off: bool,
}

/// Who may share what was cached (revision 2026-07-28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheScope {
    /// Anybody.
    Public,
    /// Whoever has the same access to the server.
    #[default]
    Private,
}

/// An item that cannot be used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unusable {
    /// Its place in the page.
    pub place: usize,
    /// The member that is missing or of another type.
    pub missing: &'static str,
    /// The item as it came.
    pub raw: Box<RawValue>,
}

/// Why a list may not be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// It has more pages than the limit of pages.
    PageLimit,
    /// It takes more bytes than the limit of lists.
    SizeLimit,
    /// The server gave a cursor that it had given before.
    RepeatedCursor,
    /// The server gave a cursor that is no string and cannot be given back.
    UnusableCursor,
    /// The server declares the list and does not know the method.
    NotImplemented,
}

/// Where a page begins: a word of the server's, passed on as it came.
///
/// ```
/// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
/// # use landline::mcp::Cursor;
/// # let server = demo::client()?;
/// let first = server.tools_page(None)?;
/// let word = first.next.as_ref().map_or("", Cursor::as_str);
/// // The word goes out to the user's browser, say, and comes back with a request for more.
/// let second = server.tools_page(Some(&Cursor::new(word)))?;
/// assert_eq!(second.items[0].name(), "build");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cursor(pub(crate) String);

impl Cursor {
    /// Makes a cursor of a word that a server gave before, in the same connection.
    pub fn new(word: impl Into<String>) -> Self {
        Cursor(word.into())
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T> List<T> {
    pub(crate) fn new() -> Self {
        List {
            items: Vec::new(),
            unusable: Vec::new(),
            stopped: None,
            size: 0,
        }
    }

    /// How many bytes the results took that it was made of.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn add(&mut self, page: Page<T>) {
        self.size += page.size;
        self.items.extend(page.items);
        self.unusable.extend(page.unusable);
    }

    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stopped = Some(stop);
    }

    /// The items that cannot be used.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # let server = demo::client()?;
    /// let resources = server.resources()?;
    /// assert_eq!(resources.len(), 1);
    /// let unusable = &resources.unusable()[0];
    /// assert_eq!((unusable.place, unusable.missing), (1, "uri"));
    /// assert_eq!(unusable.raw.get(), r#"{"name":"nowhere"}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unusable(&self) -> &[Unusable] {
        &self.unusable
    }

    /// Why the list may not be complete; `None` if it is.
    ///
    /// ```
    /// # mod demo { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo.rs")); }
    /// # use landline::mcp::{Options, Stop};
    /// # let (answers, requests) = demo::server();
    /// let server = Options::new("my-tool", "1.0")
    ///     .page_limit(1)
    ///     .connect(answers, requests)?;
    /// let tools = server.tools()?;
    /// assert_eq!((tools.len(), tools.stopped()), (1, Some(Stop::PageLimit)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// The items themselves.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> vec::IntoIter<T> {
        self.items.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> std::slice::Iter<'a, T> {
        self.items.iter()
    }
}

impl<T: Item> Page<T> {
    /// Reads the result of a list's method.
    pub(crate) fn read(result: &RawValue) -> Result<Self, Fault> {
        let items = member(result, &[T::MEMBER]).and_then(|raw| elements(raw, MOST));
        let items = items.ok_or(Fault::Missing(T::MEMBER))?;
        // A cursor is a string, `""` included; an absent one or null ends the list.
        let cursor = present(result, "nextCursor");
        let next = cursor.and_then(text);
        let mut page = Page {
            items: Vec::with_capacity(items.len()),
            unusable: Vec::new(),
            size: result.get().len(),
            is_cut_off: cursor.is_some() && next.is_none(),
            next: next.map(|word| Cursor(word.into_owned())),
            ttl: ttl(result),
            cache_scope: cache_scope(result),
        };
        for (place, raw) in items.into_iter().enumerate() {
            if member(raw, &[T::KEY]).and_then(text).is_some() {
                page.items.push(T::from_raw(raw));
            } else {
                page.unusable.push(Unusable {
                    place,
                    missing: T::KEY,
                    raw: raw.to_owned(),
                });
            }
        }
        Ok(page)
    }
}

/// How long a result can be held for fresh; absent, negative or no number is not at all.
pub(crate) fn ttl(result: &RawValue) -> Duration {
    let ttl = member(result, &["ttlMs"]).and_then(whole);
    Duration::from_millis(ttl.unwrap_or(0))
}

pub(crate) fn cache_scope(result: &RawValue) -> CacheScope {
    match member(result, &["cacheScope"]).map(RawValue::get) {
        Some("\"public\"") => CacheScope::Public,
        _ => CacheScope::Private,
    }
}

// Items on one page: more are no list.
const MOST: usize = 1 << 20;
