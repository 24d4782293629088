//! Mapped files that shrink under a running server: the table fails, and the process goes on.
//!
//! A read of a mapped page that its file no longer has, or that cannot be read from the disk, raises SIGBUS, which ends a process
//! that does not handle it. The handler here knows the ranges that are guarded. It marks the one with the fault as torn, and puts
//! zeros in place of all of its pages, so that the reader goes on. Readers ask [`Guard::is_torn`] after they have read and before
//! they use the result. A fault elsewhere goes to the handler that was there before.
//!
//! The handler allocates nothing, takes no lock, and calls `mmap`, `sigaction` and `raise` alone. Linux does `mmap` as one system
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

/// A guarded range of addresses. Slots are used again and never freed: the handler may walk them at any time.
struct GuardedRange {
    is_used: AtomicBool,
    /// Address of the first byte; 0 while nothing is guarded.
    start: AtomicUsize,
    /// Address behind the last page.
    end: AtomicUsize,
    is_torn: AtomicBool,
    /// The slot that was made before this one. Set before the slot can be found, and never again.
    next: AtomicPtr<GuardedRange>,
}

/// The slot that was made last.
static SLOTS: AtomicPtr<GuardedRange> = AtomicPtr::new(ptr::null_mut());
/// The handler of the signal before this one.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapped file that may lose its pages.
pub(in crate::snapshot) struct Guard(&'static GuardedRange);

impl Guard {
    /// Guards a mapped file.
    ///
    /// # Errors
    /// What the system says where no handler can be set.
    ///
    /// # Safety
    /// The guard is dropped before `map`: the handler writes over all of its pages.
    pub(in crate::snapshot) unsafe fn new(map: &Mmap) -> io::Result<Self> {
        install()?;
        let slot = free_slot();
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        // Exposed, for the handler has no other pointer to it.
        let start = map.as_ptr().expose_provenance();
        slot.is_torn.store(false, SeqCst);
        slot.end.store(start + map.len().next_multiple_of(page), SeqCst);
        // Last: from now on the handler finds it.
        slot.start.store(start, SeqCst);
        Ok(Self(slot))
    }

    /// Returns whether a page was not there when it was read. All that was read from then on is zeros.
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

/// Takes a slot that nobody uses, or makes one.
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
        // It never says no.
        let _ = SLOTS.fetch_update(SeqCst, SeqCst, push);
        // SAFETY: slots live for ever, and all of their fields are atomic.
        unsafe { &*made }
    })
}

/// Returns all slots, those that are not used among them.
fn slots() -> impl Iterator<Item = &'static GuardedRange> {
    // SAFETY: slots live for ever, and all of their fields are atomic.
    let at =
        |slot: &AtomicPtr<GuardedRange>| NonNull::new(slot.load(SeqCst)).map(|slot| unsafe { slot.as_ref() });
    std::iter::successors(at(&SLOTS), move |slot| at(&slot.next))
}

/// Sets the handler, once.
fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    let set = || {
        // SAFETY: all zeros are a value of this structure of numbers; `sigaction` reads and writes it.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut action) != 0 {
                return io::Error::last_os_error().raw_os_error();
            }
            // Before the handler is there, which asks for it.
            let _ = PREVIOUS.set(action);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            // On the stack that the thread has. Beside it Rust gives threads one for signals, which is as long as what the system
            // saves there: with the registers of AMX, 11 KiB, and next to nothing for a handler.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            match libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) {
                0 => None,
                _ => io::Error::last_os_error().raw_os_error(),
            }
        }
    };
    INSTALLED.get_or_init(set).map_or(Ok(()), |error| Err(io::Error::from_raw_os_error(error)))
}

/// Handles SIGBUS.
extern "C" fn on_bus_error(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands a valid structure to a handler with SA_SIGINFO. A code above 0 says that the system raised the
    // signal itself, with an address.
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
    /// Marks the range as torn, and puts zeros in place of its pages. Whether that went well.
    fn tear(&self) -> bool {
        // First: no thread may read zeros and then find the mark missing.
        self.is_torn.store(true, SeqCst);
        let start = self.start.load(SeqCst);
        let end = self.end.load(SeqCst);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: errno is the thread's own, and what was interrupted may be about to read it. The range is that of a map that
        // lives as long as its guard, is only read, and is read as bytes, for which zeros are values.
        unsafe {
            let errno = *libc::__errno_location();
            let at = ptr::with_exposed_provenance_mut(start);
            let mapped = libc::mmap(at, end - start, libc::PROT_READ, flags, -1, 0);
            *libc::__errno_location() = errno;
            mapped == at
        }
    }
}

/// Does what was done with the signal before there was a handler here.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, is_fault: bool) {
    let previous = PREVIOUS.get();
    let handler = previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    match handler {
        // A fault cannot be ignored.
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the default ends the process, as soon as this handler returns.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
        // SAFETY: the system had this handler called with these arguments.
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
