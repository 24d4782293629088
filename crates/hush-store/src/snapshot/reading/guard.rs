//! Guards mapped files against truncation under a running server: the table fails, and the process goes on.
//!
//! Reading a mapped page that the file has lost, or that cannot be read from the disk, raises SIGBUS, which ends a process without
//! a handler. The handler here knows the guarded ranges. It marks the range with the fault as torn and maps zeros over all of its
//! pages, so that the reader goes on. Readers check [`Guard::is_torn`] after reading and before using the result. A fault
//! elsewhere is passed to the previous handler.
//!
//! The handler allocates nothing, takes no lock, and calls only `mmap`, `sigaction` and `raise`. Linux does `mmap` as one system
//! call, which is safe in a handler.

use std::{
    io,
    ptr::{self, NonNull},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::SeqCst},
    },
};

use libc::{c_int, c_void, siginfo_t};
use memmap2::Mmap;

use crate::snapshot::system;

/// A guarded range of addresses, in a slot. Slots are reused and never freed, because the handler may walk them at any time.
struct GuardedRange {
    is_used: AtomicBool,
    /// The address of the first byte; 0 while nothing is guarded.
    start: AtomicUsize,
    /// The address behind the last page.
    end: AtomicUsize,
    is_torn: AtomicBool,
    /// The slot that was made before this one. It is set before the slot can be found, and does not change.
    next: AtomicPtr<GuardedRange>,
}

/// The slot that was made last, the first of the list.
static SLOTS: AtomicPtr<GuardedRange> = AtomicPtr::new(ptr::null_mut());
/// The handler of SIGBUS before this one was set.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A guard of a mapped file that may lose its pages.
pub(in crate::snapshot) struct Guard(&'static GuardedRange);

impl Guard {
    /// Guards a mapped file.
    ///
    /// # Errors
    /// The system's error if the handler cannot be set.
    ///
    /// # Safety
    /// The guard has to be dropped before `map`, because the handler maps zeros over all of its pages.
    pub(in crate::snapshot) unsafe fn new(map: &Mmap) -> io::Result<Self> {
        install()?;
        let slot = free_slot();
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // The address is exposed, because the handler has no other pointer to the map.
        let start = map.as_ptr().expose_provenance();
        slot.is_torn.store(false, SeqCst);
        slot.end.store(start + map.len().next_multiple_of(page), SeqCst);
        // The start is set last: from now on the handler finds the range.
        slot.start.store(start, SeqCst);
        Ok(Self(slot))
    }

    /// Returns whether a page was missing when it was read. All reads of the map since then return zeros.
    pub(in crate::snapshot) fn is_torn(&self) -> bool {
        self.0.is_torn.load(SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, SeqCst);
        self.0.is_used.store(false, SeqCst);
    }
}

/// Returns a free slot, or makes one.
fn free_slot() -> &'static GuardedRange {
    let is_free =
        |slot: &&'static GuardedRange| slot.is_used.compare_exchange(false, true, SeqCst, SeqCst).is_ok();
    slots().find(is_free).unwrap_or_else(|| {
        let slot: &'static mut GuardedRange = Box::leak(Box::new(GuardedRange {
            is_used: AtomicBool::new(true),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            is_torn: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let made = ptr::from_mut(slot);
        let push = |last| {
            // SAFETY: slots live for ever.
            unsafe { &*made }.next.store(last, SeqCst);
            Some(made)
        };
        // The update cannot fail, because `push` always returns a value.
        let _ = SLOTS.fetch_update(SeqCst, SeqCst, push);
        // SAFETY: slots live for ever, and all of their fields are atomic.
        unsafe { &*made }
    })
}

/// Returns all slots, including free ones.
fn slots() -> impl Iterator<Item = &'static GuardedRange> {
    // SAFETY: slots live for ever, and all of their fields are atomic.
    let at =
        |slot: &AtomicPtr<GuardedRange>| NonNull::new(slot.load(SeqCst)).map(|slot| unsafe { slot.as_ref() });
    std::iter::successors(at(&SLOTS), move |slot| at(&slot.next))
}

/// Sets the handler, once in the process.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros are a value of this structure of numbers; `sigaction` reads and writes it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut action) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
            // The previous handler is stored first, because the new handler reads it.
            let _ = PREVIOUS.set(action);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            // The handler runs on the thread's own stack. Rust's alternate stack for signals has only the size of what the system
            // saves there, 11 KiB with the registers of AMX, and leaves next to nothing for a handler.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            match libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) {
                0 => None,
                _ => io::Error::last_os_error().raw_os_error(),
            }
        }
    });
    failed.map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
}

/// Handles SIGBUS.
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid structure to a handler with SA_SIGINFO. A code above 0 means that the system itself raised
    // the signal, with an address.
    let (is_fault, address) = unsafe { ((*info).si_code > 0, (*info).si_addr().addr()) };
    if is_fault
        && slots()
            .find(|slot: &&GuardedRange| {
                let start = slot.start.load(SeqCst);
                start != 0 && (start..slot.end.load(SeqCst)).contains(&address)
            })
            .is_some_and(GuardedRange::tear)
    {
        return;
    }
    pass_on(signal, info, context, is_fault);
}

impl GuardedRange {
    /// Marks the range as torn and maps zeros over its pages. Returns whether the mapping succeeded.
    fn tear(&self) -> bool {
        // The mark is set first, so that no thread reads zeros and then finds the mark missing.
        self.is_torn.store(true, SeqCst);
        let start = self.start.load(SeqCst);
        let end = self.end.load(SeqCst);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: errno is the thread's own and is restored, because the interrupted code may be about to read it. The range
        // belongs to a map that outlives its guard and is only read as bytes, for which zeros are valid.
        unsafe {
            let errno = *system::error_number();
            let at = ptr::with_exposed_provenance_mut(start);
            let mapped = libc::mmap(at, end - start, libc::PROT_READ, flags, -1, 0);
            *system::error_number() = errno;
            mapped == at
        }
    }
}

/// Passes the signal to the handler that was set before this one.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    match handler {
        // A fault cannot be ignored.
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: plain system calls. The default action ends the process when this handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: the system would have called this handler with the same arguments.
        handler => unsafe {
            if previous.is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0) {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = std::mem::transmute(handler);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        },
    }
}
