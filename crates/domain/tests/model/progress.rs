//! Whether every state leads to the end, by a search back from the ends over the explored graph.
//!
//! stateright's own `eventually` is no proof where the graph has cycles. So the graph is walked here,
//! over the same steps, and its edges are those that are taken by themselves: nothing goes wrong any
//! more, and no operator acts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use stateright::Model;

use super::protocol::Protocol;
use super::world::{Tracked, World};

/// Every state that can be reached, whatever goes wrong and whoever acts.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    worlds: Vec<Rc<World>>,
    /// The steps that are taken by themselves, as pairs of positions in `worlds`.
    edges: Vec<(usize, usize)>,
}

impl Graph {
    pub(crate) fn explore(model: &Protocol) -> Self {
        let mut found = Found::default();
        for world in model.init_states() {
            found.position(world);
        }
        let mut edges = Vec::new();
        let mut steps = Vec::new();
        let mut from = 0;
        while let Some(world) = found.worlds.get(from).cloned() {
            model.actions(&world, &mut steps);
            for step in steps.drain(..) {
                let Some(next) = model.next_state(&world, step) else { continue };
                let to = found.position(next);
                if Protocol::is_in_the_course_of_things(&world, step) {
                    edges.push((from, to));
                }
            }
            from += 1;
        }
        Self { worlds: found.worlds, edges }
    }

    pub(crate) fn len(&self) -> usize {
        self.worlds.len()
    }

    /// A state from which the steps lead nowhere where all is settled, if there is one.
    pub(crate) fn dead_end(&self) -> Option<&World> {
        let mut before = vec![Vec::new(); self.len()];
        for (from, to) in self.edges.iter().copied() {
            before[to].push(from);
        }
        let all_settled = |at: &usize| self.worlds[*at].deliveries.iter().all(Tracked::is_settled);
        let mut open: Vec<usize> = (0..self.len()).filter(all_settled).collect();
        let mut leads_to_the_end = vec![false; self.len()];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut leads_to_the_end[at], true) {
                open.append(&mut before[at]);
            }
        }
        let dead_end = leads_to_the_end.iter().position(|leads| !leads)?;
        Some(&self.worlds[dead_end])
    }

    /// A state to which the steps come back, or which comes behind such a one.
    pub(crate) fn on_a_circle(&self) -> Option<&World> {
        let mut after = vec![Vec::new(); self.len()];
        let mut arriving = vec![0_usize; self.len()];
        for (from, to) in self.edges.iter().copied() {
            after[from].push(to);
            arriving[to] += 1;
        }
        let mut open: Vec<usize> = (0..self.len()).filter(|at| arriving[*at] == 0).collect();
        while let Some(at) = open.pop() {
            for to in after[at].drain(..) {
                arriving[to] -= 1;
                if arriving[to] == 0 {
                    open.push(to);
                }
            }
        }
        let on_a_circle = arriving.iter().position(|count| *count > 0)?;
        Some(&self.worlds[on_a_circle])
    }
}

/// States in the order in which they were found.
#[derive(Default)]
struct Found {
    worlds: Vec<Rc<World>>,
    positions: HashMap<Rc<World>, usize, BuildHasherDefault<DefaultHasher>>,
}

impl Found {
    fn position(&mut self, world: World) -> usize {
        let world = Rc::new(world);
        *self.positions.entry(world).or_insert_with_key(|world| {
            self.worlds.push(Rc::clone(world));
            self.worlds.len() - 1
        })
    }
}
