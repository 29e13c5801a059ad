//! Convolutions of any number of spatial dimensions, and both their gradients, as matrix products.
//!
//! Elements are in `f64`, with the last dimension the fastest: images `[n, c, ...]`, filters
//! `[k, c / groups, ...]`, results `[n, k, ...]`.

use super::number::Number;

/// One spatial dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// Elements of the image, of the filter and of the result.
    pub image: usize,
    pub taps: usize,
    pub result: usize,
    /// Elements of padding before the image.
    pub before: i64,
    pub stride: i64,
    pub dilation: i64,
    /// The filter is turned round (a convolution in the sense of mathematics).
    pub turned: bool,
}

impl Axis {
    /// The element of the image that a tap meets for an element of the result; `None` in the
    /// padding.
    fn meets(&self, tap: usize, result: usize) -> Option<usize> {
        let tap = if self.turned { self.taps - 1 - tap } else { tap };
        let at = result as i64 * self.stride + tap as i64 * self.dilation - self.before;
        usize::try_from(at).ok().filter(|at| *at < self.image)
    }

    /// Which elements of the image, of the filter and of the result have a part in something.
    pub(crate) fn parts(&self) -> [Share; 3] {
        let (mut image, mut taps, mut result) =
            (vec![false; self.image], vec![false; self.taps], vec![false; self.result]);
        for tap in 0..self.taps {
            for of in 0..self.result {
                if let Some(at) = self.meets(tap, of) {
                    (image[at], taps[tap], result[of]) = (true, true, true);
                }
            }
        }
        [image, taps, result].map(|has| Share::of(&has))
    }
}

/// Elements of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// So many in equal steps, from the first on.
    Steps { first: usize, step: usize, count: usize },
    /// Some.
    Irregular,
}

impl Share {
    fn of(has: &[bool]) -> Share {
        let all: Vec<usize> = (0..has.len()).filter(|at| has[*at]).collect();
        let step = if all.len() > 1 { all[1] - all[0] } else { 1 };
        let regular = all.windows(2).all(|two| two[1] - two[0] == step);
        let first = all.first().copied().unwrap_or(0);
        if regular { Share::Steps { first, step, count: all.len() } } else { Share::Irregular }
    }
}

/// The shape of a convolution.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    /// Images.
    pub n: usize,
    /// Channels of an image, and of a result.
    pub c: usize,
    pub k: usize,
    pub groups: usize,
    pub axes: Vec<Axis>,
}

impl Convolution {
    fn of_all(&self, what: impl Fn(&Axis) -> usize) -> usize {
        self.axes.iter().map(what).product()
    }

    fn image(&self) -> usize {
        self.of_all(|axis| axis.image)
    }

    fn taps(&self) -> usize {
        self.of_all(|axis| axis.taps)
    }

    fn result(&self) -> usize {
        self.of_all(|axis| axis.result)
    }

    /// Rows of the matrix of a group: channels and taps.
    fn rows(&self) -> usize {
        self.c / self.groups * self.taps()
    }

    /// Elements of images, filters and results.
    pub(crate) fn sizes(&self) -> [usize; 3] {
        [self.n * self.c * self.image(), self.k * self.rows(), self.n * self.k * self.result()]
    }

    fn is_empty(&self) -> bool {
        self.sizes().contains(&0)
    }

    /// Calls for each tap with the pairs of an element of the result and the element of one channel
    /// of the image.
    fn pairs(&self) -> Vec<Vec<(usize, usize)>> {
        let mut all = vec![vec![(0, 0)]];
        for axis in &self.axes {
            let mut more = Vec::with_capacity(all.len() * axis.taps);
            for pairs in &all {
                for tap in 0..axis.taps {
                    let meets: Vec<(usize, usize)> =
                        (0..axis.result).filter_map(|of| Some((of, axis.meets(tap, of)?))).collect();
                    let both = pairs.iter().flat_map(|(of, at)| {
                        meets.iter().map(move |(next, here)| (of * axis.result + next, at * axis.image + here))
                    });
                    more.push(both.collect());
                }
            }
            all = more;
        }
        all
    }

    /// The matrix of which the product with a filter is the result: a row for each channel and tap,
    /// a column for each element of the result.
    fn columns(&self, pairs: &[Vec<(usize, usize)>], channels: &[f64]) -> Vec<f64> {
        let (image, result, taps) = (self.image(), self.result(), self.taps());
        let mut out = vec![0.0; self.rows() * result];
        for channel in 0..self.c / self.groups {
            for (tap, pairs) in pairs.iter().enumerate() {
                let row = &mut out[(channel * taps + tap) * result..][..result];
                pairs.iter().for_each(|&(of, at)| row[of] = channels[channel * image + at]);
            }
        }
        out
    }

    /// Where the channels of one group of one image begin, and where its part of the filter and of
    /// the result.
    fn parts(&self) -> impl Iterator<Item = [usize; 3]> {
        let (c, k) = (self.c / self.groups, self.k / self.groups);
        let (image, result, rows, groups) = (self.image(), self.result(), self.rows(), self.groups);
        (0..self.n * groups).map(move |part| {
            let group = part % groups;
            [part * c * image, group * k * rows, part * k * result]
        })
    }

    /// The result.
    pub(crate) fn forward(&self, x: &[f64], w: &[f64]) -> Vec<f64> {
        let mut y = vec![0.0; self.sizes()[2]];
        if self.is_empty() {
            return y;
        }
        let (p, q, k, pairs) = (self.result(), self.rows(), self.k / self.groups, self.pairs());
        for [image, filter, result] in self.parts() {
            let columns = self.columns(&pairs, &x[image..]);
            product([p, q, k], &columns, [1, p], &w[filter..], [1, q], &mut y[result..]);
        }
        y
    }

    /// The gradient of the images.
    pub(crate) fn backward_data(&self, w: &[f64], dy: &[f64]) -> Vec<f64> {
        let mut dx = vec![0.0; self.sizes()[0]];
        if self.is_empty() {
            return dx;
        }
        let (p, q, k, pairs) = (self.result(), self.rows(), self.k / self.groups, self.pairs());
        let (elements, taps) = (self.image(), self.taps());
        let mut columns = vec![0.0; p * q];
        for [image, filter, result] in self.parts() {
            product([p, k, q], &dy[result..], [1, p], &w[filter..], [q, 1], &mut columns);
            for channel in 0..self.c / self.groups {
                for (tap, pairs) in pairs.iter().enumerate() {
                    let row = &columns[(channel * taps + tap) * p..][..p];
                    pairs.iter().for_each(|&(of, at)| dx[image + channel * elements + at] += row[of]);
                }
            }
        }
        dx
    }

    /// The gradient of the filters.
    pub(crate) fn backward_filter(&self, x: &[f64], dy: &[f64]) -> Vec<f64> {
        let mut dw = vec![0.0; self.sizes()[1]];
        if self.is_empty() {
            return dw;
        }
        let (p, q, k, pairs) = (self.result(), self.rows(), self.k / self.groups, self.pairs());
        let mut one = vec![0.0; q * k];
        for [image, filter, result] in self.parts() {
            let columns = self.columns(&pairs, &x[image..]);
            product([q, p, k], &columns, [p, 1], &dy[result..], [1, p], &mut one);
            dw[filter..].iter_mut().zip(&one).for_each(|(sum, value)| *sum += value);
        }
        dw
    }
}

/// `c = a * b`, of `[rows, inner, columns]`, with strides of rows and columns; `c` by columns.
fn product(size: [usize; 3], a: &[f64], sa: [usize; 2], b: &[f64], sb: [usize; 2], c: &mut [f64]) {
    let [m, k, n] = size;
    let last = |rows: usize, columns: usize, strides: [usize; 2]| (rows - 1) * strides[0] + (columns - 1) * strides[1];
    assert!(last(m, k, sa) < a.len() && last(k, n, sb) < b.len() && m * n <= c.len());
    let signed = |strides: [usize; 2]| strides.map(|stride| stride as isize);
    // SAFETY: all elements lie in the slices, which was just seen; `c` is apart from the others.
    unsafe { f64::product(m, k, n, a.as_ptr(), signed(sa), b.as_ptr(), signed(sb), c.as_mut_ptr()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(image: usize, taps: usize, before: i64, stride: i64, dilation: i64, turned: bool) -> Axis {
        let result = ((image as i64 + 2 * before - dilation * (taps as i64 - 1) - 1) / stride + 1) as usize;
        Axis { image, taps, result, before, stride, dilation, turned }
    }

    /// Numbers of which sums are exact.
    fn numbers(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|at| ((at * 7 + seed * 3) % 11) as f64 - 5.0).collect()
    }

    fn shapes() -> Vec<Convolution> {
        let of = |groups: usize, axes: Vec<Axis>| Convolution { n: 2, c: 4, k: 6, groups, axes };
        vec![
            of(1, vec![axis(7, 3, 1, 1, 1, false)]),
            of(2, vec![axis(6, 3, 1, 2, 1, false), axis(5, 2, 0, 1, 2, false)]),
            of(1, vec![axis(6, 3, 2, 2, 2, true), axis(5, 3, 1, 1, 1, true)]),
            of(2, vec![axis(4, 2, 1, 1, 1, false), axis(3, 1, 0, 2, 1, false), axis(4, 3, 1, 1, 1, true)]),
        ]
    }

    /// The sum over all triples of image, filter and result that a convolution multiplies.
    fn triples(of: &Convolution, mut body: impl FnMut(usize, usize, usize)) {
        let (c, k) = (of.c / of.groups, of.k / of.groups);
        let spatial = |at: usize, what: &dyn Fn(&Axis) -> usize| {
            let mut rest = at;
            let mut index: Vec<usize> = of.axes.iter().rev().map(|a| (rest % what(a), rest /= what(a)).0).collect();
            index.reverse();
            index
        };
        for n in 0..of.n {
            for out in 0..of.k {
                for result in 0..of.result() {
                    let p = spatial(result, &|a| a.result);
                    for channel in 0..c {
                        for tap in 0..of.taps() {
                            let r = spatial(tap, &|a| a.taps);
                            let mut at = Some(0);
                            for (axis, (p, r)) in of.axes.iter().zip(p.iter().zip(&r)) {
                                let r = if axis.turned { axis.taps - 1 - r } else { *r } as i64;
                                let x = *p as i64 * axis.stride + r * axis.dilation - axis.before;
                                let inside = (0..axis.image as i64).contains(&x);
                                at = at.filter(|_| inside).map(|at| at * axis.image + x as usize);
                            }
                            let Some(at) = at else { continue };
                            let image = (n * of.c + out / k * c + channel) * of.image() + at;
                            let filter = (out * c + channel) * of.taps() + tap;
                            body(image, filter, (n * of.k + out) * of.result() + result);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn all_three_are_what_loops_compute() {
        for of in shapes() {
            let [x, w, y] = of.sizes();
            let (images, filters, slopes) = (numbers(x, 1), numbers(w, 2), numbers(y, 3));
            let (mut forward, mut data, mut filter) = (vec![0.0; y], vec![0.0; x], vec![0.0; w]);
            triples(&of, |i, f, r| {
                forward[r] += images[i] * filters[f];
                data[i] += filters[f] * slopes[r];
                filter[f] += images[i] * slopes[r];
            });
            assert_eq!(of.forward(&images, &filters), forward, "{of:?}");
            assert_eq!(of.backward_data(&filters, &slopes), data, "{of:?}");
            assert_eq!(of.backward_filter(&images, &slopes), filter, "{of:?}");
        }
    }

    #[test]
    fn what_has_no_part_is_known() {
        let steps = |first, step, count| Share::Steps { first, step, count };
        assert_eq!(axis(7, 3, 1, 1, 1, false).parts(), [steps(0, 1, 7), steps(0, 1, 3), steps(0, 1, 7)]);
        assert_eq!(axis(8, 1, 0, 2, 1, false).parts(), [steps(0, 2, 4), steps(0, 1, 1), steps(0, 1, 4)]);
        assert_eq!(axis(8, 2, 0, 3, 1, false).parts()[0], Share::Irregular, "two of three");
        assert_eq!(axis(2, 1, 1, 3, 1, false).parts(), [steps(0, 1, 0); 3], "padding alone");
    }
}
