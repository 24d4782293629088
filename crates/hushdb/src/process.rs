//! The process itself.

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// From now on a crash leaves no image of the memory, which has secrets in it or other people's queries, and no other process of
/// the same user may look into it.
pub(crate) fn keep_memory_private() {
    // A system that knows neither has nothing to be told. The limit alone does not hold where a program takes the images.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    use rustix::process::{dumpable_behavior, getrlimit};

    use super::*;

    #[test]
    fn a_crash_leaves_no_image() {
        keep_memory_private();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
