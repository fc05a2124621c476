//! Tables on standard output, in Markdown, so that they can stand in a document as they are; and the list of targets.

#![expect(clippy::print_stdout, reason = "tables are what this program is for")]

/// Rows under a heading, printed when it is complete.
#[derive(Debug)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self { title: title.into(), rows: vec![columns.iter().map(|&column| column.to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        println!("\n### {}\n", self.title);
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| self.rows.iter().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (place, row) in self.rows.iter().enumerate() {
            let cells = widths.iter().enumerate().map(|(column, width)| format!("{:<width$}", cell(row, column)));
            println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
            if place == 0 {
                let rules = widths.iter().map(|width| "-".repeat(*width));
                println!("| {} |", rules.collect::<Vec<_>>().join(" | "));
            }
        }
    }
}

fn cell(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

/// What the figures of a run are held against.
#[derive(Debug, Default)]
pub(crate) struct Targets(Vec<[String; 4]>);

impl Targets {
    /// Notes a quantity that is to be at most `limit`.
    pub(crate) fn at_most(&mut self, what: impl Into<String>, limit: f64, measured: f64, unit: &str) {
        self.note(what, "<=", limit, measured, unit, measured <= limit);
    }

    /// Notes a quantity that is to be at least `limit`.
    pub(crate) fn at_least(&mut self, what: impl Into<String>, limit: f64, measured: f64, unit: &str) {
        self.note(what, ">=", limit, measured, unit, measured >= limit);
    }

    fn note(&mut self, what: impl Into<String>, sign: &str, limit: f64, measured: f64, unit: &str, is_met: bool) {
        let unit = if unit.is_empty() || unit == "x" { unit.to_owned() } else { format!(" {unit}") };
        let short = crate::figure::short;
        let word = if is_met { "met" } else { "missed" };
        self.0.push([
            what.into(),
            format!("{sign} {limit}{unit}"),
            format!("{}{unit}", short(measured)),
            word.to_owned(),
        ]);
    }

    /// Prints them all; nothing if no section had any.
    pub(crate) fn print(self) {
        if !self.0.is_empty() {
            let mut table = Table::new("Targets", &["what", "target", "measured", ""]);
            self.0.into_iter().for_each(|row| table.row(row));
            table.print();
        }
    }
}

/// A line of plain text between tables.
pub(crate) fn say(line: impl AsRef<str>) {
    println!("{}", line.as_ref());
}
