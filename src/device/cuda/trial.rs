//! A trial of a library: it is used only if it computes a small demand as it should.
#![allow(unsafe_code)]

use super::convolution::{Convolution, Layout, Pass};
use super::product::{Operand, Product};
use super::{Demand, Driver, refusal};
use crate::dtype::DType;
use crate::error::Result;

/// The extent of the matrices.
const N: usize = 4;
/// Bytes that one of them is given.
const ROOM: usize = 256;

/// `y[i, j] = sum over k of x[i, k] w[j, k]` as a product of matrices.
pub(super) fn product() -> Demand {
    let operand = |tensor, is_turned| Operand { tensor, is_turned, leading: N, step: 0 };
    Demand::Product(Product {
        dtype: DType::Float32,
        result: DType::Float32,
        adds: false,
        rows: N,
        columns: N,
        depth: N,
        batch: 1,
        operands: [operand(1, true), operand(0, false), operand(2, false)],
    })
}

/// The same of halves as a convolution of a window of one place: the rows of `x` are sites, its
/// columns channels.
pub(super) fn convolution() -> Demand {
    let image = vec![1, N, 2, N / 2];
    Demand::Convolution(Convolution {
        pass: Pass::Forward,
        dtype: DType::Float16,
        layout: Layout::ChannelsLast,
        extents: [image.clone(), vec![N, N, 1, 1], image],
        slides: [vec![1; 2], vec![0; 2], vec![1; 2]],
        groups: 1,
        has_bias: false,
    })
}

/// Whether a library computes one of these as it should; why not is logged.
pub(super) fn passes(driver: &dyn Driver, demand: &Demand) -> bool {
    let why = match computed(driver, demand) {
        Ok(y) if y == stored(&wanted(), dtype(demand)) => return true,
        Ok(_) => format!("it computes {demand:?} wrongly"),
        Err(error) => error.to_string(),
    };
    log::warn!("kernels of our own replace a library of CUDA: {why}");
    false
}

fn x(i: usize, k: usize) -> f32 {
    (i + 2 * k) as f32 - 3.0
}

fn w(j: usize, k: usize) -> f32 {
    (j * k) as f32 - 2.0
}

/// A matrix, row by row.
fn matrix(of: impl Fn(usize, usize) -> f32) -> Vec<f32> {
    (0..N * N).map(|i| of(i / N, i % N)).collect()
}

fn wanted() -> Vec<f32> {
    matrix(|i, j| (0..N).map(|k| x(i, k) * w(j, k)).sum())
}

/// Numbers as elements, all of which are exact.
fn stored(numbers: &[f32], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Float16 => {
            numbers.iter().flat_map(|&x| half::f16::from_f32(x).to_ne_bytes()).collect()
        }
        _ => numbers.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    }
}

fn dtype(demand: &Demand) -> DType {
    match demand {
        Demand::Product(product) => product.dtype,
        Demand::Convolution(convolution) => convolution.dtype,
    }
}

/// What the library makes of `x` and `w`, as elements.
fn computed(driver: &dyn Driver, demand: &Demand) -> Result<Vec<u8>> {
    let call = driver.library(demand).ok_or_else(|| refusal(format!("none for {demand:?}")))?;
    let room = 3 * ROOM + call.scratch();
    let start = driver.allocate(room).ok_or_else(|| refusal("no memory is left"))?;
    let at = |t: usize| start.map_addr(|address| address.saturating_add(t * ROOM));
    let [x, w, mut y] = [matrix(x), matrix(w), wanted()].map(|of| stored(&of, dtype(demand)));
    y.fill(0);
    // SAFETY: the places lie in what was allocated, which is freed last.
    let done = unsafe {
        let mut run = || {
            driver.upload(&x, at(0))?;
            driver.upload(&w, at(1))?;
            let tensors = [0, 1, 2].map(|t| at(t).addr().get() as u64);
            call.put(driver.stream(), &tensors, at(3).addr().get() as u64)?;
            driver.download(at(2), &mut y)
        };
        let done = run();
        driver.free(start);
        done
    };
    done.map(|()| y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::emulated;

    #[test]
    fn a_library_that_is_right_passes() {
        assert!(passes(emulated::driver(), &product()));
        assert!(passes(emulated::driver(), &convolution()));
    }

    #[test]
    fn another_result_does_not_pass() {
        let Demand::Product(mut other) = product() else { unreachable!() };
        other.operands[1].is_turned = true;
        assert!(!passes(emulated::driver(), &Demand::Product(other)));
    }
}
