//! In programs without the page.

use std::sync::Arc;

use hush_server::Page;

/// There is none.
pub(super) fn page(_: usize) -> Option<Arc<dyn Page>> {
    None
}
