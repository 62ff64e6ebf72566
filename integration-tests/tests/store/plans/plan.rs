//! What a plan did, node by node.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Context as _;
use serde_json::Value;

/// A plan that ran.
pub(super) struct Plan {
    name: String,
    root: Value,
}

/// A node, with those above it, the nearest last.
pub(super) struct Node<'p> {
    value: &'p Value,
    above: Vec<&'p Value>,
}

impl Plan {
    pub(super) fn parse(name: &str, json: &str) -> anyhow::Result<Self> {
        let mut explained: Value = serde_json::from_str(json)?;
        let root = explained.pointer_mut("/0/Plan").map(Value::take).context("a plan")?;
        Ok(Self { name: name.to_owned(), root })
    }

    /// The nodes that ran at all.
    pub(super) fn nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = self.all_nodes();
        nodes.retain(|node| node.number("Actual Loops") > 0.0);
        nodes
    }

    /// Those that were only set up as well.
    fn all_nodes(&self) -> Vec<Node<'_>> {
        let mut nodes = Vec::new();
        collect(&self.root, &[], &mut nodes);
        nodes
    }

    /// Fails if it read a table from its beginning, or more rows than `rows_max` from tables. Upkeep
    /// looks at each endpoint: that alone may be in the order of the table.
    #[track_caller]
    pub(super) fn assert_reads_at_most(&self, rows_max: u32) {
        let mut read = 0.0;
        for node in self.nodes() {
            let scans = node.text("Node Type") == "Seq Scan";
            assert!(!scans || node.text("Relation Name") == "endpoint_schedule", "{self}");
            read += node.rows_read();
        }
        assert!(read <= f64::from(rows_max), "{read} rows were read, not {rows_max}: {self}");
    }

    /// The partitions of a table that the plan has set up, whether or not a row led there.
    pub(super) fn days_of(&self, table: &str) -> BTreeSet<String> {
        days(table, &self.all_nodes())
    }

    /// Those of them that a row led to.
    pub(super) fn days_read_of(&self, table: &str) -> BTreeSet<String> {
        days(table, &self.nodes())
    }

    /// The one node that ran on this index.
    #[track_caller]
    pub(super) fn scan_of(&self, index: &str) -> Node<'_> {
        let mut scans = self.nodes();
        scans.retain(|node| node.text("Index Name") == index);
        assert_eq!(scans.len(), 1, "scans of {index}: {self}");
        scans.remove(0)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        for node in self.nodes() {
            let depth = 2 * node.above.len();
            let [kind, index] = ["Node Type", "Index Name"].map(|field| node.text(field));
            let [rows, loops] = ["Actual Rows", "Actual Loops"].map(|field| node.number(field));
            let read = node.rows_read();
            writeln!(f, "{:depth$}{kind} {index} ({rows} rows, {loops} times, read {read})", "")?;
        }
        Ok(())
    }
}

fn days(table: &str, nodes: &[Node<'_>]) -> BTreeSet<String> {
    let names = nodes.iter().map(|node| node.text("Relation Name").to_owned());
    names.filter(|name| name.starts_with(table)).collect()
}

fn collect<'p>(value: &'p Value, above: &[&'p Value], nodes: &mut Vec<Node<'p>>) {
    nodes.push(Node { value, above: above.to_vec() });
    let above = [above, &[value]].concat();
    for below in value["Plans"].as_array().into_iter().flatten() {
        collect(below, &above, nodes);
    }
}

impl Node<'_> {
    pub(super) fn text(&self, field: &str) -> &str {
        self.value[field].as_str().unwrap_or_default()
    }

    pub(super) fn number(&self, field: &str) -> f64 {
        self.value[field].as_f64().unwrap_or_default()
    }

    /// Rows of a table that it looked at, kept or not.
    fn rows_read(&self) -> f64 {
        if self.text("Relation Name").is_empty() || self.text("Node Type") == "ModifyTable" {
            return 0.0;
        }
        let of_a_loop = self.number("Actual Rows")
            + self.number("Rows Removed by Filter")
            + self.number("Rows Removed by Index Recheck");
        of_a_loop * self.number("Actual Loops")
    }

    /// The kinds of the nodes above it, the nearest first.
    pub(super) fn above(&self) -> Vec<&str> {
        self.above.iter().rev().filter_map(|node| node["Node Type"].as_str()).collect()
    }
}
