//! Applications that submit in their own transaction (G8): the checkout example as processes of the
//! operating system, the SQL function, and the examples that `docs/EMBEDDING.md` shows.

mod buyers;
mod crashes;
mod examples;
mod grants;
mod input;
mod shop;
mod sql_function;
mod sql_races;
mod verdicts;
