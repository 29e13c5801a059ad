//! The table printer: rows of text in aligned columns, or as Markdown.

/// Rows below a head.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a head.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Aligned columns: numbers to the right, text to the left.
    pub fn aligned(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let is_number = |column: usize| {
            let mut cells = self.rows[1..].iter().filter_map(|row| row.get(column));
            cells.all(|cell| cell.parse::<f64>().is_ok())
        };
        let form: Vec<(usize, bool)> = (0..columns).map(|column| (width(column), is_number(column))).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells =
                row.iter().zip(&form).map(
                    |(cell, &(width, number))| {
                        if number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
                    },
                );
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// A table of Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
            if at == 0 {
                text.push_str(&format!("|{}\n", "---|".repeat(row.len())));
            }
        }
        text
    }
}
