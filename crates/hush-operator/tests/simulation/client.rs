//! A client: its host and clock, its look-ups, and what must hold of each.

use std::{
    collections::HashMap,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hush_client::{
    Acceptance, Wanted,
    session::{
        Action, CacheError, CachedHint, Event, Host, KeptKeys, KeyNote, KeyRequest, Server, ServerUrl,
        Session, SessionError, SessionOptions, Task,
    },
};
use hush_protocol::{Code, descriptor::BlobRef};
use tokio::time::Instant;

use super::{
    dice::Dice,
    kept_hints::KeptHints,
    network,
    world::{BEGINNING, World},
};

/// The most look-ups with the same evaluation keys.
pub(crate) const LOOKUPS_PER_KEY: u32 = 5;
/// The most look-ups in one request.
pub(crate) const LOOKUPS_A_REQUEST: usize = 2;
/// The longest time of a call.
const CALL: Duration = Duration::from_secs(120);
/// The time of a call that a driver may take beyond that: a request that is under way.
const BEYOND: Duration = Duration::from_secs(60);
/// The most actions of a call.
const MOST_ACTIONS: usize = 2000;
/// The bytes of a body that arrive together.
const PIECE: usize = 4096;
/// How often a client tries to have an answer once all faults are over.
const LAST_TRIES: usize = 8;

/// The errors that a client may meet while there are faults.
const OF_FAULTS: [Code; 17] = [
    Code::Unreachable,
    Code::Timeout,
    Code::Warming,
    Code::Overloaded,
    Code::Throttled,
    Code::PartUnavailable,
    Code::TableFailed,
    Code::UnknownTable,
    Code::EpochGone,
    Code::KeyNotFound,
    Code::KeysNotKept,
    Code::KeyPreset,
    Code::NotFound,
    Code::Interrupted,
    Code::NoTables,
    Code::Internal,
    Code::Aborted,
];

/// Lives as a client: calls with faults, and a last one without, which must succeed. `secret` chooses what it looks up.
pub(crate) async fn live(world: Rc<World>, number: u64, secret: u64) {
    let mut secrets = Dice::new(secret << 8 | number);
    let skew = world.dice.borrow_mut().below(86_400 * 400);
    let host = Arc::new(Memory::new(world.start, skew));
    let tables = world.tables.all.len() as u64;
    let drawn = world.dice.borrow_mut().below(tables);
    let table = if world.plan.calls.is_some() { drawn } else { number % tables } as usize;
    let mut session = None;
    for call in 0.. {
        if world.plan.calls.map_or(world.calm.get(), |calls| call == calls) {
            break;
        }
        let (pause, count, is_new, jump) = {
            let mut dice = world.dice.borrow_mut();
            let pause = dice.time(world.plan.pause);
            (pause, 1 + dice.below(5), dice.chance(world.plan.reopens), dice.chance(5))
        };
        world.pass(pause).await;
        if is_new {
            session = None;
        }
        if jump {
            host.jump(world.dice.borrow_mut().below(86_400 * 800));
        }
        if let Err(error) = look_up(&world, number, &host, table, &mut session, count, &mut secrets).await {
            let code = error.code();
            assert!(OF_FAULTS.contains(&code), "client {number} met with {code:?}: {error}");
            assert!(world.has_faults(), "client {number} failed without a fault: {error}");
            world.tell(&format!("client {number}: failed: {}", code.word()));
            world.trace.borrow_mut().failed += 1;
        }
    }
    while !world.calm.get() {
        world.pass(Duration::from_secs(5)).await;
    }
    for tries in 1.. {
        match look_up(&world, number, &host, table, &mut session, 2, &mut secrets).await {
            Ok(()) => return,
            Err(error) => assert!(tries < LAST_TRIES, "client {number} is stuck: {error}"),
        }
        world.pass(Duration::from_secs(10)).await;
    }
}

/// Looks records up, in a session that is opened first if there is none. Checks what is found.
async fn look_up(
    world: &Rc<World>,
    number: u64,
    host: &Arc<Memory>,
    table: usize,
    session: &mut Option<Session>,
    count: u64,
    secrets: &mut Dice,
) -> Result<(), SessionError> {
    let known = &world.tables.all[table];
    let indices: Vec<_> = (0..count).map(|_| secrets.below(known.askable())).collect();
    let wanted: Vec<Wanted> = indices.iter().map(|&index| known.wanted(index)).collect();
    if session.is_none() {
        let options = SessionOptions {
            acceptance: Acceptance::of_weak(known.preset),
            max_queries: LOOKUPS_A_REQUEST,
            lookups_per_key: LOOKUPS_PER_KEY,
            timeout: Some(CALL),
            ..SessionOptions::default()
        };
        let url = ServerUrl::parse("http://localhost:7700").unwrap();
        let server = drive(world, number, Server::connect(url, options, host.clone())).await?;
        *session = Some(drive(world, number, server.open(Some(&known.name))).await?);
    }
    let open = session.as_mut().expect("it is open");
    let since = Instant::now();
    let found = drive(world, number, open.look_up(&wanted)).await?;
    assert_eq!(found.len(), indices.len());
    let found: Vec<_> = indices.into_iter().zip(found).collect();
    assert!(
        world.was_so(table, since, &found),
        "client {number}: a wrong answer of {}, or one of several epochs: {found:?}",
        known.name
    );
    world.tell(&format!("client {number}: found {count}"));
    world.trace.borrow_mut().found += 1;
    Ok(())
}

/// Drives a task over the network of the world.
async fn drive<T>(world: &Rc<World>, number: u64, mut task: Task<'_, T>) -> T {
    let start = Instant::now();
    for _ in 0..MOST_ACTIONS {
        assert!(
            start.elapsed() < CALL + BEYOND,
            "client {number} is stuck in a call of {:?}",
            start.elapsed()
        );
        match task.advance() {
            Action::Done(result) => return result,
            Action::Wait(wait) => world.pass(wait).await,
            Action::Send(request) => match network::call(world, number, &request).await {
                Err(failure) => task.fail(failure),
                Ok(arrived) => {
                    let mut wants_more = task.begin(arrived.head);
                    for piece in arrived.body.chunks(PIECE) {
                        wants_more = wants_more && task.body(piece);
                    }
                    match (wants_more, arrived.is_cut) {
                        (true, true) => task.fail(network::unreachable("connection reset")),
                        (true, false) => task.end(),
                        (false, _) => {}
                    }
                }
            },
        }
    }
    panic!("client {number} is stuck: {MOST_ACTIONS} actions of one call");
}

/// The storage and the clock of a client.
struct Memory {
    start: Instant,
    /// The seconds by which the clock is ahead.
    skew: Mutex<u64>,
    hints: KeptHints,
    keys: Mutex<HashMap<String, KeptKeys>>,
}

impl Memory {
    fn new(start: Instant, skew: u64) -> Self {
        Self { start, skew: Mutex::new(skew), hints: KeptHints::default(), keys: Mutex::default() }
    }

    /// Sets the clock.
    fn jump(&self, skew: u64) {
        *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = skew;
    }
}

impl Host for Memory {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn date(&self) -> Duration {
        let skew = *self.skew.lock().unwrap();
        BEGINNING + Duration::from_secs(skew) + self.start.elapsed()
    }

    fn report(&self, _: &Event<'_>) {}

    fn hint(&self, blob: &BlobRef) -> Result<CachedHint, CacheError> {
        Ok(self.hints.cached(blob))
    }

    fn keys(&self, request: &KeyRequest) -> Result<KeptKeys, CacheError> {
        let mut all = self.keys.lock().unwrap();
        let drawn = KeptKeys::draw(all.remove(&request.name), request, self.date().as_secs());
        all.insert(request.name.clone(), drawn.clone());
        Ok(drawn)
    }

    fn note(&self, name: &str, keys: &KeptKeys, note: KeyNote) -> Result<(), CacheError> {
        if let Some(kept) = self.keys.lock().unwrap().get_mut(name) {
            kept.note(keys, note);
        }
        Ok(())
    }

    fn newest_serial(&self, _: &str, serial: u64) -> Result<u64, CacheError> {
        Ok(serial)
    }
}
