//! The page, whose files are part of the program. The page shows which other tables the records of a table could have.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use hush_build::{
    builder::BuildOptions,
    planner::{self, Machine, Offer, Records, Wishes, undominated},
};
use hush_engine::{Served, Silent};
use hush_protocol::descriptor::Descriptor;
use hush_server::Page;
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::{
    plan::{OfferLine, command_line},
    wishes,
};

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The files of the page, and the lists of other tables.
struct Embedded {
    threads: usize,
    /// The last list for each table. The lock is held while a list is computed, so that each is computed once, one at a time.
    plans: Mutex<HashMap<String, Plan>>,
}

/// The list for one epoch.
struct Plan {
    epoch: [u8; 32],
    json: Vec<u8>,
}

/// Returns the page of a server with `threads` threads.
pub(super) fn page(threads: usize) -> Option<Arc<dyn Page>> {
    Some(Arc::new(Embedded { threads, plans: Mutex::default() }))
}

impl Page for Embedded {
    fn file(&self, path: &str) -> Option<&'static [u8]> {
        FILES.iter().find(|(own, _)| *own == path).map(|(_, bytes)| *bytes)
    }

    fn plan(&self, table: &str, served: &Served) -> Result<Vec<u8>, String> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        match plans.get(table) {
            Some(plan) if plan.epoch == served.epoch => Ok(plan.json.clone()),
            _ => {
                let json = planned(served, self.threads)?;
                plans.insert(table.to_owned(), Plan { epoch: served.epoch, json: json.clone() });
                Ok(json)
            }
        }
    }
}

/// The offers that `hushdb plan` would list for the records of a table, and the table itself.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TablePlan))]
pub(crate) struct ShownPlan {
    /// The machine of the times: its name, its threads, and is_this, which tells whether it is this server, after a measurement.
    machine: Value,
    /// The number of look-ups that share what is sent once.
    lookups: f64,
    table: Shown,
    offers: Vec<Shown>,
}

/// A table and what it costs, as `hushdb plan --json` prints it.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TableOffer))]
struct Shown {
    #[serde(flatten)]
    line: OfferLine,
    /// The options of `hushdb build` that build the table.
    options: String,
}

/// Returns what `hushdb plan` would list for the records of a table, derived from its public description, and the table itself.
fn planned(served: &Served, threads: usize) -> Result<Vec<u8>, String> {
    let descriptor = Descriptor::from_json(&served.descriptor_json).map_err(|error| error.to_string())?;
    let kept = wishes::kept_machine(threads);
    let machine = kept.as_deref().unwrap_or(Machine::reference());
    let mut wanted = Wishes::default();
    wanted.budgets.linkable = true;
    let records = Records::of(&descriptor).map_err(|error| error.to_string())?;
    let offers = planner::offers(&records, &BuildOptions::default(), &wanted, machine, &Silent)
        .map_err(|error| error.to_string())?;
    let own = Offer::of(&descriptor, machine, wanted.clients).map_err(|error| error.to_string())?;
    let shown =
        |offer: Offer| Shown { options: command_line(&offer), line: OfferLine::new(offer, &wanted.network) };
    let document = ShownPlan {
        machine: json!({ "name": machine.name, "threads": machine.threads, "is_this": kept.is_some() }),
        lookups: wanted.clients.lookups,
        table: shown(own),
        offers: undominated(&offers).into_iter().map(shown).collect(),
    };
    serde_json::to_vec(&document).map_err(|error| error.to_string())
}
