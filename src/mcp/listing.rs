//! Following a list from page to page.

use serde_json::value::RawValue;

use crate::RpcError;
use crate::mcp::call_options::CallOptions;
use crate::mcp::error::{Error, Result};
use crate::mcp::exchange::Budget;
use crate::mcp::list::{Cursor, Item, List, Page, Stop};
use crate::mcp::params::Params;
use crate::mcp::session::Session;

impl Session {
    /// Follows all pages, under the limits of one call.
    pub(crate) fn list<T: Item>(&self) -> Result<List<T>> {
        let budget = Budget::new(self, self.limits(T::METHOD).total);
        let mut list = List::new();
        let mut seen: Vec<Cursor> = Vec::new();
        for _ in 0..self.core.options.pages {
            let options = CallOptions::new().timeout(budget.left());
            let page = match self.page::<T>(seen.last(), options) {
                // A server may declare a list and have none: that is an empty one, and says so.
                Err(error) if seen.is_empty() && is_unknown(&error) => {
                    list.stop(Stop::NotImplemented);
                    return Ok(list);
                }
                page => page.map_err(|error| whole(error, &budget))?,
            };
            let next = page.next.clone();
            let stop = match &next {
                None if page.is_cut_off => Some(Stop::UnusableCursor),
                Some(next) if seen.contains(next) => Some(Stop::RepeatedCursor),
                Some(_) if list.size() + page.size > self.core.options.list_size => {
                    Some(Stop::SizeLimit)
                }
                _ => None,
            };
            list.add(page);
            if let Some(stop) = stop {
                list.stop(stop);
                return Ok(list);
            }
            match next {
                None => return Ok(list),
                Some(next) => seen.push(next),
            }
        }
        list.stop(Stop::PageLimit);
        Ok(list)
    }

    pub(crate) fn page<T: Item>(
        &self,
        at: Option<&Cursor>,
        options: CallOptions<'_>,
    ) -> Result<Page<T>> {
        self.gate(T::METHOD, T::CAPABILITY)?;
        let params = match at {
            None => Params::of(T::METHOD),
            Some(cursor) => Params::of(T::METHOD).with("cursor", cursor.as_str())?,
        };
        let result: Box<RawValue> = self.call(params, options)?;
        Page::read(&result).map_err(|fault| Error::invalid(T::METHOD, fault))
    }
}

fn is_unknown(error: &Error) -> bool {
    error
        .rpc()
        .is_some_and(|rpc| rpc.code == RpcError::METHOD_NOT_FOUND)
}

/// Tells of the limit of the whole list, and not of what was left of it for the last page.
fn whole(mut error: Error, budget: &Budget) -> Error {
    match &mut error {
        Error::Call(crate::Error::Timeout { detail, .. }) => budget.tell(detail),
        Error::OutOfTime { after, .. } => *after = budget.total,
        _ => {}
    }
    error
}
