//! What cells compute in a row behind the products: gates and the new state, and their gradients.

use crate::kernels::cpu::simd::isa::Level;
use crate::kernels::cpu::simd::wide::Wide;

/// A row in a step.
pub struct Row<'a, W> {
    /// The product of the inputs, with the biases.
    pub given: &'a [W],
    /// The product of the state; becomes the gates.
    pub sums: &'a mut [W],
    /// The state of the step before.
    pub state: &'a [W],
    /// The cell state, of an LSTM.
    pub cell: &'a mut [W],
    /// Becomes the units, or the operand of a second product.
    pub units: &'a mut [W],
    /// The result of a second product.
    pub second: &'a mut [W],
    /// What backward needs besides.
    pub kept: &'a mut [W],
}

/// The same in backward.
pub struct Back<'a, W> {
    /// The gates.
    pub gates: &'a [W],
    /// The units: of a cell without gates, the state itself.
    pub state: &'a [W],
    /// The state of the step before; of an LSTM, the cell state.
    pub before: &'a [W],
    /// What forward kept.
    pub kept: &'a [W],
    /// The gradient of the units; becomes its part that passes by the gates.
    pub up: &'a mut [W],
    /// The gradient of the cell state, of an LSTM.
    pub cell: &'a mut [W],
    /// Becomes the gradient of the product of the state.
    pub sums: &'a mut [W],
    /// Becomes the gradient of the candidate, of cells that have it apart.
    pub tail: &'a mut [W],
    /// The result of a second product.
    pub second: &'a mut [W],
    /// What the gradients of weights need besides.
    pub made: &'a mut [W],
}

/// A kind of cell. All callees must be `#[inline(always)]`.
pub trait Cell<W: Wide>: Copy + Sync {
    /// Whether the gradient of the candidate stands apart.
    const TAIL: bool = false;

    /// Behind the first product.
    fn first<L: Level>(self, row: Row<W>);

    /// Behind the second one.
    #[inline(always)]
    fn second<L: Level>(self, _row: Row<W>) {}

    /// The gradient.
    fn back<L: Level>(self, row: Back<W>);

    /// Behind its second product.
    #[inline(always)]
    fn second_back<L: Level>(self, _row: Back<W>) {}
}

#[inline(always)]
fn add<W: Wide>(to: &mut [W], from: &[W]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *to + *from);
}

#[inline(always)]
fn sigmoid<L: Level, W: Wide>(values: &mut [W]) {
    values.iter_mut().for_each(|x| *x = x.sigmoid::<L>());
}

#[inline(always)]
fn tanh<L: Level, W: Wide>(values: &mut [W]) {
    values.iter_mut().for_each(|x| *x = x.tanh::<L>());
}

/// The slope of a sigmoid where it is `y`.
#[inline(always)]
fn slope<W: Wide>(y: W) -> W {
    y * (W::ONE - y)
}

/// An Elman cell, with a rectifier or the hyperbolic tangent.
#[derive(Clone, Copy)]
pub struct Elman<const RELU: bool>;

impl<W: Wide, const RELU: bool> Cell<W> for Elman<RELU> {
    #[inline(always)]
    fn first<L: Level>(self, row: Row<W>) {
        for ((to, &sum), &given) in row.units.iter_mut().zip(&*row.sums).zip(row.given) {
            let x = sum + given;
            // NaN passes.
            *to = match RELU {
                true if x < W::ZERO => W::ZERO,
                true => x,
                false => x.tanh::<L>(),
            };
        }
    }

    #[inline(always)]
    fn back<L: Level>(self, row: Back<W>) {
        for ((to, up), &y) in row.sums.iter_mut().zip(row.up).zip(row.state) {
            let slope = match RELU {
                true if y > W::ZERO => W::ONE,
                true => W::ZERO,
                false => W::ONE - y * y,
            };
            *to = *up * slope;
            *up = W::ZERO;
        }
    }
}

/// Long short-term memory; no peepholes if there are none.
#[derive(Clone, Copy)]
pub struct Lstm<'a, W>(pub &'a [W]);

impl<W: Wide> Lstm<'_, W> {
    /// The peepholes of the input, output and forget gates.
    #[inline(always)]
    fn peepholes(&self, units: usize) -> Option<[&[W]; 3]> {
        let all = self.0;
        (!all.is_empty()).then(|| [0, 1, 2].map(|gate| &all[gate * units..][..units]))
    }
}

/// Adds `weights * cell`.
#[inline(always)]
fn peep<W: Wide>(to: &mut [W], weights: &[W], cell: &[W]) {
    to.iter_mut().zip(weights).zip(cell).for_each(|((to, &w), &c)| *to = *to + w * c);
}

/// Equal parts of a slice.
#[inline(always)]
fn parts<W, const N: usize>(of: &[W], units: usize) -> [&[W]; N] {
    std::array::from_fn(|gate| &of[gate * units..][..units])
}

#[inline(always)]
fn parts_mut<W>(of: &mut [W], units: usize) -> [&mut [W]; 4] {
    let (a, rest) = of.split_at_mut(units);
    let (b, rest) = rest.split_at_mut(units);
    let (c, d) = rest.split_at_mut(units);
    [a, b, c, &mut d[..units]]
}

impl<W: Wide> Cell<W> for Lstm<'_, W> {
    #[inline(always)]
    fn first<L: Level>(self, row: Row<W>) {
        let units = row.units.len();
        add(row.sums, row.given);
        let peepholes = self.peepholes(units);
        match peepholes {
            None => sigmoid::<L, W>(&mut row.sums[..3 * units]),
            Some([input, _, forget]) => {
                peep(&mut row.sums[..units], input, row.cell);
                peep(&mut row.sums[2 * units..3 * units], forget, row.cell);
                sigmoid::<L, W>(&mut row.sums[..units]);
                sigmoid::<L, W>(&mut row.sums[2 * units..3 * units]);
            }
        }
        tanh::<L, W>(&mut row.sums[3 * units..]);
        let [input, _, forget, candidate] = parts(row.sums, units);
        for (j, cell) in row.cell.iter_mut().enumerate().take(units) {
            *cell = forget[j].mad::<L>(*cell, input[j] * candidate[j]);
        }
        if let Some([_, output, _]) = peepholes {
            peep(&mut row.sums[units..2 * units], output, row.cell);
            sigmoid::<L, W>(&mut row.sums[units..2 * units]);
        }
        let output = &row.sums[units..2 * units];
        for ((to, &cell), &gate) in row.units.iter_mut().zip(&*row.cell).zip(output) {
            *to = gate * cell.tanh::<L>();
        }
        row.kept.copy_from_slice(row.cell);
    }

    #[inline(always)]
    fn back<L: Level>(self, row: Back<W>) {
        let units = row.up.len();
        let [input, output, forget, candidate] = parts(row.gates, units);
        let [dinput, doutput, dforget, dcandidate] = parts_mut(row.sums, units);
        let peepholes = self.peepholes(units);
        let (before, kept, up) = (&row.before[..units], &row.kept[..units], &mut row.up[..units]);
        let dcell = &mut row.cell[..units];
        for j in 0..units {
            let (squashed, gate) = (kept[j].tanh::<L>(), output[j]);
            doutput[j] = up[j] * squashed * slope(gate);
            dcell[j] = dcell[j] + up[j] * gate * (W::ONE - squashed * squashed);
            up[j] = W::ZERO;
        }
        if let Some([_, output, _]) = peepholes {
            peep(dcell, output, doutput);
        }
        for j in 0..units {
            let d = dcell[j];
            dinput[j] = d * candidate[j] * slope(input[j]);
            dforget[j] = d * before[j] * slope(forget[j]);
            dcandidate[j] = d * input[j] * (W::ONE - candidate[j] * candidate[j]);
            dcell[j] = d * forget[j];
        }
        if let Some([input, _, forget]) = peepholes {
            peep(dcell, input, dinput);
            peep(dcell, forget, dforget);
        }
        for ((to, &gate), &cell) in row.made.iter_mut().zip(output).zip(kept) {
            *to = gate * cell.tanh::<L>();
        }
    }
}

/// A gated recurrent unit with the reset before the candidate's product.
#[derive(Clone, Copy)]
pub struct Gru;

/// The new state: between the candidate and the state before.
#[inline(always)]
fn between<L: Level, W: Wide>(to: &mut [W], update: &[W], candidate: &[W], state: &[W]) {
    let units = to.len();
    let (update, candidate, state) = (&update[..units], &candidate[..units], &state[..units]);
    for j in 0..units {
        to[j] = update[j].mad::<L>(state[j] - candidate[j], candidate[j]);
    }
}

/// The gradients of the update gate and of the candidate; `up` becomes what passes by.
#[inline(always)]
fn between_back<W: Wide>(
    up: &mut [W],
    [update, candidate, state]: [&[W]; 3],
    [dupdate, dcandidate]: [&mut [W]; 2],
) {
    let units = up.len();
    let (update, candidate, state) = (&update[..units], &candidate[..units], &state[..units]);
    let (dupdate, dcandidate) = (&mut dupdate[..units], &mut dcandidate[..units]);
    for j in 0..units {
        let (d, y) = (up[j], candidate[j]);
        dupdate[j] = d * (state[j] - y) * slope(update[j]);
        dcandidate[j] = d * (W::ONE - update[j]) * (W::ONE - y * y);
        up[j] = d * update[j];
    }
}

impl<W: Wide> Cell<W> for Gru {
    const TAIL: bool = true;

    #[inline(always)]
    fn first<L: Level>(self, row: Row<W>) {
        let units = row.units.len();
        add(row.sums, row.given);
        sigmoid::<L, W>(row.sums);
        let reset = &row.sums[units..2 * units];
        for ((to, &gate), &state) in row.units.iter_mut().zip(reset).zip(row.state) {
            *to = gate * state;
        }
    }

    #[inline(always)]
    fn second<L: Level>(self, row: Row<W>) {
        let units = row.units.len();
        add(row.second, &row.given[2 * units..]);
        tanh::<L, W>(row.second);
        between::<L, W>(row.units, row.sums, row.second, row.state);
    }

    #[inline(always)]
    fn back<L: Level>(self, row: Back<W>) {
        let [update, _, candidate] = parts(row.gates, row.up.len());
        between_back(row.up, [update, candidate, row.before], [row.sums, row.tail]);
    }

    #[inline(always)]
    fn second_back<L: Level>(self, row: Back<W>) {
        let units = row.up.len();
        let reset = &row.gates[units..2 * units];
        let (d, before) = (&row.second[..units], &row.before[..units]);
        let dreset = &mut row.sums[units..2 * units];
        for j in 0..units {
            dreset[j] = d[j] * before[j] * slope(reset[j]);
            row.up[j] = d[j].mad::<L>(reset[j], row.up[j]);
        }
    }
}

/// A gated recurrent unit with the reset behind the candidate's product and its bias.
#[derive(Clone, Copy)]
pub struct LinearGru<'a, W>(pub &'a [W]);

impl<W: Wide> Cell<W> for LinearGru<'_, W> {
    const TAIL: bool = true;

    #[inline(always)]
    fn first<L: Level>(self, row: Row<W>) {
        let units = row.units.len();
        let (gates, candidate) = row.sums.split_at_mut(2 * units);
        add(gates, row.given);
        sigmoid::<L, W>(gates);
        for ((to, &sum), &bias) in row.kept.iter_mut().zip(&*candidate).zip(self.0) {
            *to = sum + bias;
        }
        let (reset, given) = (&gates[units..], &row.given[2 * units..]);
        let (candidate, kept) = (&mut candidate[..units], &row.kept[..units]);
        for j in 0..units {
            candidate[j] = reset[j].mad::<L>(kept[j], given[j]).tanh::<L>();
        }
        between::<L, W>(row.units, gates, candidate, row.state);
    }

    #[inline(always)]
    fn back<L: Level>(self, row: Back<W>) {
        let units = row.up.len();
        let [update, reset, candidate] = parts(row.gates, units);
        let (dupdate, rest) = row.sums.split_at_mut(units);
        between_back(row.up, [update, candidate, row.before], [dupdate, row.tail]);
        let (dreset, dproduct) = rest.split_at_mut(units);
        let (kept, tail, made) = (&row.kept[..units], &row.tail[..units], &mut row.made[..units]);
        for j in 0..units {
            dreset[j] = tail[j] * kept[j] * slope(reset[j]);
            dproduct[j] = tail[j] * reset[j];
            made[j] = dproduct[j];
        }
    }
}
