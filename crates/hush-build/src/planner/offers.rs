//! The tables that some records could have: protocols, parameter sets, forms, columns, tiers.

use hush_engine::{Progress, host_batch, server_bytes};
use hush_he::params::{MIN_SECURITY_BITS, unknown_preset};
use hush_protocol::{
    Protocol, ProtocolError,
    any_page::{Slots, TableParams},
    descriptor::Descriptor,
    facts::DbForm,
    presets::presets_of,
    ring_keys::LOOKUPS_PER_KEY,
};
use rayon::prelude::*;
use serde::Serialize;

use super::{Clients, Machine, network::full_flights};
use crate::builder::{BuildError, BuildOptions, Lengths, Plan, Tiers};

const FORMS: [DbForm; 2] = [DbForm::Evaluation, DbForm::Symbols];
/// The columns that are tried, as multiples of those that suit a table. Fewer columns make a shorter query, and take more memory.
const COLUMNS: [f64; 6] = [1.0 / 16.0, 0.125, 0.25, 0.5, 2.0, 4.0];
/// A table is left out if another one is better by as much as this in nothing, and as good in all.
const AS_GOOD: f64 = 1.01;

/// A table that some records could have, and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Offer {
    /// The protocol.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub protocol: Protocol,
    /// The parameter set.
    pub preset: &'static str,
    /// How plaintexts are kept, where there is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub form: Option<DbForm>,
    /// The shape of the first segment.
    pub geometry: Geometry,
    /// Lengths at which tiers end; the last is the longest value.
    pub tiers: Vec<usize>,
    /// Bytes of a query.
    pub bytes_up: u64,
    /// Bytes of its answer.
    pub bytes_down: u64,
    /// Bytes that every client uploads once, and anew after some look-ups: its evaluation keys.
    pub setup_bytes_up: u64,
    /// Bytes that every client downloads for every epoch: the hint.
    pub setup_bytes_down: u64,
    /// Bytes of a server's memory, with the keys of clients.
    pub server_bytes: u64,
    /// Seconds of a server for a single look-up.
    pub seconds: f64,
    /// Look-ups a second at the best batch.
    pub queries_per_second: f64,
    /// The batch of these times.
    pub batch: usize,
    /// Security of the parameter set, in bits.
    pub security_bits: f64,
    /// log2 of the probability that an honest answer decodes wrongly.
    pub failure_log2: f64,
    /// The data that a server can link.
    pub linkable: Linkable,
}

/// The shape of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Geometry {
    /// Columns (D0).
    pub columns: usize,
    /// Blocks.
    pub blocks: usize,
    /// Bytes of a slot.
    pub slot_bytes: usize,
}

/// The data that a server can link, beyond what the network tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Linkable {
    /// Nothing: queries have nothing in common.
    Nothing,
    /// The look-ups of a client, which name its evaluation keys.
    Lookups,
}

impl Offer {
    /// Returns the offer for an existing table.
    ///
    /// # Errors
    /// [`ProtocolError`] if its description is invalid.
    pub fn of(table: &Descriptor, machine: &Machine, clients: Clients) -> Result<Self, ProtocolError> {
        Ok(Self::new(&table.params()?, &table.tier_ends(), machine, clients))
    }

    /// Creates the offer for `table`, whose tiers end at `ends`.
    pub(super) fn new(table: &TableParams, ends: &[usize], machine: &Machine, clients: Clients) -> Self {
        let facts = table.facts();
        let most = host_batch(table);
        let batches = (0..).map(|power| 1usize << power).take_while(|&batch| batch < most).chain([most]);
        let rates = batches.map(|batch| (batch as f64 / machine.answer_seconds(table, batch), batch));
        let (queries_per_second, batch) = rates.max_by(|a, b| a.0.total_cmp(&b.0)).expect("a batch of one");
        let has_forms = FORMS.iter().all(|&form| table.base().has_form(form));
        let shape = facts.shape;
        Self {
            protocol: facts.protocol,
            preset: facts.preset,
            form: has_forms.then(|| table.database().form()),
            geometry: Geometry { columns: shape.columns, blocks: shape.blocks, slot_bytes: shape.slot_bytes },
            tiers: ends.to_vec(),
            bytes_up: facts.query.total() as u64,
            bytes_down: facts.answer_bytes as u64,
            setup_bytes_up: facts.key_bytes as u64,
            setup_bytes_down: facts.hint_bytes,
            server_bytes: server_bytes(table, clients.count),
            seconds: machine.answer_seconds(table, 1),
            queries_per_second,
            batch,
            security_bits: facts.security_bits,
            failure_log2: facts.log2_failure,
            linkable: if facts.keys.is_some() { Linkable::Lookups } else { Linkable::Nothing },
        }
    }

    /// Returns the bytes that a look-up sends and receives, with its share of what is sent once.
    pub fn bytes(&self, lookups: f64) -> f64 {
        let once = self.setup_bytes_up as f64 * keys_sent(lookups) + self.setup_bytes_down as f64;
        (self.bytes_up + self.bytes_down) as f64 + once / lookups
    }

    /// Returns the bytes that are sent once.
    pub fn setup_bytes(&self) -> u64 {
        self.setup_bytes_up + self.setup_bytes_down
    }

    /// Returns the options of `build` that make this table, with their values. Names are those of the command line, without dashes.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![("protocol", self.protocol.to_string()), ("preset", self.preset.to_owned())];
        // Columns change nothing of what is downloaded as it is.
        if self.protocol.page().has_columns() && self.bytes_up > 0 {
            options.push(("columns", self.geometry.columns.to_string()));
        }
        options.extend(self.form.map(|form| ("form", form.to_string())));
        options.push(match &self.tiers[..] {
            [_] => ("max-tiers", "1".into()),
            ends => {
                let ends: Vec<String> = ends.iter().map(usize::to_string).collect();
                ("tiers", ends.join(","))
            }
        });
        options
    }

    /// Returns everything that counts and should be small.
    fn costs(&self) -> [f64; 7] {
        [
            self.bytes_up as f64,
            self.bytes_down as f64,
            self.setup_bytes() as f64,
            self.server_bytes as f64,
            self.seconds,
            1.0 / self.queries_per_second,
            f64::from(self.linkable as u8),
        ]
    }

    /// Returns whether the other one is as good in everything, and better in something.
    fn is_dominated_by(&self, other: &Self) -> bool {
        let both = || other.costs().into_iter().zip(self.costs());
        both().all(|(other, own)| other <= own * AS_GOOD) && both().any(|(other, own)| other * AS_GOOD < own)
    }
}

/// Returns how many times a client sends its evaluation keys for so many look-ups: anew after [`LOOKUPS_PER_KEY`].
pub(super) fn keys_sent(lookups: f64) -> f64 {
    (lookups / f64::from(LOOKUPS_PER_KEY)).ceil().max(1.0)
}

/// Returns the offers that no other dominates.
pub fn undominated(offers: &[Offer]) -> Vec<Offer> {
    let mut best: Vec<Offer> = offers
        .iter()
        .filter(|offer: &&Offer| !offers.iter().any(|other| offer.is_dominated_by(other)))
        .cloned()
        .collect();
    best.dedup_by(|a, b| a.costs() == b.costs());
    best
}

/// Returns the parameter sets of a protocol that reach the least security of this program.
pub(super) fn secure_presets(protocol: Protocol) -> Vec<&'static str> {
    let secure = presets_of(protocol).into_iter().filter(|set| set.security_bits >= MIN_SECURITY_BITS);
    secure.map(|set| set.name).collect()
}

/// Returns every table that records of these lengths could have, as far as `options` leave a choice; `linkable` if queries may name
/// keys. Or why there is none.
pub(crate) fn plans(
    lengths: &Lengths,
    by_key: bool,
    options: &BuildOptions,
    linkable: bool,
    progress: &dyn Progress,
) -> Result<Vec<Plan>, BuildError> {
    // What is named is allowed.
    let linkable =
        linkable || options.protocol.is_some() || options.preset.is_some() || options.form.is_some();
    let is_asked = |own: &Protocol| match options.protocol {
        Some(asked) => asked == *own,
        None => options.columns.is_none() || own.page().has_columns(),
    };
    let protocols: Vec<_> = Protocol::ALL
        .iter()
        .copied()
        .filter(is_asked)
        .map(|protocol: Protocol| {
            let sets = sets(protocol, options).into_iter().filter(|set| linkable || !has_keys(protocol, set));
            (protocol, sets.collect::<Vec<_>>())
        })
        .collect();
    if let (true, Some(unknown)) = (protocols.iter().all(|(_, sets)| sets.is_empty()), &options.preset) {
        return Err(ProtocolError::from(unknown_preset(unknown)).into());
    }
    progress.start("plan", protocols.len() as u64, "protocols");
    let of_each = protocols.par_iter().with_max_len(1).map(|(protocol, sets)| {
        progress.check()?;
        let found = of_protocol(lengths, by_key, *protocol, sets, options);
        progress.advance(1);
        found
    });
    all_or_why_none(of_each.collect::<Vec<_>>())
}

/// Returns the tables of a protocol with these parameter sets, or why there is none.
fn of_protocol(
    lengths: &Lengths,
    by_key: bool,
    protocol: Protocol,
    sets: &[String],
    options: &BuildOptions,
) -> Result<Vec<Plan>, BuildError> {
    let mut own = BuildOptions { protocol: Some(protocol), ..options.clone() };
    let is_free = options.protocol.is_none() && matches!(options.tiers, Tiers::AtMost(_));
    // All keys are in a table's first tier: where this is a single block, a query grows with them, and tiers save nothing of it.
    if is_free && !protocol.page().has_columns() {
        own.tiers = Tiers::AtMost(1);
    }
    let mut ends: Option<Vec<usize>> = None;
    let kinds = sets.iter().flat_map(|set| forms(options).into_iter().map(move |form| (set, form)));
    let of_each = kinds.map(|(set, form)| {
        let own = BuildOptions { preset: Some(set.clone()), form, ..own.clone() };
        let found = variants(lengths, by_key, &own, ends.as_deref())?;
        // To look for tiers takes time, and those that suit one set suit the others about as well.
        ends = ends.take().or_else(|| found.last().map(|suitable| suitable.ends.clone()));
        Ok(found)
    });
    all_or_why_none(of_each)
}

/// Returns all tables together; if there are none, the first reason.
fn all_or_why_none(
    found: impl IntoIterator<Item = Result<Vec<Plan>, BuildError>>,
) -> Result<Vec<Plan>, BuildError> {
    let mut plans = Vec::new();
    let mut error = None;
    for found in found {
        match found {
            Ok(found) => plans.extend(found),
            Err(reason) if reason.is_cancelled() => return Err(reason),
            Err(reason) => error = error.or(Some(reason)),
        }
    }
    match error {
        Some(reason) if plans.is_empty() => Err(reason),
        _ => Ok(plans),
    }
}

/// Returns whether clients of a protocol have keys, which its queries name.
fn has_keys(protocol: Protocol, preset: &str) -> bool {
    let page = protocol.page();
    let slots = Slots { count: 1, slot_bytes: 1, by_key: false };
    let table = page.shape(preset, slots, None).and_then(|shape| page.table(preset, shape));
    table.is_ok_and(|table| table.facts().keys.is_some())
}

fn sets(protocol: Protocol, options: &BuildOptions) -> Vec<String> {
    match &options.preset {
        Some(preset) if protocol.page().has_set(preset) => vec![preset.clone()],
        Some(_) => Vec::new(),
        None => secure_presets(protocol).into_iter().map(str::to_owned).collect(),
    }
}

fn forms(options: &BuildOptions) -> Vec<Option<DbForm>> {
    options.form.map_or(FORMS.map(Some).to_vec(), |form| vec![Some(form)])
}

/// Returns the tables of a protocol, set and form: with tiers, those that end at `known` or else the cheapest, if they pay, and
/// without; each with the columns that suit it, more and fewer. What suits best is the last.
fn variants(
    lengths: &Lengths,
    by_key: bool,
    options: &BuildOptions,
    known: Option<&[usize]>,
) -> Result<Vec<Plan>, BuildError> {
    let is_free = matches!(options.tiers, Tiers::AtMost(_));
    let longest = lengths.ends().1;
    let plan = |tiers: Tiers, columns| {
        Plan::of_protocol(lengths, by_key, &BuildOptions { tiers, columns, ..options.clone() })
    };
    // Where no value has a byte, there is no end that could be named.
    let ending =
        |ends: &[usize]| if longest == 0 { options.tiers.clone() } else { Tiers::Ends(ends.to_vec()) };
    let tiers = known.map_or_else(|| options.tiers.clone(), ending);
    let suitable = plan(tiers, options.columns)?;
    let facts = suitable.params.facts();
    // Columns change nothing of what is downloaded as it is.
    let may_vary = options.columns.is_none() && facts.protocol.page().has_columns() && !facts.is_local();
    let around = COLUMNS.map(|times| ((facts.shape.columns as f64 * times) as usize).max(1));
    let around = if may_vary { &around[..] } else { &[] };
    let others = |ends: &[usize]| -> Vec<Plan> {
        let with = |columns: &usize| plan(ending(ends), Some(*columns)).ok();
        let mut plans: Vec<Plan> = around.iter().filter_map(with).collect();
        plans.extend(columns_that_fill_flights(&plans).iter().filter_map(with).collect::<Vec<_>>());
        plans
    };
    let mut plans = others(&suitable.ends);
    if is_free && suitable.ends.len() > 1 {
        plans.extend(plan(ending(&[longest]), options.columns));
        plans.extend(others(&[longest]));
    }
    plans.push(suitable);
    Ok(plans)
}

/// Returns the columns whose queries just fit in one flight, in two and so on, between those of `plans`, of which the first has the
/// fewest. The bytes of a query are a line over the columns.
fn columns_that_fill_flights(plans: &[Plan]) -> Vec<usize> {
    let point = |plan: &Plan| {
        let facts = plan.params.facts();
        (facts.shape.columns as f64, facts.query.total() as f64)
    };
    let (Some((fewest, least)), Some((most, longest))) = (plans.first().map(point), plans.last().map(point))
    else {
        return Vec::new();
    };
    let columns = |bytes: f64| fewest + (bytes - least) * (most - fewest) / (longest - least);
    let between = full_flights().filter(|&bytes| bytes > least && bytes < longest);
    between.map(|bytes| columns(bytes) as usize).collect()
}
