//! Sparse matrices in device memory: compressed by rows or by columns, or as coordinates.

use crate::model::block::Block;
use crate::numerics::matrix::Matrix;
use crate::numerics::memory::Memory;
use crate::numerics::number::{Number, Type};

/// How the places of entries are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Where each row begins, and the columns of its entries.
    Rows,
    /// Where each column begins, and the rows of its entries.
    Columns,
    /// Row and column of each entry.
    Coordinates,
}

/// A batch of sparse matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sparse {
    pub format: Format,
    pub size: [usize; 2],
    pub entries: usize,
    /// Where rows or columns begin; of coordinates, the rows.
    pub first: u64,
    /// The other index of each entry.
    pub second: u64,
    pub values: u64,
    /// The types of the two arrays of indices.
    pub index_types: [Type; 2],
    /// The number of the first row and column: 0 or 1.
    pub base: i64,
    pub kind: Type,
    /// From one matrix to the next, in elements of `first`, and of the other two arrays.
    pub strides: [i64; 2],
}

/// An entry: row, column, value.
pub(crate) type Entry<T> = (usize, usize, T);

impl Sparse {
    /// Elements of `first`.
    fn firsts(&self) -> usize {
        match self.format {
            Format::Rows => self.size[0] + 1,
            Format::Columns => self.size[1] + 1,
            Format::Coordinates => self.entries,
        }
    }

    fn array(at: u64, kind: Type, count: usize, stride: i64) -> Matrix {
        Matrix::new(at, kind, count as i64, 1, count.max(1) as i64).batched(stride)
    }

    /// The array `first`.
    pub(crate) fn first(&self) -> Matrix {
        let stride = self.strides[usize::from(self.format == Format::Coordinates)];
        Self::array(self.first, self.index_types[0], self.firsts(), stride)
    }

    /// The array `second`.
    pub(crate) fn second(&self) -> Matrix {
        Self::array(self.second, self.index_types[1], self.entries, self.strides[1])
    }

    /// The array of values.
    pub(crate) fn values(&self) -> Matrix {
        Self::array(self.values, self.kind, self.entries, self.strides[1])
    }

    /// What reading the places of the entries touches.
    pub(crate) fn read_places(&self, batch: usize) -> [Block; 2] {
        [self.first().read_block(batch), self.second().read_block(batch)]
    }

    /// What reading it touches.
    pub(crate) fn read_blocks(&self, batch: usize) -> [Block; 3] {
        let [first, second] = self.read_places(batch);
        [first, second, self.values().read_block(batch)]
    }

    /// What writing it touches.
    pub(crate) fn write_blocks(&self) -> [Block; 3] {
        [self.first(), self.second(), self.values()].map(|array| array.write_block(1, false))
    }

    /// Rows and columns of the entries, in the order in which they are kept. Places outside of the
    /// matrix are as bad an address as they would be on a device.
    pub(crate) fn places(&self, memory: &Memory<'_>, batch: usize) -> Option<Vec<(usize, usize)>> {
        let second = self.indices(memory, batch, &self.second())?;
        let first = self.indices(memory, batch, &self.first())?;
        let first = match self.format {
            Format::Coordinates => first,
            _ => expand(&first, self.entries).or_else(|| bad(memory))?,
        };
        let turned = self.format == Format::Columns;
        let places = first.into_iter().zip(second).map(|(a, b)| if turned { (b, a) } else { (a, b) });
        let places: Option<Vec<(usize, usize)>> = places
            .map(|(row, column)| {
                let row = usize::try_from(row).ok().filter(|&row| row < self.size[0])?;
                Some((row, usize::try_from(column).ok().filter(|&column| column < self.size[1])?))
            })
            .collect();
        places.or_else(|| bad(memory))
    }

    /// Indices from 0.
    fn indices(&self, memory: &Memory<'_>, batch: usize, array: &Matrix) -> Option<Vec<i64>> {
        let values = array.load::<f64>(memory, batch)?;
        Some(values.into_iter().map(|value| value as i64 - self.base).collect())
    }

    /// The entries, in the order in which they are kept.
    pub(crate) fn load<T: Number>(&self, memory: &Memory<'_>, batch: usize) -> Option<Vec<Entry<T>>> {
        let values = self.values().load::<T>(memory, batch)?;
        let places = self.places(memory, batch)?;
        Some(places.into_iter().zip(values).map(|((row, column), value)| (row, column, value)).collect())
    }

    /// Stores entries, which are in the order of the format.
    pub(crate) fn store<T: Number>(&self, memory: &Memory<'_>, entries: &[Entry<T>]) -> Option<()> {
        self.store_places(memory, entries)?;
        let values: Vec<T> = entries.iter().map(|&(.., value)| value).collect();
        self.values().store(memory, 0, &values)
    }

    /// Stores only where entries are.
    pub(crate) fn store_places<T: Number>(&self, memory: &Memory<'_>, entries: &[Entry<T>]) -> Option<()> {
        let numbers = |index: usize| (index as i64 + self.base) as f64;
        let turned = self.format == Format::Columns;
        let pairs = entries.iter().map(|&(row, column, _)| if turned { (column, row) } else { (row, column) });
        let (first, second): (Vec<usize>, Vec<usize>) = pairs.unzip();
        let first = match self.format {
            Format::Coordinates => first,
            _ => compress(&first, self.firsts() - 1),
        };
        self.first().store(memory, 0, &first.into_iter().map(numbers).collect::<Vec<f64>>())?;
        self.second().store(memory, 0, &second.into_iter().map(numbers).collect::<Vec<f64>>())
    }
}

/// The fault of an address that is not mapped, which a wrong index makes.
pub(crate) fn bad<T>(memory: &Memory<'_>) -> Option<T> {
    let _ = memory.view(u64::MAX - 15, 1, false);
    None
}

/// The row of each entry, by where rows begin; `None` where that makes no sense.
pub(crate) fn expand(offsets: &[i64], entries: usize) -> Option<Vec<i64>> {
    let mut out = Vec::with_capacity(entries);
    for (row, pair) in offsets.windows(2).enumerate() {
        let (from, to) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
        if from != out.len() || to < from || to > entries {
            return None;
        }
        out.resize(to, row as i64);
    }
    (out.len() == entries).then_some(out)
}

/// Where each of so many rows begins, and the last one ends, by the rows of the entries.
pub(crate) fn compress(rows: &[usize], count: usize) -> Vec<usize> {
    let mut offsets = vec![0; count + 1];
    rows.iter().for_each(|&row| offsets[row + 1] += 1);
    (0..count).for_each(|row| offsets[row + 1] += offsets[row]);
    offsets
}

/// Sorts entries by rows and adds up those of the same place.
pub(crate) fn merged<T: Number>(mut entries: Vec<Entry<T>>) -> Vec<Entry<T>> {
    entries.sort_by_key(|&(row, column, _)| (row, column));
    let mut out: Vec<Entry<T>> = Vec::with_capacity(entries.len());
    for (row, column, value) in entries {
        match out.last_mut() {
            Some(last) if (last.0, last.1) == (row, column) => last.2 += value,
            _ => out.push((row, column, value)),
        }
    }
    out
}
