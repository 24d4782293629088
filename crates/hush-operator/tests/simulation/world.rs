//! The server and its operator: new epochs, restarts, failed tables, a clock that jumps. It knows which epoch was served when.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::Router;
use hush_server::{Clock, ServerConfig, Throttle};
use tempfile::TempDir;
use tokio::{
    sync::watch,
    task::{JoinSet, LocalSet},
    time::Instant,
};

use super::{ALLOCATOR, client, dice::Dice, tables::Tables};

/// The time after the operator's last event by which a world is at rest, or stuck.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// The date at the beginning of a run, since 1970.
pub(crate) const BEGINNING: Duration = Duration::from_secs(1_700_000_000);
/// The time for which a run of many hours remembers what happened. No call takes that long.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A fault that a test plants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// The server puts another epoch in the place of a table than its operator believes.
    WrongEpoch,
    /// A request never ends.
    LosesRequests,
}

/// The choices of a seed for the whole run.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) clients: u64,
    /// The calls of each client before the last one; `None` for as many as there is time for before all faults end.
    pub(crate) calls: Option<u64>,
    /// The longest time between two calls of a client.
    pub(crate) pause: Duration,
    /// The number of events that the operator brings about.
    events: u64,
    /// The time between two events, each then a new epoch; `None` for events of all kinds at any time.
    pace: Option<Duration>,
    /// How many in a hundred messages meet with each fault of the network.
    pub(crate) faults: u64,
    /// The longest way of a message.
    pub(crate) slowest: Duration,
    /// How often a client has a new process, in a hundred calls.
    pub(crate) reopens: u64,
    config: ServerConfig,
    /// Whether keys are kept in a file, and outlive the server.
    keeps_keys: bool,
    pub(crate) planted: Option<Planted>,
}

impl Plan {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let seconds = Duration::from_secs;
        let slow = dice.chance(20);
        let throttle = Throttle { queries_per_second: 2, burst: 8 };
        let config = ServerConfig {
            epoch_window: dice.one_of(&[Duration::ZERO, seconds(1), seconds(60)]),
            max_queue: dice.one_of(&[4, 1024]),
            max_queries: 4,
            client_share: 100,
            open_keys: dice.one_of(&[1, 2, 256]),
            max_key_bytes: dice.one_of(&[1 << 20, 4 << 30]),
            // Longer than a response and the next request take.
            key_lifetime: dice.one_of(&[seconds(60), seconds(30 * 24 * 3600)]),
            throttle: dice.chance(20).then_some(throttle),
            ..ServerConfig::default()
        };
        Self {
            clients: 1 + dice.below(3),
            calls: Some(1 + dice.below(4)),
            pause: seconds(20),
            events: dice.below(6),
            pace: None,
            faults: dice.one_of(&[0, 1, 4, 15]),
            slowest: if slow { seconds(20) } else { Duration::from_millis(300) },
            reopens: dice.one_of(&[0, 30]),
            keeps_keys: dice.chance(10),
            config,
            planted: None,
        }
    }

    /// Returns the plan of hours in which one server has a new epoch each second, and each table has a client. The server has room
    /// for few keys, so that it is full after an hour.
    pub(crate) fn hours_of_epochs(hours: u64) -> Self {
        let config = ServerConfig {
            epoch_window: Duration::from_secs(60),
            max_queries: 4,
            client_share: 100,
            open_keys: 2,
            max_key_bytes: 8 << 20,
            key_lifetime: Duration::from_secs(1800),
            ..ServerConfig::default()
        };
        Self {
            clients: 7,
            calls: None,
            pause: Duration::from_secs(600),
            events: 3600 * hours,
            pace: Some(Duration::from_secs(1)),
            faults: 1,
            slowest: Duration::from_millis(300),
            reopens: 5,
            keeps_keys: true,
            config,
            planted: None,
        }
    }
}

/// An epoch of a table that answered, and until when.
struct Served {
    table: usize,
    epoch: usize,
    until: Option<Instant>,
}

/// A server that runs.
struct Running {
    router: Router,
    tables: hush_server::Tables,
    _background: JoinSet<()>,
}

/// The record of what happened in a run.
#[derive(Default)]
pub(crate) struct Trace {
    /// A line for each event; in a run of many hours, for each event since the last whole hour.
    pub(crate) lines: Vec<String>,
    /// The calls that found all.
    pub(crate) found: u64,
    /// The calls that ended with an error.
    pub(crate) failed: u64,
    /// The bytes that were allocated after each hour of epochs.
    pub(crate) memory: Vec<usize>,
}

/// Everything of a run.
pub(crate) struct World {
    pub(crate) tables: Rc<Tables>,
    pub(crate) plan: Plan,
    pub(crate) dice: RefCell<Dice>,
    pub(crate) start: Instant,
    /// The milliseconds in which something happens already.
    taken: RefCell<BTreeSet<u128>>,
    pub(crate) trace: RefCell<Trace>,
    running: RefCell<Option<Running>>,
    /// The seconds by which the server's clock is ahead.
    skew: Arc<AtomicU64>,
    /// Counts the ends of servers: requests under way end with theirs.
    ends: watch::Sender<u64>,
    served: RefCell<Vec<Served>>,
    /// The epoch of each table, or `None` while it does not answer.
    current: RefCell<Vec<Option<usize>>>,
    /// Whether all faults are over.
    pub(crate) calm: Cell<bool>,
    /// The bytes of a request, by what was asked of which epoch.
    pub(crate) sizes: RefCell<HashMap<String, usize>>,
    /// The look-ups that the server saw under each set of keys, and when it saw the last one.
    pub(crate) under_keys: RefCell<HashMap<Vec<u8>, (u32, Instant)>>,
    folder: Option<TempDir>,
}

impl World {
    /// Runs everything. Returns what happened.
    pub(crate) async fn live(tables: Rc<Tables>, plan: Plan, seed: u64, secret: u64) -> Trace {
        tables.network.fail(seed, plan.faults);
        let world = Rc::new(World {
            dice: RefCell::new(Dice::new(seed ^ 1 << 40)),
            start: Instant::now(),
            taken: RefCell::default(),
            trace: RefCell::default(),
            running: RefCell::default(),
            skew: Arc::default(),
            ends: watch::Sender::new(0),
            served: RefCell::default(),
            current: RefCell::new(vec![Some(0); tables.all.len()]),
            calm: Cell::new(false),
            sizes: RefCell::default(),
            under_keys: RefCell::default(),
            folder: plan.keeps_keys.then(|| tempfile::tempdir().unwrap()),
            tables,
            plan,
        });
        let all = async {
            world.begin().await;
            let mut clients = JoinSet::new();
            for number in 0..world.plan.clients {
                clients.spawn_local(client::live(world.clone(), number, secret));
            }
            world.operate().await;
            while let Some(client) = clients.join_next().await {
                client.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            }
            world.check_rest().await;
        };
        let longest = world.plan.pace.unwrap_or_default() * world.plan.events as u32 + LONGEST;
        let outcome = LocalSet::new().run_until(tokio::time::timeout(longest, all)).await;
        assert!(outcome.is_ok(), "stuck: {:#?}", world.trace.borrow().lines);
        world.trace.take()
    }

    /// Returns whether anything in this world may fail.
    pub(crate) fn has_faults(&self) -> bool {
        let limits = self.plan.config.throttle.is_some() || self.plan.config.max_queue < 8;
        self.plan.faults > 0 || self.plan.events > 0 || limits
    }

    /// Notes an event.
    #[expect(clippy::print_stdout, reason = "whoever runs a seed again asks for it")]
    pub(crate) fn tell(&self, event: &str) {
        let line = format!("{} ms {event}", self.start.elapsed().as_millis());
        if std::env::var_os("HUSHDB_TRACE").is_some() {
            println!("{line}");
        }
        self.trace.borrow_mut().lines.push(line);
    }

    /// Waits for about `time`, to a millisecond in which nothing else happens.
    pub(crate) async fn pass(&self, time: Duration) {
        let mut at = (self.start.elapsed() + time).as_millis() + 1;
        while !self.taken.borrow_mut().insert(at) {
            at += 1;
        }
        tokio::time::sleep_until(self.start + Duration::from_millis(at as u64)).await;
    }

    /// Returns the endpoints of the server that runs, and a receiver that changes when it ends.
    pub(crate) fn server(&self) -> Option<(Router, watch::Receiver<u64>)> {
        let router = self.running.borrow().as_ref()?.router.clone();
        Some((router, self.ends.subscribe()))
    }

    /// Starts a server, and has it load the tables.
    async fn begin(&self) {
        let tables = hush_server::Tables::new();
        self.tables.all.iter().for_each(|table| tables.announce(&table.name));
        let keys_path = self.folder.as_ref().map(|folder| folder.path().join("keys"));
        let (start, skew) = (self.start, self.skew.clone());
        let key_clock = Clock::new(move || {
            let ahead = Duration::from_secs(skew.load(Ordering::Relaxed));
            SystemTime::UNIX_EPOCH + BEGINNING + start.elapsed() + ahead
        });
        let config = ServerConfig { keys_path, key_clock, ..self.plan.config.clone() };
        let (router, _background) = hush_server::in_process(&tables, config).await.unwrap();
        *self.running.borrow_mut() = Some(Running { router, tables, _background });
        let current = self.current.borrow().clone();
        for (table, epoch) in current.into_iter().enumerate() {
            self.pass(Duration::ZERO).await;
            self.put(table, epoch);
        }
    }

    /// Ends the server as a kill does.
    async fn end(&self) {
        let ended = self.running.take();
        self.ends.send_modify(|ends| *ends += 1);
        let now = Instant::now();
        for served in self.served.borrow_mut().iter_mut() {
            served.until.get_or_insert(now);
        }
        let mut background = ended.expect("it runs")._background;
        background.shutdown().await;
    }

    /// Serves an epoch of a table from now on, or has the table fail.
    fn put(&self, table: usize, epoch: Option<usize>) {
        let now = Instant::now();
        let window = self.plan.config.epoch_window;
        for served in self.served.borrow_mut().iter_mut().filter(|served| served.table == table) {
            served.until.get_or_insert(now + window);
        }
        self.current.borrow_mut()[table] = epoch;
        let known = &self.tables.all[table];
        let running = self.running.borrow();
        let running = running.as_ref().expect("it runs");
        match epoch {
            Some(epoch) => {
                self.served.borrow_mut().push(Served { table, epoch, until: None });
                let is_planted = self.plan.planted == Some(Planted::WrongEpoch);
                let epoch = if is_planted { (epoch + 1) % known.epochs.len() } else { epoch };
                running.tables.insert(&known.name, known.epochs[epoch].clone()).unwrap();
            }
            None => running.tables.fail(&known.name, "its disk is broken"),
        }
        self.tell(&format!("{} is {epoch:?}", known.name));
    }

    /// Does what an operator does, then ends all faults.
    async fn operate(&self) {
        for past in 0..self.plan.events {
            if self.plan.pace.is_some() && past > 0 && past.is_multiple_of(3600) {
                self.forget();
                self.trace.borrow_mut().memory.push(ALLOCATOR.current_usage());
            }
            let wait = self.dice.borrow_mut().time(Duration::from_secs(30));
            self.pass(self.plan.pace.unwrap_or(wait)).await;
            let (event, table, epoch) = {
                let mut dice = self.dice.borrow_mut();
                let table = dice.below(self.tables.all.len() as u64) as usize;
                (dice.below(10), table, dice.below(self.tables.all[table].epochs.len() as u64) as usize)
            };
            match event {
                _ if self.plan.pace.is_some() => self.put(table, Some(epoch)),
                0 => self.put(table, None),
                1 | 2 => {
                    self.end().await;
                    self.tell("the server has ended");
                    let down = self.dice.borrow_mut().time(Duration::from_secs(10));
                    self.pass(down).await;
                    self.begin().await;
                }
                3 => {
                    let skew = self.dice.borrow_mut().below(86_400 * 800);
                    self.skew.store(skew, Ordering::Relaxed);
                    self.tell(&format!("the server's clock is {skew} seconds ahead"));
                }
                _ => self.put(table, Some(epoch)),
            }
        }
        let failed: Vec<_> = self.current.borrow().iter().map(Option::is_none).collect();
        for table in (0..failed.len()).filter(|&table| failed[table]) {
            self.pass(Duration::ZERO).await;
            self.put(table, Some(0));
        }
        self.calm.set(true);
        self.tables.network.fail(0, 0);
        self.tell("all faults have ended");
    }

    /// Forgets what happened so long ago that no call is of that time.
    fn forget(&self) {
        let now = Instant::now();
        let is_near = |time: Instant| now < time + REMEMBERED;
        self.served.borrow_mut().retain(|served| served.until.is_none_or(is_near));
        self.under_keys.borrow_mut().retain(|_, (_, last)| is_near(*last));
        self.taken.borrow_mut().retain(|&at| at >= self.start.elapsed().as_millis());
        self.trace.borrow_mut().lines.clear();
    }

    /// Returns whether the records of each request are what some epoch had that answered between `since` and now. Unless the table
    /// changes record by record, all requests of a call must have met the same epoch.
    pub(crate) fn was_so(&self, table: usize, since: Instant, found: &[(u64, Option<Vec<u8>>)]) -> bool {
        let served = self.served.borrow();
        let known = &self.tables.all[table];
        let answered =
            |served: &Served| served.table == table && served.until.is_none_or(|until| until >= since);
        let then = || served.iter().filter(|served| answered(served));
        let together = if known.changes() { client::LOOKUPS_A_REQUEST } else { found.len() };
        found.chunks(together).all(|some| {
            then().any(|served| {
                some.iter().all(|(index, value)| known.expected(served.epoch, *index) == *value)
            })
        })
    }

    /// Checks that nothing is left of the requests: neither queries nor memory.
    async fn check_rest(&self) {
        let metrics = super::network::text(self, "/metrics").await;
        for line in metrics.lines().filter(|line| line.starts_with("hush_queue_depth")) {
            assert!(line.ends_with(" 0"), "queries are left: {line}");
        }
        super::network::text(self, "/readyz").await;
    }
}
