//! What the facts mean.

use std::time::Duration;

use super::{
    Backlog, ClockOffset, DeadRows, Facts, Finding, HolderKind, Level, Partitions, Reading,
    SlotsOutOfStep, SnapshotHolder, Snapshots, Stray, StrayKind, Upkeep, WakeUps,
};

/// From when on something is told.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// How long a transaction may be open.
    pub transaction: Duration,
    /// How long a delivery may be due.
    pub due: Duration,
    /// How far the clocks may be apart.
    pub clock: Duration,
    /// How many dead rows a table may have. It has to have more of them than live ones, too.
    pub dead_rows: u64,
    /// How many transactions a replication slot may be behind: it knows no time.
    pub slot_transactions: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            transaction: Duration::from_mins(5),
            due: Duration::from_mins(1),
            clock: Duration::from_secs(2),
            // Vacuum starts at 10,000 in the hottest table: it does not come through.
            dead_rows: 50_000,
            slot_transactions: 1_000_000,
        }
    }
}

/// A finding a matter, in the order in which a person should read them.
#[must_use]
pub fn judge(facts: &Facts, thresholds: &Thresholds) -> Vec<Finding> {
    vec![
        worker(&facts.upkeep, &facts.backlog, thresholds),
        read("hold", &facts.hold, |it| hold(*it)),
        read("due", &facts.backlog, |it| due(it, thresholds)),
        read("wake_ups", &facts.wake_ups, |it| wake_ups(*it)),
        read("clock", &facts.clock, |it| clock(*it, thresholds)),
        read("old_snapshot", &facts.snapshots, |it| snapshots(it, thresholds)),
        read("dead_rows", &facts.dead_rows, |it| dead_rows(it, thresholds)),
        read("invalid_index", &facts.invalid_indexes, |it| invalid_indexes(it)),
        read("missing_partition", &facts.partitions, missing_partitions),
        read("overdue_partition", &facts.partitions, overdue_partitions),
        read("slots", &facts.slots, |it| slots(it)),
        read("strays", &facts.strays, |it| strays(it)),
    ]
}

fn read<T>(
    check: &'static str,
    reading: &Reading<T>,
    judge: impl FnOnce(&T) -> Finding,
) -> Finding {
    match reading {
        Ok(fact) => judge(fact),
        Err(why) => Finding::warning(
            check,
            format!("this could not be read: {why}"),
            "Run it again. If it stays, look whether this user may read the tables, and whether the \
             database is so busy that a plain read takes more than 10 s.",
        ),
    }
}

fn worker(
    upkeep: &Reading<Upkeep>,
    backlog: &Reading<Backlog>,
    thresholds: &Thresholds,
) -> Finding {
    read("worker", upkeep, |upkeep| {
        let who = upkeep.holder.as_deref().unwrap_or("nobody");
        if upkeep.lives {
            return Finding::fine("worker", format!("a worker lives: {who} does the upkeep"));
        }
        let found = match &upkeep.holder {
            None => {
                "no worker lives: none has ever run here, or the last one was stopped".to_owned()
            }
            Some(_) => format!(
                "no worker lives: the last one, {who}, was there until {} ago",
                about(upkeep.ended_ago)
            ),
        };
        let what_to_do = "Start a worker: `fencepost-worker` or `fencepost serve`. If one runs, read its \
                          log: it cannot reach this database, or has another one.";
        let late = backlog.as_ref().ok().and_then(|backlog| backlog.oldest);
        if late.is_some_and(|oldest| oldest.age > thresholds.due) {
            Finding::critical("worker", found, what_to_do)
        } else {
            Finding::warning("worker", found, what_to_do)
        }
    })
}

fn hold(is_held: bool) -> Finding {
    if !is_held {
        return Finding::fine("hold", "no hold is on");
    }
    Finding::warning(
        "hold",
        "a hold is on: nothing is claimed and nothing is delivered",
        "`fencepost hold status` says since when and what waits, `fencepost hold off` lets it go.",
    )
}

fn due(backlog: &Backlog, thresholds: &Thresholds) -> Finding {
    let Some(oldest) = backlog.oldest else { return Finding::fine("due", "nothing is due") };
    let count = if backlog.more {
        format!("{} deliveries or more", backlog.due)
    } else {
        format!("{} deliveries", backlog.due)
    };
    let found = format!(
        "{count} are due; the oldest has been for {}, of endpoint {}",
        about(oldest.age),
        oldest.endpoint
    );
    if oldest.age <= thresholds.due {
        Finding::fine("due", found)
    } else if oldest.at_cap {
        Finding::warning(
            "due",
            format!("{found}, which has all its slots in use"),
            "Its receiver is slower than what is submitted for it. Raise `in_flight_max` of the endpoint if \
             its owner agrees; other endpoints do not wait for it.",
        )
    } else {
        Finding::critical(
            "due",
            found,
            "Look whether workers live and what their logs say, whether all their places are taken \
             (`--worker-concurrency`), and at old_snapshot and dead_rows here.",
        )
    }
}

fn wake_ups(wake_ups: Option<WakeUps>) -> Finding {
    match wake_ups {
        None => Finding::fine("wake_ups", "this database needs none"),
        Some(WakeUps::Arrive) => Finding::fine("wake_ups", "notifications come back"),
        Some(WakeUps::DoNotArrive) => Finding::warning(
            "wake_ups",
            "a notification did not come back: workers find what is due by polling alone",
            "A transaction pooler lies between. Give the workers an address that leads to PostgreSQL \
             directly, or accept that a delivery begins up to a poll interval late.",
        ),
    }
}

fn clock(clock: ClockOffset, thresholds: &Thresholds) -> Finding {
    let found = format!(
        "the database's clock is {} ms {} of this machine's, give or take {} ms",
        clock.offset_ms.unsigned_abs(),
        if clock.offset_ms < 0 { "behind" } else { "ahead" },
        clock.uncertainty.as_millis()
    );
    let beyond = thresholds.clock + clock.uncertainty;
    if u128::from(clock.offset_ms.unsigned_abs()) <= beyond.as_millis() {
        return Finding::fine("clock", found);
    }
    Finding::warning(
        "clock",
        found,
        "Due times and leases go by the database's clock, and ids by the api's. Signatures carry the \
         database's time: receivers refuse one that is minutes off. Mend the time service (NTP) of \
         whichever machine is wrong.",
    )
}

fn snapshots(snapshots: &Snapshots, thresholds: &Thresholds) -> Finding {
    let is_old = |holder: &&SnapshotHolder| match holder.age {
        Some(age) => age > thresholds.transaction,
        None => holder.transactions > thresholds.slot_transactions,
    };
    let blind = if snapshots.sees_all {
        ""
    } else {
        " (sessions of other users are hidden from this one: grant it pg_read_all_stats)"
    };
    let mut old = snapshots.holders.iter().filter(is_old);
    let Some(oldest) = old.next() else {
        return Finding::fine("old_snapshot", format!("no transaction is old{blind}"));
    };
    let age = match oldest.age {
        Some(age) => format!("for {}", about(age)),
        None => format!("for {} transactions", oldest.transactions),
    };
    let others = match old.count() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let name = &oldest.name;
    let (what, end) = match oldest.kind {
        HolderKind::Session => (
            format!("session {name}"),
            format!("End it if nobody needs it: select pg_terminate_backend({name});"),
        ),
        HolderKind::Prepared => (
            format!("the prepared transaction {name}"),
            "Commit it or roll it back, by COMMIT PREPARED or ROLLBACK PREPARED.".to_owned(),
        ),
        HolderKind::Slot => (
            format!("replication slot {name}"),
            "Let its consumer catch up, or drop the slot if there is none any more.".to_owned(),
        ),
    };
    let found = format!(
        "{what} has kept dead rows alive {age} ({}){others}{blind}: vacuum cannot remove what died since",
        oldest.detail
    );
    Finding::warning("old_snapshot", found, end)
}

fn dead_rows(tables: &[DeadRows], thresholds: &Thresholds) -> Finding {
    let full: Vec<String> = tables
        .iter()
        .filter(|table| table.dead >= thresholds.dead_rows && table.dead > table.live)
        .map(|table| format!("{} has {} dead rows beside {}", table.table, table.dead, table.live))
        .collect();
    if full.is_empty() {
        return Finding::fine("dead_rows", "vacuum keeps up");
    }
    Finding::warning(
        "dead_rows",
        full.join("; "),
        "Vacuum does not come through. End what old_snapshot names first; then `VACUUM` the table, and look \
         whether autovacuum is on and has workers free.",
    )
}

fn invalid_indexes(indexes: &[String]) -> Finding {
    if indexes.is_empty() {
        return Finding::fine("invalid_index", "all indexes are valid");
    }
    Finding::warning(
        "invalid_index",
        format!("not used by the database: {}", indexes.join(", ")),
        "A build of the index was interrupted. REINDEX INDEX CONCURRENTLY mends one of Fencepost's own; one \
         that somebody added, or whose name ends in _ccnew or _ccold, can be dropped.",
    )
}

fn missing_partitions(partitions: &Partitions) -> Finding {
    const CHECK: &str = "missing_partition";
    let Some(first) = partitions.missing.first() else {
        return Finding::fine(CHECK, "there is room for the days to come");
    };
    Finding::critical(
        CHECK,
        format!("{} days have no room, {first} first", partitions.missing.len()),
        "Run `fencepost migrate`, which makes it. Workers do so every hour: look whether one lives, and \
         whether its database user owns the tables.",
    )
}

fn overdue_partitions(partitions: &Partitions) -> Finding {
    const CHECK: &str = "overdue_partition";
    let Some(first) = partitions.overdue.first() else {
        return Finding::fine(CHECK, "no history is kept for longer than it should be");
    };
    let others = match partitions.overdue.len() - 1 {
        0 => String::new(),
        more => format!("; {more} later days are overdue too"),
    };
    let (why, what_to_do) = if first.owed > 0 {
        (
            format!("{} of its deliveries are owed or replayable", first.owed),
            "Nothing, if they are at an endpoint that is slow. Else enable or delete the endpoint that \
             holds them, or cancel them; the day is dropped within the hour.",
        )
    } else if first.used_by.is_empty() {
        (
            "nothing is in the way".to_owned(),
            "Workers drop it within the hour. If it stays, read the log of the one that does the upkeep.",
        )
    } else {
        let sessions: Vec<String> = first.used_by.iter().map(ToString::to_string).collect();
        (
            format!("sessions {} use its tables", sessions.join(", ")),
            "End them if nobody needs them, by pg_terminate_backend; the day is dropped within the hour.",
        )
    };
    Finding::warning(
        CHECK,
        format!("the history of {} is over and still there: {why}{others}", first.day),
        what_to_do,
    )
}

fn slots(slots: &[SlotsOutOfStep]) -> Finding {
    let Some(first) = slots.first() else {
        return Finding::fine("slots", "every endpoint's count of slots is right");
    };
    Finding::warning(
        "slots",
        format!(
            "{} endpoints count their slots wrong: {} counts {}, and {} are held",
            slots.len(),
            first.endpoint,
            first.counted,
            first.held
        ),
        "Workers count anew every 30 s. If it comes back, somebody changes rows by hand, or there is a fault \
         in Fencepost: tell us.",
    )
}

fn strays(strays: &[Stray]) -> Finding {
    if strays.is_empty() {
        return Finding::fine("strays", "every row that was looked at belongs to something");
    }
    let each = |stray: &Stray| {
        let (kind, count, example) = (kind_in_words(stray.kind), stray.count, &stray.example);
        format!("{count} {kind} (one is {example})")
    };
    let harm = strays.iter().any(|it| {
        matches!(it.kind, StrayKind::DeliveryWithoutSubmission | StrayKind::DeliveryWithoutEndpoint)
    });
    let level = if harm { Level::Critical } else { Level::Warning };
    let found = strays.iter().map(each).collect::<Vec<_>>().join("; ");
    let what_to_do = "No statement of Fencepost leaves these: rows were changed by hand, or a restore was \
                      partial. Workers make a missing schedule row by themselves; for the rest compare with \
                      a backup before anything is deleted.";
    Finding { level, ..Finding::warning("strays", found, what_to_do) }
}

fn kind_in_words(kind: StrayKind) -> &'static str {
    match kind {
        StrayKind::EndpointWithoutSchedule => "endpoints without a schedule row",
        StrayKind::ScheduleWithoutEndpoint => "schedule rows without an endpoint",
        StrayKind::SecretWithoutEndpoint => "secrets without an endpoint",
        StrayKind::DeliveryWithoutSubmission => "deliveries without a submission",
        StrayKind::DeliveryWithoutEndpoint => "deliveries without an endpoint",
        StrayKind::AttemptWithoutDelivery => "attempts without a delivery",
    }
}

/// A duration as a person says it.
fn about(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
