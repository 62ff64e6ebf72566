//! Reservations that all need one row, made as `examples/checkout` makes them: key, stock and submission
//! in one transaction of the application.
//!
//! From its update of the stock to the end of its commit a transaction has the row for itself. What that
//! takes a lone client is the critical section; one after the other is the nominal ceiling, whatever the
//! number of clients. Beside it stands the same update alone, each in a commit of its own.

mod buyers;
mod groups;
mod shop;

use std::time::Duration;

use anyhow::Context as _;

use self::buyers::{Buyer, Sales};
use self::shop::{Manner, POOLS, Shop};
use super::arithmetic::{mean, nominal_ceiling, of_count, percentile};
use super::figures::{Figures, Wanted};
use super::latency::millis;
use super::{Context, Scenario};

/// How many buy at once.
const CLIENTS: [usize; 4] = [1, 8, 32, 64];
/// How many serve buyers who come at a rate: enough that one of them always waits for the row.
const SERVERS: usize = 8;
/// So much of the ceiling comes in.
const LOADS: [(&str, f64); 2] = [("80 %", 0.8), ("120 %", 1.2)];
/// How many buy where the ways past the row are compared.
const PAST: usize = 32;
const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// What the ways past the row cost.
pub(super) const NOTES: [&str; 4] = [
    "the critical section is a lone client's, its round trips included: a client farther from its \
     database has a longer one",
    "the row last: who gets nothing has written key and submission in vain",
    "in groups: one process commits for all who wait; they fail together, and where there is less than a \
     group asks for they have to be decided one by one",
    "pools: who finds too little in one has to try the others, and may find too little in each though all \
     together have it",
];

pub(super) async fn run(context: &Context<'_>, figures: &mut Figures) -> anyhow::Result<()> {
    let most = CLIENTS.into_iter().max().unwrap_or_default().max(PAST);
    let shop = Shop::open(context, u32::try_from(most)?).await?;
    for number in 0..context.plan.rounds {
        let mut round = Round { context, figures, shop: &shop, number };
        let ceiling = round.measure_the_row().await?;
        round.let_buyers_come(ceiling).await?;
        round.go_past_the_row().await?;
    }
    Ok(())
}

struct Round<'a> {
    context: &'a Context<'a>,
    figures: &'a mut Figures,
    shop: &'a Shop,
    number: u32,
}

impl Round<'_> {
    /// Answers the nominal ceiling.
    async fn measure_the_row(&mut self) -> anyhow::Result<f64> {
        let mut ceiling = None;
        for clients in CLIENTS {
            let case =
                if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
            let bare = self.sell(&case, clients, Manner::Bare, None).await?;
            self.figures.add(format!("{case}: the update alone"), "/s", bare.per_second());
            let sales = self.sell(&case, clients, Manner::AsTheExample, None).await?;
            self.add(&case, &sales);
            let ceiling = match ceiling {
                Some(ceiling) => ceiling,
                None => *ceiling.insert(self.add_ceiling(&sales)?),
            };
            let reached = sales.per_second() / ceiling;
            let name = format!("{case}: reserved, of the nominal ceiling");
            self.figures.target(name, "", Wanted::Told, reached);
            let behind_a_lock = self.sell(&case, clients, Manner::BehindALock, None).await?;
            let waits = behind_a_lock.lock_waits();
            for (name, share) in SHARES {
                let wait = percentile(&waits, share).map(millis);
                self.figures.add_if(format!("{case}: lock wait {name}"), "ms", wait);
            }
        }
        ceiling.context("nothing was sold")
    }

    fn add_ceiling(&mut self, alone: &Sales) -> anyhow::Result<f64> {
        let critical_ms = millis(mean(&alone.critical_sections()).context("nothing was sold")?);
        let ceiling = nominal_ceiling(critical_ms).context("the critical section takes no time")?;
        self.figures.add("critical section, mean", "ms", critical_ms);
        self.figures.add("nominal ceiling", "/s", ceiling);
        Ok(ceiling)
    }

    async fn let_buyers_come(&mut self, ceiling: f64) -> anyhow::Result<()> {
        for (name, share) in LOADS {
            let case = format!("{name} of the ceiling comes in");
            let rate = Some(ceiling * share);
            let sales = self.sell(&case, SERVERS, Manner::AsTheExample, rate).await?;
            self.add(&case, &sales);
            let left = sales.queue.last().map_or(0.0, |(_, waiting)| *waiting);
            self.figures.add(format!("{case}: waiting at the end"), "", left);
            self.figures.course(&format!("{case}: waiting"), "", sales.queue);
        }
        Ok(())
    }

    async fn go_past_the_row(&mut self) -> anyhow::Result<()> {
        let pools = format!("{POOLS} pools");
        for (name, manner) in [("the row last", Manner::RowLast), (&pools, Manner::Pools)] {
            let case = format!("{PAST} clients, {name}");
            let sales = self.sell(&case, PAST, manner, None).await?;
            self.add(&case, &sales);
        }
        let case = format!("{PAST} clients, in groups");
        let buyers = groups::buyers(self.shop, PAST).await?;
        let sales = self.serve(&case, buyers, None, self.context.plan.duration).await?;
        self.add(&case, &sales);
        Ok(())
    }

    /// The update alone is measured for a part of the time, as all limits are.
    async fn sell(
        &mut self,
        case: &str,
        clients: usize,
        manner: Manner,
        rate: Option<f64>,
    ) -> anyhow::Result<Sales> {
        let mut buyers = Vec::with_capacity(clients);
        for _ in 0..clients {
            let session = self.shop.session().await?;
            buyers.push(Buyer::Alone { shop: self.shop.clone(), session, manner });
        }
        let plan = self.context.plan;
        let duration = if manner == Manner::Bare { plan.alone() } else { plan.duration };
        self.serve(case, buyers, rate, duration).await
    }

    async fn serve(
        &mut self,
        case: &str,
        buyers: Vec<Buyer>,
        rate: Option<f64>,
        duration: Duration,
    ) -> anyhow::Result<Sales> {
        self.context.tell(Scenario::HotRow, self.number, case);
        self.shop.restock().await?;
        let sales = buyers::serve(self.context, buyers, rate, duration).await?;
        self.shop.look().await?;
        Ok(sales)
    }

    fn add(&mut self, case: &str, sales: &Sales) {
        let figures = &mut *self.figures;
        figures.add(format!("{case}: reserved"), "/s", sales.per_second());
        figures.add(format!("{case}: errors"), "", of_count(sales.errors));
        let latencies = sales.latencies();
        for (name, share) in SHARES {
            let latency = percentile(&latencies, share).map(millis);
            figures.add_if(format!("{case}: {name}"), "ms", latency);
        }
        sales.used.add_to(figures, case, sales.count());
    }
}
